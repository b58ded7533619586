//! Rules in places where nothing reads them.
//!
//! They would protect nobody, while their author believes that they apply. So the whole file is searched for
//! keys that look like rules and for entries about commands. Places where both programs use such words for
//! something else are known here: tools of other servers, hooks, variables.

use jsonc_parser::ast::{Object, Value};

use super::entry;
use super::keys::{self, Section, Topic};

/// The path of a key, from the outermost one.
type KeyPath<'a> = [&'a str];

/// The path of the first key that looks like a rule and is not read, such as `general.tools.exclude`.
pub fn find(top: &Object<'_>) -> Option<String> {
    in_object(&[], top)
}

fn in_object(outer: &KeyPath<'_>, members: &Object<'_>) -> Option<String> {
    members.properties.iter().find_map(|member| {
        let path = [outer, &[member.name.as_str()]].concat();
        if is_read(&path) {
            return None;
        }
        if looks_like_rule(&path, &member.value) || is_misplaced_key(&path) {
            return Some(path.join("."));
        }
        in_value(&path, &member.value)
    })
}

fn in_value(path: &KeyPath<'_>, value: &Value<'_>) -> Option<String> {
    let found = |misplaced: bool| (misplaced && !may_name_tool(path)).then(|| path.join("."));
    match value {
        Value::Object(members) => in_object(path, members),
        Value::Array(list) => list.elements.iter().find_map(|element| match element {
            Value::StringLit(text) if !entry::is_rule(&text.value) => {
                found(entry::names_shell_tool(&text.value))
            }
            _ => in_value(path, element),
        }),
        Value::StringLit(text) if entry::is_rule(&text.value) => {
            (!is_matcher(path)).then(|| path.join("."))
        }
        Value::StringLit(text) => found(entry::is_clearly_entry(&text.value)),
        _ => None,
    }
}

/// Whether a list is read there.
fn is_read(path: &KeyPath<'_>) -> bool {
    section(path).is_some_and(|(section, name)| section.effect(name).is_some())
}

/// The section that a key is directly in, and its name there.
fn section<'a>(path: &KeyPath<'a>) -> Option<(Section, &'a str)> {
    match path {
        [name] => Some((Section::Top, name)),
        [outer, name] => {
            let sections = [Section::Tools, Section::Permissions].into_iter();
            sections.map(|section| (section, *name)).find(|(section, _)| section.name() == *outer)
        }
        _ => None,
    }
}

fn looks_like_rule(path: &KeyPath<'_>, value: &Value<'_>) -> bool {
    let Some((name, outer)) = path.split_last() else { return false };
    let known = section(path);
    if known.is_some_and(|(section, name)| section.has(name)) || has_free_name(path, value) {
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
    match (topic(path), enclosing_topic(outer)) {
        (Some(topic), _) => topic == Topic::Commands,
        (None, Some(Topic::Commands)) => alone || !switch,
        (None, Some(Topic::Other)) => false,
        (None, None) => alone && (!switch || outer.is_empty()),
    }
}

/// The topic of the innermost key that has one. The name of a server says nothing.
fn enclosing_topic(outer: &KeyPath<'_>) -> Option<Topic> {
    let paths = (1..=outer.len()).rev().filter_map(|end| outer.get(..end));
    paths.filter(|path| server(path).is_none_or(|keys| !keys.is_empty())).find_map(topic)
}

/// The topic of a key by itself. A server's tools are not ours.
fn topic(path: &KeyPath<'_>) -> Option<Topic> {
    let name = path.last()?;
    match server(path) {
        Some([_, ..]) => Topic::of(&keys::letters(name).replace("tool", "")),
        _ => Topic::of(name),
    }
}

/// The keys inside the settings of another MCP server, whose name anyone may choose.
fn server<'a, 'b>(path: &'b KeyPath<'a>) -> Option<&'b KeyPath<'a>> {
    let start = path.iter().position(|name| *name == "mcpServers");
    let admin = path.windows(2).position(|names| names == ["mcp", "config"]);
    path.get(start.or(admin.map(|mcp| mcp + 1))? + 2..)
}

/// Whether a key is a name that people choose: of a server, a variable or an event.
fn has_free_name(path: &KeyPath<'_>, value: &Value<'_>) -> bool {
    match (path, value) {
        ([.., "env", _], _) => true,
        (["hooks", _], Value::Array(list)) => {
            list.elements.iter().all(|element| element.as_object().is_some())
        }
        (_, Value::Object(_)) => server(path).is_some_and(KeyPath::is_empty),
        _ => false,
    }
}

/// Whether a key itself is an entry about commands.
fn is_misplaced_key(path: &KeyPath<'_>) -> bool {
    let Some(name) = path.last() else { return false };
    let expected = matches!(path, [.., "summarizeToolOutput", _]) || may_name_tool(path);
    entry::is_rule(name) || entry::is_clearly_entry(name) && !expected
}

/// Whether the tool may be named there: servers offer it, agents have it, hooks wait for it.
fn may_name_tool(path: &KeyPath<'_>) -> bool {
    let restricts = path.last().is_some_and(|name| keys::restricts(name));
    let elsewhere = server(path).is_some() || path.first() == Some(&"agents");
    is_matcher(path) || elsewhere && !restricts
}

/// Whether a text says which tools a hook is for.
fn is_matcher(path: &KeyPath<'_>) -> bool {
    matches!(path, ["hooks", .., "matcher"])
}

#[cfg(test)]
mod tests {
    use crate::restrictions::ImportedRules;

    /// The key that is reported, in a file that also has a valid rule.
    fn misplaced(members: &str) -> Option<String> {
        let text = format!(r#"{{"tools": {{"exclude": ["rm"]}}, {members}}}"#);
        let problem = ImportedRules::read(&text).err()?.to_string();
        Some(problem.split('`').nth(1)?.to_owned())
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
            assert_eq!(misplaced(members).as_deref(), key, "{members}");
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
            assert_eq!(misplaced(members).as_deref(), key, "{members}");
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
            assert_eq!(misplaced(members).as_deref(), key, "{members}");
        }
    }
}
