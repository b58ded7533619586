//! Which settings of git run nothing and lead nowhere else.
//!
//! Git runs programs for many of its settings, and new versions add more. So the harmless ones are listed. A line that
//! cannot be understood at a glance, such as one with a continuation, counts as harmful.

use std::path::{Component, Path, PathBuf};

/// Settings in sections without a name of their own. `*` stands for all.
const SETTINGS: &[(&str, &[&str])] = &[
    (
        "core",
        &[
            "abbrev",
            "autocrlf",
            "bare",
            "bigfilethreshold",
            "checkstat",
            "commentchar",
            "compression",
            "eol",
            "filemode",
            "fscache",
            "ignorecase",
            "logallrefupdates",
            "longpaths",
            "precomposeunicode",
            "preloadindex",
            "protecthfs",
            "protectntfs",
            "quotepath",
            "repositoryformatversion",
            "safecrlf",
            "sharedrepository",
            "sparsecheckout",
            "sparsecheckoutcone",
            "symlinks",
            "trustctime",
            "untrackedcache",
            "whitespace",
        ],
    ),
    ("advice", &["*"]),
    ("author", &["name", "email"]),
    ("branch", &["autosetupmerge", "autosetuprebase", "sort"]),
    ("color", &["*"]),
    ("column", &["*"]),
    ("commit", &["cleanup", "status", "verbose"]),
    ("committer", &["name", "email"]),
    (
        "diff",
        &[
            "algorithm",
            "colormoved",
            "context",
            "mnemonicprefix",
            "noprefix",
            "renames",
            "submodule",
        ],
    ),
    (
        "extensions",
        &[
            "compatobjectformat",
            "objectformat",
            "partialclone",
            "refstorage",
            "relativeworktrees",
            "worktreeconfig",
        ],
    ),
    ("feature", &["*"]),
    ("fetch", &["parallel", "prune", "prunetags", "recursesubmodules", "writecommitgraph"]),
    ("gc", &["auto"]),
    ("index", &["*"]),
    ("init", &["defaultbranch"]),
    ("log", &["abbrevcommit", "date", "decorate", "follow"]),
    ("merge", &["conflictstyle", "ff", "log", "renames", "stat"]),
    ("pack", &["*"]),
    ("pull", &["ff", "rebase"]),
    ("push", &["autosetupremote", "default", "followtags"]),
    ("rebase", &["autosquash", "autostash", "missingcommitscheck", "stat", "updaterefs"]),
    ("rerere", &["autoupdate", "enabled"]),
    ("stash", &["*"]),
    ("status", &["*"]),
    ("submodule", &["active", "fetchjobs", "recurse"]),
    ("tag", &["sort"]),
    ("user", &["name", "email", "signingkey", "useconfigonly"]),
];

/// Settings in sections with a name: `[remote "origin"]`.
const NAMED_SETTINGS: &[(&str, &[&str])] = &[
    (
        "branch",
        &[
            "description",
            "gh-merge-base",
            "github-pr-owner-number",
            "merge",
            "pushremote",
            "rebase",
            "vscode-merge-base",
        ],
    ),
    (
        "remote",
        &[
            "fetch",
            "gh-resolved",
            "mirror",
            "partialclonefilter",
            "promisor",
            "prune",
            "prunetags",
            "push",
            "skipdefaultupdate",
            "skipfetchall",
            "tagopt",
        ],
    ),
    ("submodule", &["active", "branch", "fetchrecursesubmodules", "ignore", "path", "shallow"]),
];

/// Where a configuration belongs.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The git folder.
    pub git: &'a Path,
    /// The folder that its work tree must be in.
    pub root: &'a Path,
}

/// The lines that may run something or lead elsewhere, each with its section.
pub fn harmful(text: &str, place: Place<'_>) -> Vec<String> {
    lines(text, place).filter(|line| line.is_harmful).map(|line| line.shown()).collect()
}

/// Whether a configuration may become another one: nothing harmful is new, gone or changed.
pub fn may_become(old: &str, new: &str, config: &Path, root: &Path) -> bool {
    let place = Place { git: config.parent().unwrap_or(root), root };
    harmful(old, place) == harmful(new, place)
}

/// The same text without them.
pub fn without_harmful(text: &str, place: Place<'_>) -> String {
    let kept = lines(text, place).filter(|line| !line.is_harmful);
    kept.flat_map(|line| [line.text, "\n"]).collect()
}

struct Line<'a> {
    text: &'a str,
    section: Option<Section<'a>>,
    is_harmful: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Section<'a> {
    kind: &'a str,
    name: Option<&'a str>,
}

impl Line<'_> {
    fn shown(&self) -> String {
        let text = self.text.trim();
        match self.section {
            Some(Section { kind, name: Some(name) }) => format!("[{kind} \"{name}\"] {text}"),
            Some(Section { kind, name: None }) => format!("[{kind}] {text}"),
            None => text.to_owned(),
        }
    }
}

fn lines<'a>(text: &'a str, place: Place<'a>) -> impl Iterator<Item = Line<'a>> {
    let mut section = None;
    text.lines().map(move |text| {
        let line = text.trim();
        let is_plain = !line.contains(['\\', '\0', '\r']);
        let is_harmful = if line.is_empty() || is_plain && line.starts_with(['#', ';']) {
            false
        } else if let Some(opened) = Section::parse(line).filter(|_| is_plain) {
            section = Some(opened);
            false
        } else {
            let setting = section.zip(setting(line)).filter(|_| is_plain);
            !setting.is_some_and(|(section, (key, value))| section.takes(&key, value, place))
        };
        Line { text, section, is_harmful }
    })
}

/// `key = value`, or a key alone. A comment at the end stays with the value.
fn setting(line: &str) -> Option<(String, &str)> {
    let (key, value) = line.split_once('=').unwrap_or((line, "true"));
    let key = key.trim();
    let is_name = key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    (is_name && !key.is_empty()).then(|| (key.to_ascii_lowercase(), value.trim()))
}

impl<'a> Section<'a> {
    /// `[core]` or `[remote "origin"]`.
    fn parse(line: &'a str) -> Option<Self> {
        let inside = line.strip_prefix('[')?.strip_suffix(']')?;
        let (kind, name) = match inside.split_once(' ') {
            Some((kind, name)) => (kind, Some(name.strip_prefix('"')?.strip_suffix('"')?)),
            None => (inside, None),
        };
        let is_name = kind.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let is_plain = name.is_none_or(|name| !name.contains('"'));
        (is_name && is_plain).then_some(Self { kind, name })
    }

    /// Whether a setting in this section is harmless.
    fn takes(self, key: &str, value: &str, place: Place<'_>) -> bool {
        let kind = self.kind.to_ascii_lowercase();
        let table = if self.name.is_some() { NAMED_SETTINGS } else { SETTINGS };
        let has = |keys: &[&str]| keys.contains(&"*") || keys.contains(&key);
        let is_switch = |value: &str| ["true", "false"].contains(&value);
        match (kind.as_str(), self.name.is_some(), key) {
            ("core", false, "fsmonitor") => is_switch(value),
            ("core", false, "worktree") => is_inside(value, place),
            ("commit" | "tag", false, "gpgsign") => value == "false",
            ("remote", true, "url" | "pushurl") => is_address(value),
            ("branch", true, "remote") => is_address(value),
            ("submodule", true, "url") => is_address(value),
            ("submodule", true, "update") => {
                ["checkout", "rebase", "merge", "none"].contains(&value)
            }
            _ => table.iter().any(|(section, keys)| *section == kind && has(keys)),
        }
    }
}

/// Whether git would fetch from there without running a program for it, as it does for `ext::sh -c …`.
fn is_address(value: &str) -> bool {
    !value.starts_with(['-', '"']) && !value.contains("::")
}

/// Whether a work tree is in the folder of its repository.
fn is_inside(value: &str, place: Place<'_>) -> bool {
    let mut path = PathBuf::new();
    for part in place.git.join(value).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            part => path.push(part),
        }
    }
    path.starts_with(place.root) && !path.components().any(|part| part.as_os_str() == ".git")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Vec<String> {
        harmful(text, Place { git: Path::new("/p/.git/modules/sub"), root: Path::new("/p") })
    }

    #[test]
    fn what_git_writes_by_itself_is_harmless() {
        let text = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\
                    \tworktree = ../../../sub\n[remote \"origin\"]\n\turl = https://example.org/x.git\n\
                    \tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n\
                    \tmerge = refs/heads/main\n[user]\n\tname = Ann O'Hara\n# a comment\n\n\
                    [submodule \"sub\"]\n\tactive = true\n\turl = git@example.org:x/y.git\n";
        assert_eq!(check(text), Vec::<String>::new());
    }

    #[test]
    fn what_runs_a_program_or_leads_elsewhere_is_harmful() {
        for line in [
            "[core]\n\tfsmonitor = ./x",
            "[core]\n\thooksPath = x",
            "[core]\n\tsshCommand = x",
            "[core]\n\tpager = x",
            "[core]\n\tworktree = /home/ann",
            "[core]\n\tworktree = ../../../../x",
            "[core]\n\tworktree = ../../../.git",
            "[core] fsmonitor = ./x",
            "[core]\n\tbare = false \\\n",
            "[core.x]\n\tbare = false",
            "[include]\n\tpath = x",
            "[includeIf \"gitdir:/\"]\n\tpath = x",
            "[alias]\n\tst = !x",
            "[filter \"x\"]\n\tclean = x",
            "[diff \"x\"]\n\ttextconv = x",
            "[diff]\n\texternal = x",
            "[remote \"o\"]\n\turl = ext::sh -c x",
            "[remote \"o\"]\n\tuploadpack = x",
            "[branch \"b\"]\n\tremote = ext::x",
            "[submodule \"s\"]\n\tupdate = !x",
            "[commit]\n\tgpgsign = true",
            "[gpg]\n\tprogram = x",
            "[credential]\n\thelper = x",
            "name = value before any section",
            "[user \"x\"]\n\tname = y\\",
            "\u{feff}[core]",
        ] {
            assert_ne!(check(line), Vec::<String>::new(), "{line}");
        }
    }

    #[test]
    fn the_rest_stays_when_harmful_lines_go() {
        let text = "[core]\n\tbare = false\n\tpager = x\n[alias]\n\ta = !b\n[user]\n\tname = Ann\n";
        let place = Place { git: Path::new("/p/.git"), root: Path::new("/p") };
        let kept = "[core]\n\tbare = false\n[alias]\n[user]\n\tname = Ann\n";
        assert_eq!(without_harmful(text, place), kept);
        assert_eq!(harmful(text, place), ["[core] pager = x", "[alias] a = !b"]);
    }
}
