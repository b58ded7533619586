//! Commands whose names are nearly the one that was not found.

use std::ffi::OsStr;

/// How many are suggested.
const MOST: usize = 3;

/// What every shell does itself.
const BUILTINS: [&str; 24] = [
    "alias", "bg", "break", "cd", "command", "continue", "echo", "eval", "exec", "exit", "export",
    "fg", "getopts", "hash", "jobs", "read", "readonly", "return", "set", "shift", "times", "trap",
    "ulimit", "unset",
];

/// What `bash` knows and a plain `sh` need not.
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

/// Whether `bash` would know a word that another shell has taken for a program.
pub fn is_only_in_bash(name: &str) -> bool {
    ONLY_BASH.contains(&name)
}

/// The names on a `PATH`, or of what shells do themselves, that differ from `name` by little, nearest
/// first.
pub fn similar_commands(name: &str, path: &OsStr) -> Vec<String> {
    let allowed = if name.len() <= 3 { 1 } else { 2 };
    let mut found: Vec<(usize, String)> = std::env::split_paths(path)
        .filter_map(|folder| std::fs::read_dir(folder).ok())
        .flat_map(|folder| folder.flatten())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .chain(BUILTINS.map(str::to_owned))
        .filter(|known| known.len().abs_diff(name.len()) <= allowed)
        .map(|known| (distance(name, &known), known))
        .filter(|(distance, _)| *distance <= allowed)
        .collect();
    found.sort();
    found.dedup();
    found.into_iter().take(MOST).map(|(_, name)| name).collect()
}

/// How many letters have to be changed, added, left out or swapped with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<_>, Vec<_>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, j) in (0..=a.len()).flat_map(|i| (0..=b.len()).map(move |j| (i, j))) {
        rows[i][j] = match (i, j) {
            (0, _) | (_, 0) => i + j,
            _ => {
                let change = usize::from(a[i - 1] != b[j - 1]);
                let mut least =
                    (rows[i - 1][j - 1] + change).min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    least = least.min(rows[i - 2][j - 2] + 1);
                }
                least
            }
        };
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_changed_added_left_out_or_swapped_count_one_each() {
        for (a, b, expected) in [
            ("git", "git", 0),
            ("gti", "git", 1),
            ("gt", "git", 1),
            ("grep", "grap", 1),
            ("ls", "cat", 3),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn near_names_are_found_on_the_path() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["git", "gitk", "cargo"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        assert_eq!(similar_commands("gti", folder.path().as_os_str()), ["git"]);
        assert_eq!(similar_commands("nothing", folder.path().as_os_str()), [""; 0]);
    }
}
