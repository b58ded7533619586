//! Tells what was taken away from the working directory.

use std::collections::BTreeMap;
use std::path::Path;

use mcpz_sandbox::{Fate, Taken, View};

/// One sentence for each file, however often it was created.
pub fn described(taken: &[Taken], view: &View) -> Vec<String> {
    let mut files: BTreeMap<&Path, (usize, &Fate)> = BTreeMap::new();
    for Taken { path, fate } in taken {
        let file = files.entry(path).or_insert((0, fate));
        *file = (file.0 + 1, fate);
    }
    let sentences = files.into_iter().map(|(path, (times, fate))| {
        let times = if times > 1 { format!(" ({times} times)") } else { String::new() };
        let allowed = view.protected_name(path).map(|name| {
            format!("; `--unprotect {name}` (`unprotected` in [sandbox]) would allow it")
        });
        let (path, allowed) = (path.display(), allowed.unwrap_or_default());
        match fate {
            Fate::Moved(kept) => format!(
                "sandbox: {path} was moved to {}{times}, because other programs would run what it says{allowed}",
                kept.display()
            ),
            Fate::Replaced(kept) => format!(
                "sandbox: {path} was put back{times}, because git would run programs that the new one names; that is \
                 now {}{allowed}",
                kept.display()
            ),
            Fate::Left(error) => format!(
                "sandbox: {path} makes other programs run what it says, and cannot be moved away: {error}; remove it \
                 before you open its folder with another program"
            ),
        }
    });
    sentences.collect()
}
