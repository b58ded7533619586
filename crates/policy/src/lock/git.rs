//! What git runs of itself, where rules allow only some of its commands.
//!
//! Git runs its own commands, and also what settings name: pagers, editors, helpers. With `core.pager = git push`, a
//! rule that allows `git log` would allow `git push` as well if git might run all of itself.

use crate::locked::{LockedArguments, LockedCall, LockedWord};
use crate::names::Names;
use crate::script::Word;
use crate::subcommands::{after_global_options, is_git_alias};

/// Where git has its own programs.
pub const FOLDERS: [&str; 2] = ["/usr/lib*/git-core/", "/usr/local/lib*/git-core/"];

/// Programs in these folders that git runs for several commands, and that do nothing which another rule may be about.
const PARTS: [&str; 7] = [
    "git-remote-*",
    "git-credential*",
    "git-merge-*",
    "git-sh-*",
    "git-submodule",
    "git-upload-archive",
    "git-upload-pack",
];

/// The other end of a push to a repository on this machine.
pub const RECEIVER: &str = "git-receive-pack";

/// Commands that git runs for several others, or that only show something.
const FOR_ALL: &str = "
    annotate, blame, cat-file, check-attr, check-ignore, check-mailmap, check-ref-format, checkout-index, cherry,
    column, commit-graph verify, commit-graph write, config --bool, config --get, config --get-all,
    config --get-regexp, count-objects, credential-cache, credential-store, describe, diff, diff-files, diff-index,
    diff-tree, fetch-pack, fmt-merge-msg, for-each-ref, fsmonitor--daemon start, gc, grep, hash-object, index-pack,
    log, ls-files, ls-tree, maintenance run, merge-base, merge-file, merge-index, merge-one-file, merge-tree,
    multi-pack-index, name-rev, notes copy, pack-objects, pack-refs, patch-id, prune, prune-packed, range-diff,
    read-tree, reflog expire, repack, rerere gc, rev-list, rev-parse, shortlog, show,
    show-branch, show-index, show-ref, status, stripspace, submodule--helper, unpack-file, unpack-objects,
    update-index, update-server-info, upload-pack, var, verify-commit, verify-pack, verify-tag, version,
    worktree prune, write-tree, sh-i18n--envsubst, --exec-path, --version, --no-pager show, --git-dir=* for-each-ref";

/// What an alias may stand for without another rule: commands that only show something.
const SHOWS: &str = "
    annotate, blame, cat-file, cherry, describe, diff, diff-files, diff-index, diff-tree, grep, log, ls-files, ls-tree,
    merge-base, name-rev, range-diff, rev-list, rev-parse, shortlog, show, show-branch, show-ref, status, var, version";

/// Commands, and the ones that git runs for them besides.
const FOR_ONE: &[(Names, &[&str])] = &[
    (Names("push"), &["send-pack", "receive-pack"]),
    (Names("pull"), &["fetch", "merge", "rebase"]),
    (Names("fetch remote"), &["fetch"]),
    (Names("clone"), &["submodule", "clone", "checkout", "sparse-checkout"]),
    (
        Names("submodule"),
        &["submodule", "clone", "fetch", "checkout", "merge", "rebase", "reset", "config", "add"],
    ),
    (Names("stash"), &["reset", "clean", "checkout", "apply", "add"]),
    (Names("worktree"), &["reset", "checkout", "branch", "update-ref", "symbolic-ref"]),
    (
        Names("rebase"),
        &["am", "commit", "checkout", "merge", "stash", "reset", "rebase", "cherry-pick"],
    ),
    (Names("am cherry-pick merge revert"), &["commit", "stash", "reset"]),
    (Names("bisect"), &["checkout", "reset", "show-branch", "update-ref", "log"]),
    (Names("checkout switch"), &["submodule"]),
];

/// Commands that are scripts, and run many others.
const SCRIPTS: Names = Names(
    "citool cvsexportcommit cvsimport cvsserver difftool filter-branch gui instaweb mergetool p4 quiltimport \
     request-pull send-email subtree svn",
);

/// The parts of git that it needs, as patterns, and which commands it needs of itself.
pub struct Own {
    pub parts: Vec<String>,
    pub commands: Vec<LockedArguments>,
    /// Whether it runs [`RECEIVER`].
    pub receives: bool,
}

/// What git needs of itself for calls with these arguments, if rules allow these commands with any. `None` means
/// everything.
pub fn own(calls: &[LockedCall], allowed: &[&str]) -> Option<Own> {
    let all = |list: &str| list.split(',').map(|text| arguments(text.trim())).collect::<Vec<_>>();
    let (mut commands, mut subs) = (Vec::new(), Vec::new());
    for call in calls {
        let words: Vec<_> = call.words.iter().map_while(known).collect();
        let rest = after_global_options("git", &words).unwrap_or_default();
        let Some(sub) = rest.first().and_then(Word::literal) else { continue };
        if SCRIPTS.has(&sub) {
            return None;
        }
        // An alias may stand for any command, and the request may have changed it.
        match is_git_alias(&words) {
            true => {
                commands.extend(all(SHOWS));
                commands.extend(allowed.iter().map(|sub| arguments(sub)));
            }
            false => subs.push(sub.into_owned()),
        }
    }
    if !subs.is_empty() || commands.is_empty() {
        commands.extend(all(FOR_ALL));
    }
    let mut at = 0;
    while let Some(sub) = subs.get(at).cloned() {
        let rows = FOR_ONE.iter().filter(|(names, _)| names.has(&sub));
        for more in rows.flat_map(|(_, more)| *more) {
            commands.push(arguments(more));
            if !subs.iter().any(|known| known == more) {
                subs.push((*more).to_owned());
            }
        }
        at += 1;
    }
    let receives = subs.iter().any(|sub| sub == "push").then_some(RECEIVER);
    let parts = PARTS.iter().copied().chain(receives);
    let parts = parts.flat_map(|part| FOLDERS.map(|folder| format!("{folder}{part}")));
    Some(Own { parts: parts.collect(), commands, receives: receives.is_some() })
}

/// The arguments of a command of git, and any after them.
fn arguments(command: &str) -> LockedArguments {
    let word = |word: &str| match word.strip_suffix('*') {
        Some(start) => LockedWord::Begins(start.to_owned()),
        None => LockedWord::Known(word.to_owned()),
    };
    command.split(' ').map(word).chain([LockedWord::Many]).collect()
}

fn known(word: &LockedWord) -> Option<Word> {
    match word {
        LockedWord::Known(text) => Some(Word::known(text, 0..0)),
        _ => None,
    }
}
