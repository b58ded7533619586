//! Finds commands that look like an attack, whatever the rules say.

use std::borrow::Cow;

use crate::names::Names;
use crate::script::{RedirectKind, Script, SimpleCommand, Span, Word};

/// A command that looks like an attack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Threat {
    pub what: &'static str,
    pub span: Span,
}

const SHELLS: Names = Names("sh bash dash zsh ksh ash fish python python3 perl ruby node");
const DOWNLOADERS: Names = Names("curl wget fetch aria2c lwp-download");
const READERS: Names = Names("eval source .");

/// Parts of the paths of files with secrets.
const CREDENTIALS: &[&str] = &[
    ".ssh/id_",
    ".ssh/identity",
    ".aws/credentials",
    ".netrc",
    ".git-credentials",
    ".gnupg/",
    "/etc/shadow",
    "/etc/sudoers",
    ".kube/config",
    ".docker/config.json",
    ".npmrc",
    ".pypirc",
    ".config/gcloud",
    ".config/gh/hosts",
    ".azure/",
    ".vault-token",
    ".pgpass",
    "/environ",
    "login.keychain",
    "Cookies.sqlite",
    "Login Data",
];

/// Parts of the paths of files that something runs later.
const STARTUP: Names = Names(
    ".bashrc .bash_profile .bash_login .profile .zshrc .zprofile .zshenv /etc/cron \
     /var/spool/cron .config/autostart authorized_keys /etc/profile /etc/rc.local .git/hooks/ \
     systemd/system/ systemd/user/ config.fish /etc/ld.so.preload LaunchAgents",
);

/// A text without any of these has no threats: most texts need not be parsed at all.
const SIGNS: &[&str] = &[
    "curl",
    "wget",
    "fetch",
    "aria2c",
    "lwp-download",
    "base64",
    "base32",
    "xxd",
    "openssl",
    "uudecode",
    "gunzip",
    "/dev/tcp",
    "/dev/udp",
    "nc",
    "netcat",
    "socat",
    "socket",
    "history",
    "HISTFILE",
    "/var/log",
    "rm",
    "dd",
    "mkfs",
    "at",
    "crontab",
    "systemctl",
];

/// Whether a text may have a threat in it.
pub fn may_be_in(text: &str) -> bool {
    // Quotes and expansions can hide any of the signs.
    let odd = text.contains(['\'', '"', '\\', '$', '`', '*', '?', '{', '<', '>']);
    let named = |sign: &&str| text.contains(*sign);
    odd || SIGNS.iter().any(named)
        || CREDENTIALS.iter().any(named)
        || STARTUP.iter().any(|sign| text.contains(sign))
}

/// The threats in a script, command by command.
pub fn find(script: &Script) -> Vec<Threat> {
    let all: Vec<_> = script.commands.iter().map(Seen::new).collect();
    let mut threats = Vec::new();
    for (at, seen) in all.iter().enumerate() {
        let found = [
            runs_download(&all, at),
            opens_shell(seen),
            reads_credentials(seen),
            wipes_history(seen),
            stays(seen),
            destroys(seen),
        ];
        let span = &seen.command.span;
        threats.extend(found.into_iter().flatten().map(|what| Threat { what, span: span.clone() }));
    }
    threats
}

/// A command, and the known parts of its words.
struct Seen<'a> {
    command: &'a SimpleCommand,
    name: String,
    texts: Vec<Cow<'a, str>>,
}

impl<'a> Seen<'a> {
    fn new(command: &'a SimpleCommand) -> Self {
        let literal = command.words.first().and_then(Word::literal).unwrap_or_default();
        let texts = command.words.iter().map(known).collect();
        Self { command, name: crate::paths::base_name(&literal).to_owned(), texts }
    }

    fn is(&self, names: &[&str]) -> bool {
        names.contains(&self.name.as_str())
    }

    fn has(&self, texts: &[&str]) -> bool {
        self.texts.iter().any(|text| texts.contains(&&**text))
    }

    /// The files it writes by redirection.
    fn written(&self) -> impl Iterator<Item = Cow<'a, str>> {
        self.command.redirects.iter().filter_map(|redirect| match &redirect.kind {
            RedirectKind::Write(word) => Some(known(word)),
            _ => None,
        })
    }
}

/// The text of a word, or of its end.
fn known(word: &Word) -> Cow<'_, str> {
    word.text().unwrap_or_else(|| word.suffix().into())
}

/// A shell that runs a download, or decoded text.
fn runs_download(all: &[Seen<'_>], at: usize) -> Option<&'static str> {
    let (seen, before) = (&all[at], &all[..at]);
    let command = seen.command;
    let shell = SHELLS.has(&seen.name);
    if !shell && !READERS.has(&seen.name) {
        return None;
    }
    let feeds = |other: &&Seen<'_>| {
        let (ours, theirs) = (&command.span, &other.command.span);
        let inside = ours.start <= theirs.start && theirs.end <= ours.end;
        let piped = shell && command.piped && other.command.pipeline == command.pipeline;
        inside || piped
    };
    let mut feeding = before.iter().filter(feeds);
    if feeding.clone().any(|other| DOWNLOADERS.has(&other.name)) {
        return Some("a shell runs a download");
    }
    feeding.any(decodes).then_some("a shell runs decoded text")
}

fn decodes(seen: &Seen<'_>) -> bool {
    let asks = seen.has(&["-d", "-D", "--decode", "-r", "-di", "-rp", "-p"]);
    let decoder = seen.is(&["base64", "base32", "xxd", "openssl", "uudecode"]);
    seen.name == "gunzip" || (decoder && asks)
}

fn opens_shell(seen: &Seen<'_>) -> Option<&'static str> {
    const WHAT: &str = "it looks like a reverse shell";
    let network = seen.command.redirects.iter().any(|redirect| match &redirect.kind {
        RedirectKind::Read(word) | RedirectKind::Write(word) | RedirectKind::Duplicate(word) => {
            let beginning = word.prefix();
            beginning.starts_with("/dev/tcp/") || beginning.starts_with("/dev/udp/")
        }
        _ => false,
    });
    let gives = |text: &Cow<'_, str>| {
        let cluster = text.starts_with('-') && !text.starts_with("--") && text.contains('e');
        cluster || ["-c", "--exec", "--sh-exec"].contains(&&**text)
    };
    let joins = |text: &Cow<'_, str>| {
        let text = text.to_lowercase();
        text.starts_with("exec:") || text.starts_with("system:")
    };
    let talks = |text: &Cow<'_, str>| {
        let signs = ["dup2", "pty", "subprocess", "exec", "/bin/sh"];
        text.contains("socket") && signs.iter().any(|sign| text.contains(sign))
    };
    let opens = match seen.name.as_str() {
        "nc" | "ncat" | "netcat" => seen.texts.iter().any(gives),
        "socat" => seen.texts.iter().any(joins),
        name => SHELLS.has(name) && seen.texts.iter().any(talks),
    };
    (network || opens).then_some(WHAT)
}

fn reads_credentials(seen: &Seen<'_>) -> Option<&'static str> {
    if seen.is(&["echo", "printf", "grep", "rg", "git"]) {
        return None;
    }
    let redirected = seen.command.redirects.iter().filter_map(|redirect| match &redirect.kind {
        RedirectKind::Read(word) => Some(known(word)),
        _ => None,
    });
    let mut paths = seen.texts.iter().skip(1).cloned().chain(redirected);
    let secret = |path: Cow<'_, str>| {
        let plain = path.contains(['.', '/']) && !path.contains(' ') && !path.ends_with(".pub");
        plain && CREDENTIALS.iter().any(|sign| path.contains(sign))
    };
    paths.any(secret).then_some("it reads a file with credentials")
}

fn wipes_history(seen: &Seen<'_>) -> Option<&'static str> {
    let file = |text: &Cow<'_, str>| text.ends_with("_history") || text.starts_with("/var/log/");
    let wipes = match seen.name.as_str() {
        "history" => seen.texts.iter().any(|text| text.starts_with("-c") || text == "-d"),
        "unset" => seen.has(&["HISTFILE"]),
        "rm" | "shred" | "truncate" => seen.texts.iter().any(file),
        _ => false,
    };
    let hidden = seen.command.assignments.iter().any(|assignment| {
        let value = assignment.value.text().unwrap_or_default();
        assignment.name == "HISTFILE" && (value.is_empty() || value == "/dev/null")
    });
    let emptied = seen.written().any(|path| file(&path));
    (wipes || hidden || emptied).then_some("it erases traces")
}

fn stays(seen: &Seen<'_>) -> Option<&'static str> {
    let starts = |path: &Cow<'_, str>| STARTUP.iter().any(|sign| path.contains(sign));
    let later = match seen.name.as_str() {
        "tee" | "cp" | "mv" | "install" | "ln" => seen.texts.last().is_some_and(starts),
        "systemctl" => seen.has(&["enable"]),
        "crontab" => !seen.has(&["-l"]),
        "at" => true,
        _ => false,
    };
    let written = seen.written().any(|path| starts(&path));
    (later || written).then_some("it installs something that runs later or at every start")
}

fn destroys(seen: &Seen<'_>) -> Option<&'static str> {
    const EVERYTHING: &[&str] =
        &["/", "/*", "~", "~/", "~/*", "/home", "/etc", "/usr", "--no-preserve-root"];
    const DISKS: &[&str] =
        &["of=/dev/sd", "of=/dev/nvme", "of=/dev/vd", "of=/dev/mmc", "of=/dev/disk"];
    let begins = |signs: &[&str]| {
        seen.texts.iter().any(|text| signs.iter().any(|sign| text.starts_with(sign)))
    };
    let recursive = |text: &Cow<'_, str>| {
        text.starts_with('-') && (text.contains(['r', 'R']) || text == "--recursive")
    };
    let destroys = match seen.name.as_str() {
        "rm" => seen.texts.iter().any(recursive) && seen.has(EVERYTHING),
        "dd" => begins(DISKS),
        name => name.starts_with("mkfs") && begins(&["/dev/"]),
    };
    destroys.then_some("it destroys a file system or a home directory")
}
