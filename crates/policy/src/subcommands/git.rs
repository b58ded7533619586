//! The sub-commands of git that no alias in somebody's settings can replace.

use super::after_global_options;
use crate::names::Names;
use crate::script::Word;

/// The ones that come with git.
const OWN: Names = Names(
    "add am annotate apply archimport archive backfill bisect blame branch bugreport bundle \
     cat-file check-attr check-ignore check-mailmap check-ref-format checkout \
     checkout--worker checkout-index cherry cherry-pick citool clean clone column commit \
     commit-graph commit-tree config count-objects credential credential-cache \
     credential-cache--daemon credential-netrc credential-store cvsexportcommit cvsimport \
     cvsserver daemon describe diagnose diff diff-files diff-index diff-pairs diff-tree \
     difftool difftool--helper fast-export fast-import fetch fetch-pack filter-branch \
     fmt-merge-msg for-each-ref for-each-repo format-patch fsck fsck-objects \
     fsmonitor--daemon gc get-tar-commit-id grep gui hash-object help history hook \
     http-backend http-fetch http-push imap-send index-pack init init-db instaweb \
     interpret-trailers last-modified log ls-files ls-remote ls-tree mailinfo mailsplit \
     maintenance merge merge-base merge-file merge-index merge-octopus merge-one-file \
     merge-ours merge-recursive merge-recursive-ours merge-recursive-theirs merge-resolve \
     merge-subtree merge-tree mergetool mktag mktree multi-pack-index mv name-rev notes p4 \
     pack-objects pack-redundant pack-refs patch-id pickaxe prune prune-packed pull push \
     quiltimport range-diff read-tree rebase receive-pack reflog refs remote remote-ext \
     remote-fd remote-ftp remote-ftps remote-http remote-https repack replace replay repo \
     request-pull rerere reset restore rev-list rev-parse revert rm send-email send-pack \
     sh-i18n--envsubst shell shortlog show show-branch show-index show-ref sparse-checkout \
     stage stash status stripspace submodule submodule--helper subtree survey svn switch \
     symbolic-ref tag unpack-file unpack-objects update-index update-ref update-server-info \
     upload-archive upload-archive--writer upload-pack url-parse var verify-commit \
     verify-pack verify-tag version web--browse whatchanged worktree write-tree",
);

/// Extensions that many people install.
const EXTENSIONS: Names =
    Names("absorb annex branchless crypt filter-repo flow lfs machete review secret town");

/// Whether git may take a word for a sub-command that is spelled like it: with `help.autocorrect`, git runs the command
/// that was probably meant. The setting may be anywhere.
pub fn is_mistyped(given: &str, wanted: &str) -> bool {
    let most = if wanted.len() < 4 { 1 } else { 2 };
    !OWN.has(given)
        && !EXTENSIONS.has(given)
        && given.len().abs_diff(wanted.len()) <= most
        && distance(given.as_bytes(), wanted.as_bytes()) <= most
}

/// How many letters have to be inserted, removed, replaced or swapped with their neighbours.
fn distance(one: &[u8], other: &[u8]) -> usize {
    let mut rows = vec![(0..=other.len()).collect::<Vec<_>>()];
    for (i, a) in one.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in other.iter().enumerate() {
            let replaced = rows[i][j] + usize::from(a != b);
            let mut least = replaced.min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == other[j - 1] && one[i - 1] == *b {
                least = least.min(rows[i - 1][j - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[one.len()][other.len()]
}

/// Whether these arguments of git begin with a sub-command that its settings may define: an alias for anything. With
/// `help.autocorrect`, this includes one that is mistyped.
pub fn is_alias(words: &[Word]) -> bool {
    let Some([sub, ..]) = after_global_options("git", words) else { return false };
    sub.literal().is_some_and(|sub| !OWN.has(&sub) && !EXTENSIONS.has(&sub))
}
