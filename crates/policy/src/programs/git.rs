//! git: settings, transports and sub-commands that run programs.

use super::arguments::{Argument, OptionSyntax, parse};
use super::wrappers;
use crate::judge::{Call, Judge, Ruling};
use crate::names::Names;
use crate::script::{Shell, Span, Word};
use crate::subcommands::{OptionKind, option_kind};

/// Settings that run nothing: keys, and sections of which all keys are harmless.
const HARMLESS: Names = Names(
    "advice. blame. color. column. commit.gpgsign commit.verbose commit.status core.abbrev \
     core.autocrlf core.bare core.bigfilethreshold core.checkstat core.compression core.eol \
     core.filemode core.ignorecase core.logallrefupdates core.longpaths core.precomposeunicode \
     core.preloadindex core.protecthfs core.quotepath core.safecrlf core.sharedrepository \
     core.symlinks core.trustctime core.untrackedcache core.whitespace diff.algorithm \
     diff.colormoved diff.context diff.indentheuristic diff.mnemonicprefix diff.noprefix \
     diff.renamelimit diff.renames diff.statgraphwidth diff.submodule fetch. format.pretty \
     gc.auto gc.autodetach grep. http.extraheader http.lowspeedlimit http.lowspeedtime \
     http.postbuffer http.sslverify http.version i18n. index. init.defaultbranch log. \
     merge.conflictstyle merge.ff merge.renames merge.stat pack. protocol.version pull. push. \
     rebase.autosquash rebase.autostash rebase.updaterefs rerere. safe.directory stash. status. \
     submodule.recurse tag.gpgsign tag.sort transfer. user.email user.name user.signingkey \
     versionsort.",
);

/// Settings whose value is a command.
const COMMANDS: Names = Names(
    "core.editor core.pager core.sshcommand core.askpass sequence.editor diff.external pager.",
);

/// Options of sub-commands that take a value and matter.
const RUN: Names =
    Names("upload-pack receive-pack exec extcmd open-files-in-pager config template output");

/// Those of them whose value is a command.
const RUN_ONLY: Names = Names("upload-pack receive-pack exec extcmd open-files-in-pager");

/// Judges a call of git.
pub fn inspect(judge: &mut Judge<'_>, call: &Call<'_>) -> Ruling {
    let words = call.arguments();
    let mut at = 0;
    // Options before the sub-command.
    while let Some(word) = words.get(at) {
        let Some(text) = word.text() else {
            return match judge.may_be_option(word) {
                true => judge.unresolved(word.span.clone(), "a word that may be an option of git"),
                false => Ok(()),
            };
        };
        if !text.starts_with('-') {
            break;
        }
        match text.split('=').next().unwrap_or_default() {
            "-c" => setting(judge, words.get(at + 1))?,
            "--config-env" | "--exec-path" if text.contains('=') || text == "--config-env" => {
                return judge.opaque(word.span.clone(), "a setting that can run a program");
            }
            "--git-dir" => {
                return judge
                    .opaque(word.span.clone(), "another repository's settings can run programs");
            }
            _ if text.starts_with("-c") => {
                return judge.opaque(word.span.clone(), "a setting that can run a program");
            }
            _ => {}
        }
        at += match option_kind("git", &text) {
            OptionKind::Valued if words.get(at + 1).is_some_and(|value| !value.is_single()) => {
                let what = "the value of an option of git; put it in quotes";
                return judge.unresolved(word.span.clone(), what);
            }
            OptionKind::Valued => 2,
            _ => 1,
        };
    }
    let Some(sub) = words.get(at).and_then(Word::text) else { return Ok(()) };
    subcommand(judge, call, &sub, &words[at + 1..])
}

fn subcommand(judge: &mut Judge<'_>, call: &Call<'_>, sub: &str, words: &[Word]) -> Ruling {
    match sub {
        "config" => return config(judge, words),
        "submodule" | "bisect" => {
            let is_verb = |word: &Word| {
                let text = word.text().unwrap_or_default();
                text == "foreach" || (sub == "bisect" && text == "run")
            };
            if let Some(at) = words.iter().position(is_verb) {
                return for_each(judge, &words[at + 1..]);
            }
        }
        "filter-branch" | "instaweb" | "send-email" | "remote-ext" | "daemon" | "shell"
        | "mergetool" | "credential" | "upload-archive" | "for-each-repo" => {
            return judge.opaque(call.span(), "a sub-command of git that runs programs");
        }
        _ => {}
    }
    options(judge, sub, words)
}

/// A command for each of several, behind options that change nothing.
fn for_each(judge: &mut Judge<'_>, words: &[Word]) -> Ruling {
    const FLAGS: Names = Names("--recursive --quiet -q");
    let is_flag = |word: &&Word| word.text().is_some_and(|text| FLAGS.has(&text));
    let command = &words[words.iter().take_while(is_flag).count()..];
    match command.is_empty() {
        true => Ok(()),
        false => wrappers::joined(judge, command, Shell::Sh),
    }
}

/// The letters of a sub-command that take a value, that take one only in the same word, and of those
/// the ones whose value is a command.
fn letters(sub: &str) -> (&'static str, &'static str, &'static str) {
    match sub {
        "rebase" => ("xsXC", "S", "x"),
        "difftool" => ("xt", "", "x"),
        "clone" => ("uobcj", "", "u"),
        "ls-remote" => ("uo", "", "u"),
        "grep" => ("efABCm", "O", "O"),
        "archive" => ("o", "", ""),
        "fetch" | "pull" => ("josX", "S", ""),
        "push" => ("o", "", ""),
        "commit" => ("mFCct", "Su", ""),
        _ => ("mbo", "", ""),
    }
}

/// Judges the options of a sub-command.
fn options(judge: &mut Judge<'_>, sub: &str, words: &[Word]) -> Ruling {
    let dangerous = Names("clone fetch pull push ls-remote rebase grep difftool archive").has(sub);
    let (valued, attached, run_letters) = letters(sub);
    let syntax = OptionSyntax {
        valued,
        attached,
        long_valued: RUN,
        exact: Names("exec-path upload"),
        ..OptionSyntax::default()
    };
    let (arguments, _) = match parse(&syntax, words) {
        Ok(parts) => parts,
        Err(span) => return judge.opaque(span, "an option that is not spelled out"),
    };
    for argument in arguments {
        match argument {
            Argument::Option { name, value, span } => {
                let long = |known: &str| name.len() > 1 && known.starts_with(&*name);
                let letter = name.len() == 1 && run_letters.contains(&*name);
                if letter && value.is_none() && sub == "grep" {
                    continue;
                }
                if letter || RUN_ONLY.iter().any(long) {
                    run(judge, value.as_ref(), &span)?;
                } else if sub == "clone" && (name == "c" || long("config")) {
                    setting(judge, value.as_ref())?;
                } else if long("template") {
                    return judge.opaque(span, "a setting that can run a program");
                } else if (long("output") || (sub == "archive" && name == "o"))
                    && let Some(file) = value
                {
                    judge.side_file(&file)?;
                }
            }
            Argument::Unknown(word) if dangerous && judge.may_be_option(&word) => {
                let what = "a word that may be an option; put -- before it";
                return judge.unresolved(word.span, what);
            }
            Argument::Operand(word) if word.prefix().starts_with("ext::") => {
                return judge.opaque(word.span, "a transport that runs a command");
            }
            _ => {}
        }
    }
    Ok(())
}

fn run(judge: &mut Judge<'_>, value: Option<&Word>, span: &Span) -> Ruling {
    match value {
        Some(value) => judge.text(value, Shell::Sh),
        None => judge.opaque(span.clone(), "an option that runs a program"),
    }
}

/// `key=value` behind `-c`.
fn setting(judge: &mut Judge<'_>, word: Option<&Word>) -> Ruling {
    let Some(word) = word else { return Ok(()) };
    let beginning = word.prefix();
    let (key, value) = beginning.split_once('=').unwrap_or((&beginning, ""));
    let value = match word.text() {
        Some(_) => Word::known(value, word.span.clone()),
        None => Word::unknown(false, word.span.clone()),
    };
    key_and_value(judge, key, &value)
}

fn key_and_value(judge: &mut Judge<'_>, key: &str, value: &Word) -> Ruling {
    let key = key.to_lowercase();
    let section = key.find('.').map_or("", |end| &key[..=end]);
    let plain = key.matches('.').count() == 1;
    if HARMLESS.has(&key) || (plain && HARMLESS.has(section)) {
        return Ok(());
    }
    if COMMANDS.has(&key) || (plain && COMMANDS.has(section)) {
        return judge.text(value, Shell::Sh);
    }
    judge.opaque(value.span.clone(), "a setting of git that can run a program")
}

/// `git config`: reading is harmless, writing depends on the key.
fn config(judge: &mut Judge<'_>, words: &[Word]) -> Ruling {
    const READS: Names = Names("--get --get-all --get-regexp --list -l --unset --unset-all");
    let mut operands: Vec<&Word> = Vec::new();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        let text = word.text();
        match text.as_deref() {
            Some("-f" | "--file" | "--type" | "--blob") => at += 1,
            Some("-e" | "--edit") => return judge.opaque(word.span.clone(), "an editor"),
            Some(option) if READS.has(option) && operands.is_empty() => return Ok(()),
            Some("get" | "list" | "unset") if operands.is_empty() => return Ok(()),
            Some("set") if operands.is_empty() => {}
            Some(option) if option.starts_with('-') => {}
            _ => operands.push(word),
        }
    }
    match operands.as_slice() {
        [key, value, ..] => match key.text() {
            Some(key) => key_and_value(judge, &key, value),
            None => judge.unresolved(key.span.clone(), "a setting of git"),
        },
        _ => Ok(()),
    }
}
