//! Suggests commands with names close to one that was not found.

/// How many to suggest.
const MAX_SUGGESTIONS: usize = 3;

/// Builtins of every shell.
const BUILTINS: [&str; 24] = [
    "alias", "bg", "break", "cd", "command", "continue", "echo", "eval", "exec", "exit", "export",
    "fg", "getopts", "hash", "jobs", "read", "readonly", "return", "set", "shift", "times", "trap",
    "ulimit", "unset",
];

/// Words that `bash` knows and plain `sh` may not.
const ONLY_BASH: [&str; 27] = [
    "((",
    "[[",
    "bind",
    "builtin",
    "caller",
    "compgen",
    "complete",
    "declare",
    "dirs",
    "disown",
    "enable",
    "function",
    "history",
    "let",
    "local",
    "logout",
    "mapfile",
    "popd",
    "pushd",
    "readarray",
    "select",
    "shopt",
    "source",
    "suspend",
    "time",
    "typeset",
    "coproc",
];

/// Whether a word that a shell took for a program is one that `bash` knows.
pub fn is_only_in_bash(name: &str) -> bool {
    ONLY_BASH.contains(&name)
}

/// The programs and builtins with names close to `name`, closest first.
pub fn similar_commands(name: &str, programs: Vec<String>) -> Vec<String> {
    // A longer name has more room for slips.
    let allowed = if name.chars().count() <= 3 { 1 } else { 2 };
    let mut found: Vec<(usize, String)> = programs
        .into_iter()
        .chain(BUILTINS.map(str::to_owned))
        .filter(|known| known.len().abs_diff(name.len()) <= allowed)
        .map(|known| (strsim::osa_distance(name, &known), known))
        .filter(|(distance, _)| *distance <= allowed)
        .collect();
    found.sort();
    found.dedup();
    found.into_iter().take(MAX_SUGGESTIONS).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found() {
        let programs = || ["git", "gitk", "cargo"].map(str::to_owned).to_vec();
        for near in ["gti", "gt", "giz"] {
            assert_eq!(similar_commands(near, programs()), ["git"]);
        }
        assert_eq!(similar_commands("nothing", programs()), [""; 0]);
    }
}
