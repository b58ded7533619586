//! The keys of a settings file that are rules, and how to recognize keys that were meant to be.

/// A part of the file that has rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    Top,
    Tools,
    Permissions,
}

/// What a list does to the commands on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing else may run.
    Only,
    /// They may not run.
    Never,
    /// They may run after a person has confirmed them.
    Ask,
    /// They run without confirmation, which restricts nothing.
    Unasked,
}

const LISTS: [(Section, &str, Effect); 11] = [
    (Section::Top, "coreTools", Effect::Only),
    (Section::Top, "excludeTools", Effect::Never),
    (Section::Top, "allowedTools", Effect::Unasked),
    (Section::Tools, "core", Effect::Only),
    (Section::Tools, "exclude", Effect::Never),
    (Section::Tools, "disabled", Effect::Never),
    (Section::Tools, "allowed", Effect::Unasked),
    (Section::Tools, "confirmationRequired", Effect::Ask),
    (Section::Permissions, "allow", Effect::Unasked),
    (Section::Permissions, "ask", Effect::Ask),
    (Section::Permissions, "deny", Effect::Never),
];

/// Parts of names by which people restrict something.
const VERBS: [&str; 16] = [
    "allow",
    "banned",
    "blacklist",
    "block",
    "confirm",
    "core",
    "denied",
    "denies",
    "deny",
    "disable",
    "exclu",
    "forbid",
    "prohibit",
    "reject",
    "restrict",
    "whitelist",
];

/// Endings of names that say nothing else, as in `excluded`, `forbidden` and `restrictions`.
const ENDINGS: [&str; 14] = [
    "", "s", "d", "ed", "de", "des", "ded", "den", "ion", "ions", "sion", "sions", "ation",
    "ations",
];

/// Parts of names of things that these rules restrict.
const COMMANDS: [&str; 6] = ["bash", "cmd", "command", "permission", "shell", "tool"];

/// Parts of names of other things. `slash` is for commands that people type into an assistant, `hint` for prose
/// that only a model reads.
const OTHERS: [&str; 16] = [
    "agent",
    "channel",
    "domain",
    "env",
    "extension",
    "filefilter",
    "hint",
    "hook",
    "mcp",
    "model",
    "path",
    "plugin",
    "sandbox",
    "server",
    "skill",
    "slash",
];

/// What a key restricts, according to its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    Commands,
    Other,
}

impl Topic {
    pub fn of(name: &str) -> Option<Self> {
        let name = letters(name).replace("slashcommand", "slash");
        let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
        let other = has(&OTHERS).then_some(Self::Other);
        if has(&COMMANDS) { Some(Self::Commands) } else { other }
    }
}

impl Section {
    pub fn name(self) -> &'static str {
        match self {
            Self::Top => "",
            Self::Tools => "tools",
            Self::Permissions => "permissions",
        }
    }

    /// A key with the section it is in.
    pub fn key(self, name: &str) -> String {
        match self {
            Self::Top => name.to_owned(),
            _ => format!("{}.{name}", self.name()),
        }
    }

    /// Whether it contains a section of that name.
    pub fn has(self, name: &str) -> bool {
        self == Self::Top && [Self::Tools, Self::Permissions].iter().any(|it| it.name() == name)
    }

    /// What the list of that name does, if there is one.
    pub fn effect(self, name: &str) -> Option<Effect> {
        let found = LISTS.iter().find(|(section, key, _)| *section == self && *key == name);
        found.map(|(_, _, effect)| *effect)
    }

    /// Whether an unknown key is probably a misspelt one of ours.
    pub fn is_nearly(self, name: &str) -> bool {
        self.names().any(|known| is_nearly(&letters(name), &letters(known)))
    }

    /// The keys it knows.
    fn names(self) -> impl Iterator<Item = &'static str> {
        let lists = LISTS.iter().filter(move |(section, _, _)| *section == self);
        let sections = [Self::Tools, Self::Permissions].map(Self::name).into_iter();
        let sections = sections.filter(move |_| self == Self::Top);
        lists.map(|(_, key, _)| *key).chain(sections)
    }
}

/// Whether a key says that something is restricted.
pub fn restricts(name: &str) -> bool {
    let name = letters(name);
    VERBS.iter().any(|verb| name.contains(verb)) || is_list(&name)
}

/// Whether a key names other files with rules, as `policyPaths` of Gemini CLI.
pub fn names_rules_elsewhere(name: &str) -> bool {
    letters(name).ends_with("policypaths")
}

/// Whether a key says nothing else: `deny`, `denylist`, or the name of a list of ours.
pub fn only_restricts(name: &str) -> bool {
    let name = letters(name);
    let ends = |rest: &str| ENDINGS.contains(&rest.trim_end_matches("list"));
    VERBS.iter().any(|verb| name.strip_prefix(verb).is_some_and(ends)) || is_list(&name)
}

/// Whether a name is that of a list of ours. A long one may have one wrong letter; a short one may not, as it
/// would be too close to other words.
fn is_list(name: &str) -> bool {
    let mut known = LISTS.iter().map(|(_, key, _)| letters(key));
    known.any(|key| name == key || key.len() > 6 && strsim::osa_distance(name, &key) <= 1)
}

/// The letters of a name: the same for `core_tools`, `core-tools` and `CoreTools`.
pub fn letters(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Whether a name is probably a misspelling of a known one.
pub fn is_nearly(name: &str, known: &str) -> bool {
    let allowed = if known.len() <= 6 { 1 } else { 2 };
    strsim::osa_distance(name, known) <= allowed
}
