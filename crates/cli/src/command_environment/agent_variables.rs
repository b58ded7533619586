//! Variables that tell commands that a program reads what they print, not a person.
//!
//! Test runners and reporters that know them print much less. `CI` is not among them: it changes what tools do, not
//! only what they print.

use std::ffi::{OsStr, OsString};

/// Several tools look for the first two. The others are widely known.
const TOLD: &[(&str, &str)] = &[
    ("AI_AGENT", "mcpz"),
    ("AGENT", "1"),
    ("NO_COLOR", "1"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
];

/// What programs ask that want a terminal, such as editors. The server may have one, but commands do not. A command
/// with a terminal gets its name as well.
const TERMINAL: (&str, &str) = ("TERM", "dumb");

/// A user who sets one of these wants colours, and some tools complain if both are set.
const WANT_COLOURS: &[&str] = &["FORCE_COLOR", "CLICOLOR_FORCE"];

/// Adds the variables that are not there yet. What was set before counts, even if it is empty, but for the terminal.
pub fn tell(variables: &mut Vec<(OsString, OsString)>, is_dropped: impl Fn(&OsStr) -> bool) {
    let has = |variables: &[(OsString, OsString)], name: &str| {
        variables.iter().any(|(known, _)| known == name)
    };
    let wants_colours = WANT_COLOURS.iter().any(|name| has(variables, name));
    for (name, value) in TOLD {
        let is_unwanted = *name == "NO_COLOR" && wants_colours || is_dropped(OsStr::new(name));
        if !is_unwanted && !has(variables, name) {
            variables.push((name.into(), value.into()));
        }
    }
    let (name, value) = TERMINAL;
    if !is_dropped(OsStr::new(name)) {
        variables.retain(|(known, _)| known != name);
        variables.push((name.into(), value.into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(before: &[(&str, &str)], dropped: &str) -> Vec<String> {
        let mut variables: Vec<(OsString, OsString)> =
            before.iter().map(|(name, value)| (name.into(), value.into())).collect();
        tell(&mut variables, |name| name == dropped);
        let text = |text: &OsString| text.to_str().unwrap().to_owned();
        variables.iter().map(|(name, value)| format!("{}={}", text(name), text(value))).collect()
    }

    #[test]
    fn what_the_user_has_set_or_dropped_counts() {
        let expected =
            ["AI_AGENT=mcpz", "AGENT=1", "NO_COLOR=1", "PAGER=cat", "GIT_PAGER=cat", "TERM=dumb"];
        assert_eq!(told(&[("TERM", "xterm")], ""), expected);
        let own = told(&[("PAGER", "less -R"), ("AGENT", "")], "GIT_PAGER");
        assert_eq!(own, ["PAGER=less -R", "AGENT=", "AI_AGENT=mcpz", "NO_COLOR=1", "TERM=dumb"]);
        assert!(!told(&[], "TERM").contains(&"TERM=dumb".to_owned()));
        assert!(!told(&[("FORCE_COLOR", "1")], "").contains(&"NO_COLOR=1".to_owned()));
    }
}
