//! git: settings, transports and sub-commands that run programs.

use super::wrappers;
use crate::judge::{Call, Judge, Ruling};
use crate::options;
use crate::script::{Shell, Span, Word};
use crate::words::Words;

/// Settings that run nothing, by their beginning.
const HARMLESS: Words = Words(
    "advice. blame. branch. color. column. commit.gpgsign commit.verbose commit.status \
     core.abbrev core.autocrlf core.bare core.bigfilethreshold core.checkstat core.compression \
     core.eol core.filemode core.ignorecase core.logallrefupdates core.longpaths \
     core.precomposeunicode core.preloadindex core.protecthfs core.quotepath core.safecrlf \
     core.sharedrepository core.symlinks core.trustctime core.untrackedcache core.whitespace \
     diff.algorithm diff.colormoved diff.context diff.indentheuristic diff.mnemonicprefix \
     diff.noprefix diff.renamelimit diff.renames diff.statgraphwidth diff.submodule fetch. \
     format.pretty gc. grep. http.extraheader http.lowspeed http.postbuffer http.sslverify \
     http.version i18n. index. init.defaultbranch log. merge.conflictstyle merge.ff \
     merge.renames merge.stat notes. pack. protocol.version pull. push. rebase.autosquash \
     rebase.autostash rebase.updaterefs receive. rerere. safe.directory stash. status. \
     submodule.recurse tag.gpgsign tag.sort transfer. user. versionsort.",
);

/// Settings whose value is a command.
const COMMANDS: Words = Words(
    "core.editor core.pager core.sshcommand core.askpass sequence.editor diff.external pager.",
);

/// Options of any sub-command whose value is a command.
const RUN: Words = Words("--upload-pack --receive-pack --exec --extcmd --open-files-in-pager");

/// Judges a call of git.
pub fn look(judge: &mut Judge<'_>, call: &Call<'_>) -> Ruling {
    let words = call.arguments();
    let mut at = 0;
    // Options before the sub-command.
    while let Some(word) = words.get(at) {
        let Some(text) = word.data() else {
            return judge.unresolved(word.span.clone(), "a word that may be an option of git");
        };
        if !text.starts_with('-') {
            break;
        }
        match text.split('=').next().unwrap_or_default() {
            "-c" => setting(judge, words.get(at + 1))?,
            "--config-env" | "--exec-path" if text.contains('=') || text == "--config-env" => {
                return judge.hides(word.span.clone(), "a setting that can run a program");
            }
            "--git-dir" => {
                return judge
                    .hides(word.span.clone(), "another repository's settings can run programs");
            }
            _ if text.starts_with("-c") => {
                return judge.hides(word.span.clone(), "a setting that can run a program");
            }
            _ => {}
        }
        at += match options::meaning("git", &text) {
            options::Meaning::Valued => 2,
            _ => 1,
        };
    }
    let Some(sub) = words.get(at).and_then(Word::data) else { return Ok(()) };
    subcommand(judge, call, &sub, &words[at + 1..])
}

fn subcommand(judge: &mut Judge<'_>, call: &Call<'_>, sub: &str, words: &[Word]) -> Ruling {
    match sub {
        "config" => return config(judge, words),
        "submodule" | "bisect" => {
            let verb = words.iter().position(|word| {
                word.data()
                    .is_some_and(|text| text == "foreach" || (sub == "bisect" && text == "run"))
            });
            if let Some(at) = verb {
                let options = ["--recursive", "--quiet", "-q"];
                let command = words[at + 1..].iter().position(|word| {
                    word.data().is_none_or(|text| !options.contains(&text.as_str()))
                });
                return match command {
                    Some(skip) => wrappers::joined(judge, &words[at + 1 + skip..]),
                    None => Ok(()),
                };
            }
        }
        "filter-branch" | "instaweb" | "send-email" | "remote-ext" | "daemon" | "shell"
        | "mergetool" | "credential" | "upload-archive" => {
            return judge.hides(call.span(), "a sub-command of git that runs programs");
        }
        _ => {}
    }
    let dangerous =
        ["clone", "fetch", "pull", "push", "ls-remote", "rebase", "grep", "difftool", "archive"];
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        let Some(text) = word.data() else {
            let may_be_option =
                word.beginning().is_empty() || word.beginning().starts_with('-') || !word.is_one();
            if dangerous.contains(&sub) && may_be_option && !is_value(words.get(at.wrapping_sub(2)))
            {
                return judge.unresolved(
                    word.span.clone(),
                    "a word that may be an option; put -- before it",
                );
            }
            continue;
        };
        if text == "--" {
            break;
        }
        at += usize::from(option(judge, sub, &text, word, words.get(at))?);
    }
    Ok(())
}

/// Whether what follows is the value of an option.
fn is_value(before: Option<&Word>) -> bool {
    let valued = ["-m", "-b", "--message", "--branch", "--depth", "-o", "--origin", "--onto", "-e"];
    before.and_then(Word::data).is_some_and(|text| valued.contains(&text.as_str()))
}

/// Judges one argument of a sub-command. True if it took the next word.
fn option(
    judge: &mut Judge<'_>,
    sub: &str,
    text: &str,
    word: &Word,
    next: Option<&Word>,
) -> Result<bool, crate::Denial> {
    let span = word.span.clone();
    if text.starts_with("ext::") {
        return judge.hides(span, "a transport that runs a command").map(|()| false);
    }
    let name = text.split('=').next().unwrap_or_default();
    let glued = text.split_once('=').map(|(_, value)| Word::known(value, span.clone()));
    let is_long = |long: &&str| name.len() > 4 && long.starts_with(name);
    if RUN.iter().any(|long| is_long(&long)) {
        return run(judge, glued.as_ref().or(next), &span).map(|()| glued.is_none());
    }
    if is_long(&"--template") || (sub == "clone" && is_long(&"--config")) {
        return judge.hides(span, "a setting that can run a program").map(|()| false);
    }
    if is_long(&"--output") || (sub == "archive" && name == "-o") {
        if let Some(file) = glued.as_ref().or(next) {
            judge.side_file(file)?;
        }
        return Ok(glued.is_none());
    }
    let short = |letter: &str| text.strip_prefix(letter).filter(|_| !text.starts_with("--"));
    let letter = match sub {
        "rebase" | "difftool" => short("-x"),
        "clone" | "ls-remote" => short("-u"),
        "grep" => short("-O"),
        _ => None,
    };
    match letter {
        Some("") if sub == "grep" => Ok(false),
        Some("") => run(judge, next, &span).map(|()| true),
        Some(value) => run(judge, Some(&Word::known(value, span.clone())), &span).map(|()| false),
        None if sub == "clone" && text == "-c" => setting(judge, next).map(|()| true),
        None => Ok(false),
    }
}

fn run(judge: &mut Judge<'_>, value: Option<&Word>, span: &Span) -> Ruling {
    match value {
        Some(value) => judge.text(value, Shell::Sh),
        None => judge.hides(span.clone(), "an option that runs a program"),
    }
}

/// `key=value` behind `-c`.
fn setting(judge: &mut Judge<'_>, word: Option<&Word>) -> Ruling {
    let Some(word) = word else { return Ok(()) };
    let beginning = word.beginning();
    let (key, value) = beginning.split_once('=').unwrap_or((&beginning, ""));
    let value = match word.data() {
        Some(_) => Word::known(value, word.span.clone()),
        None => Word::unknown(false, word.span.clone()),
    };
    key_and_value(judge, key, &value)
}

fn key_and_value(judge: &mut Judge<'_>, key: &str, value: &Word) -> Ruling {
    let key = key.to_lowercase();
    if HARMLESS.iter().any(|harmless| key.starts_with(harmless)) {
        return Ok(());
    }
    if COMMANDS.iter().any(|command| key.starts_with(command)) {
        return judge.text(value, Shell::Sh);
    }
    judge.hides(value.span.clone(), "a setting of git that can run a program")
}

/// `git config`: reading is harmless, writing depends on the key.
fn config(judge: &mut Judge<'_>, words: &[Word]) -> Ruling {
    let reads = [
        "--get",
        "--get-all",
        "--get-regexp",
        "--list",
        "-l",
        "--unset",
        "--unset-all",
        "get",
        "list",
        "unset",
    ];
    if words.iter().any(|word| word.data().is_some_and(|text| reads.contains(&text.as_str()))) {
        return Ok(());
    }
    let mut operands = Vec::new();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        let text = word.data();
        match text.as_deref() {
            Some("-f" | "--file" | "--type" | "--blob") => at += 1,
            Some("-e" | "--edit") => return judge.hides(word.span.clone(), "an editor"),
            Some(option) if option.starts_with('-') => {}
            Some("set") if operands.is_empty() => {}
            _ => operands.push(word),
        }
    }
    match operands.as_slice() {
        [key, value, ..] => match key.data() {
            Some(key) => key_and_value(judge, &key, value),
            None => judge.unresolved(key.span.clone(), "a setting of git"),
        },
        _ => Ok(()),
    }
}
