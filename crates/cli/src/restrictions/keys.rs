//! Which keys of a settings file are rules, and which only look like some.

/// Where rules are.
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
    /// They may run when a person says so.
    Ask,
    /// They run without a person being asked, which restricts nothing.
    Unasked,
}

const LISTS: [(Section, &str, Effect); 10] = [
    (Section::Top, "coreTools", Effect::Only),
    (Section::Top, "excludeTools", Effect::Never),
    (Section::Top, "allowedTools", Effect::Unasked),
    (Section::Tools, "core", Effect::Only),
    (Section::Tools, "exclude", Effect::Never),
    (Section::Tools, "allowed", Effect::Unasked),
    (Section::Tools, "confirmationRequired", Effect::Ask),
    (Section::Permissions, "allow", Effect::Unasked),
    (Section::Permissions, "ask", Effect::Ask),
    (Section::Permissions, "deny", Effect::Never),
];

/// Parts of names by which people restrict something.
const VERBS: [&str; 14] = [
    "allow",
    "banned",
    "blacklist",
    "block",
    "confirm",
    "core",
    "denied",
    "denies",
    "deny",
    "disabled",
    "exclu",
    "forbid",
    "restrict",
    "whitelist",
];

/// Parts of names of what they restrict here, and not servers or variables.
const OBJECTS: [&str; 6] = ["bash", "cmd", "command", "permission", "shell", "tool"];

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

    /// Whether there is a section of that name in it.
    pub fn has(self, name: &str) -> bool {
        self == Self::Top && [Self::Tools, Self::Permissions].iter().any(|it| it.name() == name)
    }

    /// What a list of that name does, if it is one.
    pub fn effect(self, name: &str) -> Option<Effect> {
        let found = LISTS.iter().find(|(section, key, _)| *section == self && *key == name);
        found.map(|(_, _, effect)| *effect)
    }

    /// Whether a key that is none of ours could have been meant as a rule.
    pub fn is_suspicious(self, name: &str) -> bool {
        let name = letters(name);
        let restricts = VERBS.iter().any(|verb| name.contains(verb));
        let meant = match self {
            Self::Top => {
                let about = OBJECTS.iter().any(|object| name.contains(object));
                // `deny` alone, or `denylist`.
                let alone = VERBS.iter().any(|verb| name.trim_end_matches("list") == *verb);
                restricts && (about || alone)
            }
            // Paths of a sandbox are not commands.
            Self::Tools => restricts && !name.starts_with("sandbox"),
            Self::Permissions => restricts,
        };
        meant || self.names().any(|known| is_nearly(&name, &letters(known)))
    }

    /// The names it knows.
    fn names(self) -> impl Iterator<Item = &'static str> {
        let lists = LISTS.iter().filter(move |(section, _, _)| *section == self);
        let sections = [Self::Tools, Self::Permissions].map(Self::name).into_iter();
        let sections = sections.filter(move |_| self == Self::Top);
        lists.map(|(_, key, _)| *key).chain(sections)
    }
}

/// A name as one would say it: `core_tools`, `core-tools` and `CoreTools` are the same.
pub fn letters(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Whether somebody could have meant the one and typed the other.
pub fn is_nearly(name: &str, known: &str) -> bool {
    let allowed = if known.len() <= 6 { 1 } else { 2 };
    strsim::osa_distance(name, known) <= allowed
}
