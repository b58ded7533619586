//! git: its settings, transports, options and sub-commands can run programs.

use super::arguments::{Argument, OptionSyntax, parse};
use crate::action::{Action, Actions, Runner};
use crate::call::Call;
use crate::names::Names;
use crate::script::{Span, Word};
use crate::subcommands::{OptionKind, option_kind};

/// Settings that run nothing: keys, and sections (with a dot) in which every key is harmless.
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

/// Values of such settings that only show text, or turn it off.
const VIEWERS: Names = Names("cat less more true false 0 1 yes no on off");

/// Sub-commands that run programs, or change what runs later.
const RUNNERS: Names = Names(
    "bugreport citool credential credential-cache credential-store cvsexportcommit cvsimport \
     cvsserver daemon fetch-pack filter-branch filter-repo for-each-repo gui hook http-backend \
     imap-send instaweb merge-index mergetool p4 receive-pack remote-ext remote-fd send-email \
     send-pack shell upload-archive upload-pack web--browse",
);

/// Long options of sub-commands whose value matters.
const RUN: Names = Names(
    "upload-pack receive-pack exec extcmd open-files-in-pager config template output \
     output-directory export-marks prefix remote",
);

/// The ones whose value is a command.
const RUN_ONLY: Names = Names("upload-pack receive-pack exec extcmd open-files-in-pager");

pub fn inspect(actions: &mut Actions<'_>, call: &Call<'_>) {
    let words = call.arguments();
    let mut at = 0;
    // Options before the sub-command.
    while let Some(word) = words.get(at) {
        let Some(text) = word.text() else {
            if actions.may_be_option(word) {
                actions.unresolved(word.span.clone(), "a word that may be a git option");
            }
            return;
        };
        if !text.starts_with('-') {
            break;
        }
        match text.split('=').next().unwrap_or_default() {
            "-c" => setting(actions, words.get(at + 1)),
            "-C" => match words.get(at + 1) {
                Some(folder) => actions.push(Action::Enter(folder.clone())),
                None => actions.push(Action::EnterUnknown),
            },
            "--work-tree" => match text.split_once('=') {
                Some((_, tree)) => {
                    actions.push(Action::Write(Word::known(tree, word.span.clone())));
                }
                None => words.get(at + 1).into_iter().for_each(|tree| {
                    actions.push(Action::Write(tree.clone()));
                }),
            },
            "--config-env" | "--exec-path" if text.contains('=') || text == "--config-env" => {
                return actions.opaque(word.span.clone(), "a setting that can run a program");
            }
            "--git-dir" => {
                return actions
                    .opaque(word.span.clone(), "another repository's settings can run programs");
            }
            _ if text.starts_with("-c") => {
                return actions.opaque(word.span.clone(), "a setting that can run a program");
            }
            _ => {}
        }
        at += match option_kind("git", &text) {
            OptionKind::Valued if words.get(at + 1).is_some_and(|value| !value.is_single()) => {
                let what = "the value of a git option; put it in quotes";
                return actions.unresolved(word.span.clone(), what);
            }
            OptionKind::Valued => 2,
            _ => 1,
        };
    }
    let Some(sub) = words.get(at).and_then(Word::text) else { return };
    subcommand(actions, call, &sub, &words[at + 1..]);
}

fn subcommand(actions: &mut Actions<'_>, call: &Call<'_>, sub: &str, words: &[Word]) {
    match sub {
        "config" => return config(actions, words),
        "submodule" | "bisect" => {
            let is_verb = |word: &Word| {
                let text = word.text().unwrap_or_default();
                text == "foreach" || (sub == "bisect" && text == "run")
            };
            if let Some(at) = words.iter().position(is_verb) {
                return for_each(actions, &words[at + 1..]);
            }
        }
        "maintenance" if !words.iter().any(|word| word.text().as_deref() == Some("run")) => {
            return actions.opaque(call.span(), "commands that run later");
        }
        "bundle" => {
            let is = |at: usize| words.get(at).filter(|word| !word.prefix().starts_with('-'));
            let creates = is(0).is_some_and(|verb| verb.text().is_none_or(|verb| verb == "create"));
            let file = words.iter().skip(1).find(|word| !word.prefix().starts_with('-'));
            file.filter(|_| creates)
                .into_iter()
                .for_each(|file| actions.push(Action::WriteAside(file.clone())));
        }
        _ if RUNNERS.has(sub) => {
            return actions.opaque(call.span(), "a git sub-command that runs programs");
        }
        _ => {}
    }
    options(actions, sub, words, call.span());
}

/// `git submodule foreach` and `git bisect run`: a command after harmless options.
fn for_each(actions: &mut Actions<'_>, words: &[Word]) {
    const FLAGS: Names = Names("--recursive --quiet -q");
    let is_flag = |word: &&Word| word.text().is_some_and(|text| FLAGS.has(&text));
    let command = &words[words.iter().take_while(is_flag).count()..];
    if !command.is_empty() {
        actions.run_joined(command, Runner::SH);
    }
}

/// The letters of a sub-command that take a value, the ones with an optional value in the same word, and the
/// ones of both whose value is a command.
fn letters(sub: &str) -> (&'static str, &'static str, &'static str) {
    match sub {
        "rebase" => ("xsXC", "S", "x"),
        "difftool" => ("xt", "", "x"),
        "clone" => ("uobcj", "", "u"),
        "ls-remote" => ("uo", "", "u"),
        "grep" => ("efABCm", "O", "O"),
        "archive" | "format-patch" | "mailsplit" | "diagnose" => ("o", "", ""),
        "fetch" | "pull" => ("josX", "S", ""),
        "push" => ("o", "", ""),
        "commit" => ("mFCct", "Su", ""),
        "worktree" => ("bB", "", ""),
        _ => ("mbo", "", ""),
    }
}

/// The long options of a sub-command that take a value, whether that matters or not, so that no value is taken for a
/// folder.
fn long_valued(sub: &str) -> Names {
    match sub {
        "clone" => Names(
            "branch bundle-uri config depth filter jobs origin ref-format reference reference-if-able revision \
             separate-git-dir server-option shallow-exclude shallow-since template upload-pack",
        ),
        "init" => Names("initial-branch object-format ref-format separate-git-dir template"),
        "worktree" => Names("reason"),
        "read-tree" => Names("exclude-per-directory index-output prefix"),
        _ => RUN,
    }
}

/// Lists what the options of a sub-command do.
fn options(actions: &mut Actions<'_>, sub: &str, words: &[Word], span: Span) {
    let dangerous =
        Names("clone fetch pull push ls-remote rebase grep difftool archive init").has(sub);
    let writes_aside = Names("archive format-patch mailsplit diagnose").has(sub);
    let mut operands = Vec::new();
    let (valued, attached, run_letters) = letters(sub);
    let syntax = OptionSyntax {
        valued,
        attached,
        long_valued: long_valued(sub),
        exact: Names("exec-path upload"),
        ..OptionSyntax::default()
    };
    let (arguments, _) = match parse(&syntax, words) {
        Ok(parts) => parts,
        Err(span) => return actions.opaque(span, "an option that is not spelled out"),
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
                    run(actions, value.as_ref(), &span);
                } else if sub == "clone" && (name == "c" || long("config")) {
                    setting(actions, value.as_ref());
                } else if long("template") && sub != "commit" {
                    return actions.opaque(span, "a setting that can run a program");
                } else if sub == "apply" && long("unsafe-paths") {
                    actions
                        .push(Action::UnclearWrite { span, what: "paths outside of the folder" });
                } else if value.as_ref().is_some_and(|value| value.prefix().contains("::")) {
                    return actions.opaque(span, "a transport that runs a command");
                } else if (long("output")
                    || long("output-directory")
                    || long("export-marks")
                    || (long("separate-git-dir") && Names("clone init").has(sub))
                    || (long("index-output") && sub == "read-tree")
                    || (long("prefix") && sub == "checkout-index")
                    || (writes_aside && name == "o"))
                    && let Some(file) = value
                {
                    actions.push(Action::WriteAside(file));
                }
            }
            Argument::Unknown(word) if dangerous && actions.may_be_option(&word) => {
                let what = "a word that may be an option; put -- before it";
                return actions.unresolved(word.span, what);
            }
            Argument::Operand(word) if word.prefix().contains("ext::") => {
                return actions.opaque(word.span, "a transport that runs a command");
            }
            Argument::Operand(word) | Argument::Unknown(word) => operands.push(word),
        }
    }
    let verb = operands.first().and_then(Word::text);
    let (made, is_new) = match sub {
        // The folder of a new repository.
        "clone" => (operands.get(1..), true),
        "init" => (operands.get(..1), true),
        "worktree" => match verb.as_deref() {
            Some("add") => (operands.get(1..2), false),
            Some("move") => (operands.get(2..3), false),
            _ => (None, false),
        },
        "mailinfo" => (operands.get(..2), false),
        _ => (None, false),
    };
    let made = made.unwrap_or_default();
    made.iter().for_each(|file| actions.push(Action::Write(file.clone())));
    if is_new && made.is_empty() {
        actions.push(Action::Write(Word::known(".", span)));
    }
}

fn run(actions: &mut Actions<'_>, value: Option<&Word>, span: &Span) {
    match value {
        Some(value) => actions.run_text(value, Runner::SH),
        None => actions.opaque(span.clone(), "an option that runs a program"),
    }
}

/// `key=value` after `-c`.
fn setting(actions: &mut Actions<'_>, word: Option<&Word>) {
    let Some(word) = word else { return };
    let prefix = word.prefix();
    let (key, value) = prefix.split_once('=').unwrap_or((&prefix, ""));
    let value = match word.text() {
        Some(_) => Word::known(value, word.span.clone()),
        None => Word::unknown(false, word.span.clone()),
    };
    key_and_value(actions, key, &value);
}

fn key_and_value(actions: &mut Actions<'_>, key: &str, value: &Word) {
    let key = key.to_lowercase();
    let section = key.find('.').map_or("", |end| &key[..=end]);
    let plain = key.matches('.').count() == 1;
    if HARMLESS.has(&key) || (plain && HARMLESS.has(section)) {
        return;
    }
    if COMMANDS.has(&key) || (plain && COMMANDS.has(section)) {
        let shows = value.text().is_some_and(|value| value.is_empty() || VIEWERS.has(&value));
        if shows && key.contains("pager") {
            return;
        }
        return actions.run_text(value, Runner::SH);
    }
    actions.opaque(value.span.clone(), "a git setting that can run a program");
}

/// `git config`: reading is harmless, writing depends on the key.
fn config(actions: &mut Actions<'_>, words: &[Word]) {
    const READS: Names = Names("--get --get-all --get-regexp --list -l --unset --unset-all");
    let mut operands: Vec<&Word> = Vec::new();
    let mut file = None;
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        let text = word.text();
        match text.as_deref() {
            Some("-f" | "--file") => {
                file = words.get(at).cloned();
                at += 1;
            }
            Some(option) if option.starts_with("--file=") => {
                let path = option.strip_prefix("--file=").unwrap_or_default();
                file = Some(Word::known(path, word.span.clone()));
            }
            Some(option) if option.starts_with("-f") => {
                file = Some(Word::known(&option[2..], word.span.clone()));
            }
            Some("--type" | "--blob" | "--default" | "--comment" | "--value" | "--url") => at += 1,
            // Settings in a harmless section would become others.
            Some(option) if option.contains("rename-section") => {
                return actions.opaque(word.span.clone(), "a git setting that can run a program");
            }
            Some("-e" | "--edit") => return actions.opaque(word.span.clone(), "an editor"),
            Some(option) if READS.has(option) && operands.is_empty() => return,
            Some("get" | "list" | "unset") if operands.is_empty() => return,
            Some("set") if operands.is_empty() => {}
            Some(option) if option.starts_with('-') => {}
            _ => operands.push(word),
        }
    }
    let [key, value, ..] = operands.as_slice() else { return };
    file.into_iter().for_each(|file| actions.push(Action::Write(file)));
    match key.text() {
        Some(key) => key_and_value(actions, &key, value),
        None => actions.unresolved(key.span.clone(), "a git setting"),
    }
}
