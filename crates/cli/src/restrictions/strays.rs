//! Rules in places where none are read.
//!
//! They would protect nobody, while their author believes that they hold. So the whole file is searched
//! for keys that look like rules and for entries about commands. What both programs have of that kind and
//! mean otherwise is known here: the tools of other servers, hooks, variables.

use jsonc_parser::ast::{Object, Value};

use super::entry;
use super::keys::{self, Section, Topic};

/// A key behind those it is in.
type Place<'a> = [&'a str];

/// The first key that looks like a rule and is not read, with those it is in: `general.tools.exclude`.
pub fn find(top: &Object<'_>) -> Option<String> {
    in_object(&[], top)
}

fn in_object(outer: &Place<'_>, members: &Object<'_>) -> Option<String> {
    members.properties.iter().find_map(|member| {
        let place = [outer, &[member.name.as_str()]].concat();
        if is_read(&place) {
            return None;
        }
        if looks_like_rule(&place, &member.value) || is_stray_key(&place) {
            return Some(place.join("."));
        }
        in_value(&place, &member.value)
    })
}

fn in_value(place: &Place<'_>, value: &Value<'_>) -> Option<String> {
    let found = |stray: bool| (stray && !may_name_tool(place)).then(|| place.join("."));
    match value {
        Value::Object(members) => in_object(place, members),
        Value::Array(list) => list.elements.iter().find_map(|element| match element {
            Value::StringLit(text) if !entry::is_rule(&text.value) => {
                found(entry::names_our_tool(&text.value))
            }
            _ => in_value(place, element),
        }),
        Value::StringLit(text) if entry::is_rule(&text.value) => {
            (!is_matcher(place)).then(|| place.join("."))
        }
        Value::StringLit(text) => found(entry::is_unmistakable(&text.value)),
        _ => None,
    }
}

/// Whether a list is read there.
fn is_read(place: &Place<'_>) -> bool {
    section(place).is_some_and(|(section, name)| section.effect(name).is_some())
}

/// The section that a key is directly in, and its name there.
fn section<'a>(place: &Place<'a>) -> Option<(Section, &'a str)> {
    match place {
        [name] => Some((Section::Top, name)),
        [outer, name] => {
            let sections = [Section::Tools, Section::Permissions].into_iter();
            sections.map(|section| (section, *name)).find(|(section, _)| section.name() == *outer)
        }
        _ => None,
    }
}

fn looks_like_rule(place: &Place<'_>, value: &Value<'_>) -> bool {
    let Some((name, outer)) = place.split_last() else { return false };
    let known = section(place);
    if known.is_some_and(|(section, name)| section.has(name)) || has_free_name(place, value) {
        return false;
    }
    if known.is_some_and(|(section, name)| section.is_nearly(name)) {
        return true;
    }
    if keys::names_rules_elsewhere(name) {
        return value.as_array().is_some_and(|list| !list.elements.is_empty());
    }
    if !keys::restricts(name) {
        return false;
    }
    let alone = keys::only_restricts(name);
    // Most switches are about something else, such as `tools.disableLLMCorrection`.
    let switch =
        matches!(value, Value::BooleanLit(_) | Value::NumberLit(_) | Value::NullKeyword(_));
    match (topic(place), around(outer)) {
        (Some(topic), _) => topic == Topic::Commands,
        (None, Some(Topic::Commands)) => alone || !switch,
        (None, Some(Topic::Other)) => false,
        (None, None) => alone && (!switch || outer.is_empty()),
    }
}

/// What the nearest of the keys says it is about. What a server is called says nothing.
fn around(outer: &Place<'_>) -> Option<Topic> {
    let places = (1..=outer.len()).rev().filter_map(|end| outer.get(..end));
    places.filter(|place| server(place).is_none_or(|keys| !keys.is_empty())).find_map(topic)
}

/// What a key says it is about, whatever it is in. A server's tools are not ours.
fn topic(place: &Place<'_>) -> Option<Topic> {
    let name = place.last()?;
    match server(place) {
        Some([_, ..]) => Topic::of(&keys::letters(name).replace("tool", "")),
        _ => Topic::of(name),
    }
}

/// The keys in the settings of another MCP server, which has a name that anyone may choose.
fn server<'a, 'b>(place: &'b Place<'a>) -> Option<&'b Place<'a>> {
    let start = place.iter().position(|name| *name == "mcpServers");
    let admin = place.windows(2).position(|names| names == ["mcp", "config"]);
    place.get(start.or(admin.map(|mcp| mcp + 1))? + 2..)
}

/// Whether a key is the name of a server, a variable or an event.
fn has_free_name(place: &Place<'_>, value: &Value<'_>) -> bool {
    match (place, value) {
        ([.., "env", _], _) => true,
        (["hooks", _], Value::Array(list)) => {
            list.elements.iter().all(|element| element.as_object().is_some())
        }
        (_, Value::Object(_)) => server(place).is_some_and(Place::is_empty),
        _ => false,
    }
}

/// Whether a key itself is an entry about commands.
fn is_stray_key(place: &Place<'_>) -> bool {
    let Some(name) = place.last() else { return false };
    let expected = matches!(place, [.., "summarizeToolOutput", _]) || may_name_tool(place);
    entry::is_rule(name) || entry::is_unmistakable(name) && !expected
}

/// Whether the tool may be named there: a server offers it, an agent has it, a hook waits for it.
fn may_name_tool(place: &Place<'_>) -> bool {
    let restricts = place.last().is_some_and(|name| keys::restricts(name));
    let elsewhere = server(place).is_some() || place.first() == Some(&"agents");
    is_matcher(place) || elsewhere && !restricts
}

/// Whether a text says which tools a hook is for.
fn is_matcher(place: &Place<'_>) -> bool {
    matches!(place, ["hooks", .., "matcher"])
}

#[cfg(test)]
mod tests {
    use crate::restrictions::Restrictions;

    /// The key that is complained about, in a file that has a rule.
    fn stray(members: &str) -> Option<String> {
        let text = format!(r#"{{"tools": {{"exclude": ["rm"]}}, {members}}}"#);
        let complaint = Restrictions::read(&text).err()?.to_string();
        Some(complaint.split('`').nth(1)?.to_owned())
    }

    #[test]
    fn the_nearest_key_that_says_so_decides_what_a_rule_is_about() {
        for (members, key) in [
            (r#""a": {"denied": ["x"]}"#, Some("a.denied")),
            (r#""skills": {"denied": ["x"]}"#, None),
            (r#""skills": {"tools": {"denied": ["x"]}}"#, Some("skills.tools.denied")),
            (r#""toolbox": {"skills": {"denied": ["x"]}}"#, None),
            (r#""skills": {"deniedCommands": ["x"]}"#, Some("skills.deniedCommands")),
            (r#""slashCommands": {"denied": ["x"]}"#, None),
            (r#""a": {"deniedPlanets": ["x"]}"#, None),
            (r#""shell": {"deniedPlanets": ["x"]}"#, Some("shell.deniedPlanets")),
        ] {
            assert_eq!(stray(members).as_deref(), key, "{members}");
        }
    }

    #[test]
    fn a_switch_is_a_rule_only_if_it_is_about_commands() {
        for (members, key) in [
            (r#""disableShell": true"#, Some("disableShell")),
            (r#""shell": {"disabled": true}"#, Some("shell.disabled")),
            (r#""shell": {"disableColors": true}"#, None),
            (r#""a": {"disabled": true}"#, None),
            (r#""mcpServers": {"shell": {"disabled": true}}"#, None),
        ] {
            assert_eq!(stray(members).as_deref(), key, "{members}");
        }
    }

    #[test]
    fn the_tool_may_be_named_where_nothing_is_restricted() {
        for (members, key) in [
            (r#""hooks": {"X": [{"matcher": "Bash(rm)"}]}"#, None),
            (r#""hooks": {"X": [{"only": "Bash(rm)"}]}"#, Some("hooks.X.only")),
            (r#""agents": {"x": {"tools": ["Bash"]}}"#, None),
            (r#""agents": {"x": {"tools": ["Bash(ls)"]}}"#, Some("agents.x.tools")),
            (r#""agents": {"x": {"deny": ["Bash"]}}"#, Some("agents.x.deny")),
            (r#""mcpServers": {"x": {"Bash(rm)": 1}}"#, Some("mcpServers.x.Bash(rm)")),
            (r#""a": {"name": "Shell", "description": "Shell (fast)"}"#, None),
        ] {
            assert_eq!(stray(members).as_deref(), key, "{members}");
        }
    }
}
