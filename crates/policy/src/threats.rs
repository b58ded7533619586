//! Commands that look like an attack, whatever the rules say.

use crate::judge::Judge;
use crate::script::{Script, Simple, Span, Way, Word};
use crate::words::Words;

/// Something to be warned of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Threat {
    pub what: &'static str,
    pub span: Span,
}

const SHELLS: Words = Words("sh bash dash zsh ksh ash fish python python3 perl ruby node");
const DOWNLOADERS: Words = Words("curl wget fetch aria2c lwp-download");
const READERS: Words = Words("eval source .");

/// Files with secrets in them, by what stands in their paths.
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

/// Files that are run later, by what stands in their paths.
const STARTUP: Words = Words(
    ".bashrc .bash_profile .bash_login .profile .zshrc .zprofile .zshenv /etc/cron \
     /var/spool/cron .config/autostart authorized_keys /etc/profile /etc/rc.local .git/hooks/ \
     systemd/system/ systemd/user/ config.fish /etc/ld.so.preload LaunchAgents",
);

/// Looks at every command of a script.
pub fn look(judge: &mut Judge<'_>, script: &Script) {
    for (at, command) in script.commands.iter().enumerate() {
        let found = [
            runs_download(script, at, command),
            opens_shell(command),
            reads_credentials(command),
            wipes_history(command),
            stays(command),
            destroys(command),
        ];
        for what in found.into_iter().flatten() {
            let threat = Threat { what, span: command.span.clone() };
            if !judge.threats.contains(&threat) {
                judge.threats.push(threat);
            }
        }
    }
}

fn name(command: &Simple) -> String {
    let literal = command.words.first().and_then(Word::literal).unwrap_or_default();
    crate::rule::base_name(&literal).to_owned()
}

fn texts(command: &Simple) -> impl Iterator<Item = String> {
    command.words.iter().map(|word| word.data().unwrap_or_else(|| word.beginning()))
}

/// Downloads and decoded text that a shell runs.
fn runs_download(script: &Script, at: usize, command: &Simple) -> Option<&'static str> {
    let own = name(command);
    let downloads = |other: &Simple| DOWNLOADERS.has(&name(other));
    let decodes = |other: &Simple| {
        let decoder = ["base64", "base32", "xxd", "openssl", "gunzip", "uudecode"];
        let asks = texts(other).any(|text| {
            ["-d", "-D", "--decode", "-r", "-di", "-rp", "-p"].contains(&text.as_str())
        });
        decoder.contains(&name(other).as_str()) && (asks || name(other) == "gunzip")
    };
    if SHELLS.has(&own) && command.piped {
        let before = &script.commands[..at];
        let mut stages = before.iter().filter(|other| other.pipeline == command.pipeline);
        if stages.clone().any(downloads) {
            return Some("a download is run by a shell");
        }
        if stages.any(decodes) {
            return Some("decoded text is run by a shell");
        }
    }
    if SHELLS.has(&own) || READERS.has(&own) {
        let inside = |other: &&Simple| {
            command.span.start <= other.span.start && other.span.end <= command.span.end
        };
        let mut inner = script.commands[..at].iter().filter(inside);
        if inner.clone().any(downloads) {
            return Some("a download is run by a shell");
        }
        if inner.any(decodes) {
            return Some("decoded text is run by a shell");
        }
    }
    None
}

fn opens_shell(command: &Simple) -> Option<&'static str> {
    const WHAT: &str = "it looks like a shell for somebody on the network";
    let network = command.redirects.iter().any(|redirect| match &redirect.way {
        Way::Read(word) | Way::Write(word) | Way::Copy(word) => {
            word.beginning().starts_with("/dev/tcp/") || word.beginning().starts_with("/dev/udp/")
        }
        _ => false,
    });
    let own = name(command);
    let listens = ["nc", "ncat", "netcat"].contains(&own.as_str())
        && texts(command).any(|text| {
            ["-e", "-c", "--exec", "--sh-exec"].contains(&text.as_str())
                || (text.starts_with('-') && !text.starts_with("--") && text.contains('e'))
        });
    let joins = own == "socat"
        && texts(command).any(|text| {
            let text = text.to_lowercase();
            text.starts_with("exec:") || text.starts_with("system:")
        });
    let program = SHELLS.has(&own)
        && texts(command).any(|text| {
            text.contains("socket")
                && ["dup2", "pty", "subprocess", "exec", "/bin/sh"]
                    .iter()
                    .any(|sign| text.contains(sign))
        });
    (network || listens || joins || program).then_some(WHAT)
}

fn reads_credentials(command: &Simple) -> Option<&'static str> {
    let redirected = command.redirects.iter().filter_map(|redirect| match &redirect.way {
        Way::Read(word) => Some(word.data().unwrap_or_else(|| word.end())),
        _ => None,
    });
    let paths = command.words.iter().skip(1).map(|word| word.data().unwrap_or_else(|| word.end()));
    let mut all = paths.chain(redirected);
    let harmless = ["echo", "printf", "grep", "rg", "git"].contains(&name(command).as_str());
    let secret = all.any(|path| {
        let public = path.ends_with(".pub");
        CREDENTIALS.iter().any(|sign| path.contains(sign)) && !public && !path.contains(' ')
    });
    (secret && !harmless).then_some("it reads a file with credentials")
}

fn wipes_history(command: &Simple) -> Option<&'static str> {
    const WHAT: &str = "it hides what was done";
    let own = name(command);
    let history =
        own == "history" && texts(command).any(|text| text.starts_with("-c") || text == "-d");
    let variable = command.assignments.iter().any(|assignment| {
        let value = assignment.value.data().unwrap_or_default();
        assignment.name == "HISTFILE" && (value.is_empty() || value == "/dev/null")
    });
    let unset = own == "unset" && texts(command).any(|text| text == "HISTFILE");
    let file = |text: &String| text.ends_with("_history") || text.starts_with("/var/log/");
    let removed = ["rm", "shred", "truncate"].contains(&own.as_str())
        && texts(command).any(|text| file(&text));
    let emptied = command.redirects.iter().any(|redirect| {
        matches!(&redirect.way, Way::Write(word) if word.data().is_some_and(|text| file(&text)))
    });
    (history || variable || unset || removed || emptied).then_some(WHAT)
}

fn stays(command: &Simple) -> Option<&'static str> {
    const WHAT: &str = "it makes something run later or at every start";
    let own = name(command);
    let lists = texts(command).any(|text| text == "-l");
    let written = command.redirects.iter().any(|redirect| {
        matches!(&redirect.way, Way::Write(word) if STARTUP.iter().any(|sign| word.data().unwrap_or_else(|| word.end()).contains(sign)))
    });
    let copies = ["tee", "cp", "mv", "install", "ln"].contains(&own.as_str())
        && command.words.last().is_some_and(|word| {
            let path = word.data().unwrap_or_else(|| word.end());
            STARTUP.iter().any(|sign| path.contains(sign))
        });
    let service = own == "systemctl" && texts(command).any(|text| text == "enable");
    let later = (own == "crontab" && !lists) || own == "at";
    (written || copies || service || later).then_some(WHAT)
}

fn destroys(command: &Simple) -> Option<&'static str> {
    const WHAT: &str = "it destroys a file system or a home";
    let own = name(command);
    let recursive = texts(command)
        .any(|text| text.starts_with('-') && (text.contains(['r', 'R']) || text == "--recursive"));
    let everything = texts(command).any(|text| {
        ["/", "/*", "~", "~/", "~/*", "/home", "/etc", "/usr", "--no-preserve-root"]
            .contains(&text.as_str())
    });
    let device = own == "dd"
        && texts(command).any(|text| {
            ["of=/dev/sd", "of=/dev/nvme", "of=/dev/vd", "of=/dev/mmc", "of=/dev/disk"]
                .iter()
                .any(|sign| text.starts_with(sign))
        });
    let formats = own.starts_with("mkfs") && texts(command).any(|text| text.starts_with("/dev/"));
    ((own == "rm" && recursive && everything) || device || formats).then_some(WHAT)
}
