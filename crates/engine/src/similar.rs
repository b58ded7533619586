//! Suggests commands with names close to one that was not found.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

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

/// The programs on a `PATH` and the builtins with names close to `name`, closest first.
pub fn similar_commands(name: &str, path: &OsStr) -> Vec<String> {
    let allowed = if name.len() <= 3 { 1 } else { 2 };
    let mut found: Vec<(usize, String)> = path
        .as_bytes()
        .split(|byte| *byte == b':')
        .map(|folder| Path::new(OsStr::from_bytes(folder)))
        .filter_map(|folder| std::fs::read_dir(folder).ok())
        .flat_map(|folder| folder.flatten())
        .filter_map(|entry| entry.file_name().into_string().ok())
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
    fn near_names_are_found_on_the_path() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["git", "gitk", "cargo"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        for near in ["gti", "gt", "giz"] {
            assert_eq!(similar_commands(near, folder.path().as_os_str()), ["git"]);
        }
        assert_eq!(similar_commands("nothing", folder.path().as_os_str()), [""; 0]);
    }
}
