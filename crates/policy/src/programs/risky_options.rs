//! Programs with options, arguments or input that make them run other programs.
//!
//! Most of them are rows in [`table`]; a function here handles what does not fit into one.

mod table;

use super::arguments::{Argument, parse};
use super::{editors, packages, writers};
use crate::action::{Action, Actions, Runner};
use crate::call::{Call, Input};
use crate::names::Names;
use crate::paths::Target;
use crate::script::Word;
use table::{COMPILERS, COMPRESSORS, GO, RISKY_OPTIONS, RUNNERS, RiskyOptions, SIGNS, SQLITE};

pub fn inspect(actions: &mut Actions<'_>, name: &str, call: &Call<'_>) {
    let first = call.arguments().first().and_then(Word::text).unwrap_or_default();
    let asks = Names("--version --help -V").has(&first);
    let loader =
        name.starts_with("ld-linux") || name.starts_with("ld.so") || name.starts_with("ld-musl");
    if (RUNNERS.has(name) || loader) && !asks {
        return actions.opaque(call.span(), "a program that runs others");
    }
    if editors::is_editor(name) {
        return editors::inspect(actions, call);
    }
    match name {
        "ed" | "red" => return editors::ed(actions, call),
        "go" => return go(actions, call),
        "crontab" => return crontab(actions, call),
        "tar" | "gtar" | "bsdtar" => old_style_tar(actions, call),
        "dd" => return writers::inspect(actions, name, call),
        "npm" | "pnpm" | "yarn" => packages::npm(actions, name, call),
        "npx" | "pnpx" | "bunx" | "uvx" => packages::run_package(actions, call.arguments()),
        _ if packages::is_runner(name) => packages::runner(actions, name, call),
        "sqlite3" => sqlite(actions, call),
        "make" | "gmake" if actions.knowledge.has_make_code() => {
            return actions.opaque(call.span(), "a variable that make runs as code");
        }
        _ if COMPILERS.0.has(name) => return compiler(actions, call),
        _ => {}
    }
    signs(actions, name, call);
    writers::inspect(actions, name, call);
    if let Some(risky) = RISKY_OPTIONS.iter().find(|risky| risky.names.has(name)) {
        options(actions, risky, name, call);
    }
}

/// Lists what the options and operands of a program in the table do.
fn options(actions: &mut Actions<'_>, risky: &RiskyOptions, program: &str, call: &Call<'_>) {
    let (arguments, _) = match parse(&risky.syntax, call.arguments()) {
        Ok(parts) => parts,
        Err(span) => return actions.opaque(span, "an option that is not spelled out"),
    };
    let mut runs = false;
    for argument in arguments {
        match argument {
            Argument::Option { name, value, span } => {
                let is = |known: &str| is_option(risky, known, &name);
                if risky.run.iter().any(is) {
                    runs = true;
                    match value {
                        Some(value) if is_compressor(&value) => {}
                        Some(value) => actions.run_text(&value, Runner::SH),
                        None => return actions.opaque(span, "an option that runs a program"),
                    }
                } else if risky.refuse.iter().any(is) {
                    return actions.opaque(span, "an option that can run a program");
                } else if risky.write.iter().any(is)
                    && let Some(file) = value
                {
                    actions.push(Action::Write(file));
                } else if program.ends_with("make")
                    && ["f", "file", "makefile"].into_iter().any(is)
                    && value.is_none_or(|file| is_input(actions, &file))
                {
                    return actions.opaque(span, "an unknown makefile");
                }
            }
            Argument::Unknown(word)
                if (!risky.run.is_empty() || !risky.refuse.is_empty())
                    && actions.may_be_option(&word) =>
            {
                let what = "a word that may be an option; put ./ or -- before it";
                return actions.unresolved(word.span, what);
            }
            Argument::Operand(word) | Argument::Unknown(word) => operand(actions, program, &word),
        }
    }
    if program == "script" && !runs {
        actions.opaque(call.span(), "a shell that reads commands from its input");
    }
}

fn is_input(actions: &Actions<'_>, file: &Word) -> bool {
    file.text().is_none_or(|file| file == "-") || actions.knowledge.target(file) != Target::File
}

fn is_option(risky: &RiskyOptions, known: &str, given: &str) -> bool {
    let abbreviated = risky.abbreviates
        && given.len() > 1
        && known.len() > 2
        && known.starts_with(given)
        && !risky.syntax.exact.has(given);
    known == given || abbreviated
}

fn is_compressor(value: &Word) -> bool {
    value.text().is_some_and(|text| {
        COMPRESSORS.has(text.split(' ').next().unwrap_or_default())
            && !text.contains([';', '|', '&', '$', '`', '\n', '<', '>', '('])
    })
}

/// Lists what an operand does that is more than a file.
fn operand(actions: &mut Actions<'_>, program: &str, word: &Word) {
    let text = word.text().unwrap_or_default();
    match program {
        "less" | "more" | "most"
            if text.starts_with('+') && text.contains(['!', '|', 'v', 's', 'E']) =>
        {
            actions.opaque(word.span.clone(), "a command for the pager");
        }
        "make" | "gmake" => make_variable(actions, &text, word),
        _ => {}
    }
}

/// `NAME=value` as an argument of make, which runs a value as code when it is used.
fn make_variable(actions: &mut Actions<'_>, text: &str, word: &Word) {
    let Some((name, value)) = text.split_once('=') else { return };
    let runs = name.ends_with('!') || value.contains(['$', '`']) || word.text().is_none();
    let name = name.trim_end_matches([':', '+', '?', '!', ' ', '\t']);
    if runs || [".SHELLFLAGS", "SHELL", "MAKEFLAGS", "MAKE"].contains(&name) {
        return actions.opaque(word.span.clone(), "make can run a variable as code");
    }
    let value = Some(Word::known(value.trim(), word.span.clone()));
    actions.push(Action::SetOnly { name: name.to_owned(), value, span: word.span.clone() });
}

fn compiler(actions: &mut Actions<'_>, call: &Call<'_>) {
    for word in call.arguments() {
        let prefix = word.prefix();
        let loads = COMPILERS.1.iter().any(|sign| prefix.starts_with(sign));
        let unknown = word.text().is_none() && prefix.is_empty() && actions.may_be_option(word);
        if loads || unknown {
            return actions.opaque(word.span.clone(), "an option that can run a program");
        }
    }
}

/// sqlite3, whose own commands begin with a dot and can be abbreviated.
fn sqlite(actions: &mut Actions<'_>, call: &Call<'_>) {
    let input = match &call.input {
        Input::Text(text) => Some(text.into()),
        _ => None,
    };
    let texts = call.arguments().iter().filter_map(Word::text).chain(input);
    for text in texts {
        let own = |line: &str| line.split_whitespace().next().map(str::to_owned);
        let mut commands = text.lines().filter_map(own).filter(|word| word.starts_with('.'));
        if commands.any(|word| !SQLITE.has(&word) && !word.contains('/')) {
            return actions.opaque(call.span(), "one of its own commands that can run a program");
        }
    }
}

fn go(actions: &mut Actions<'_>, call: &Call<'_>) {
    let words = call.arguments();
    for (at, word) in words.iter().enumerate() {
        let Some(text) = word.text() else { continue };
        let Some(option) = text.strip_prefix('-') else { continue };
        let option = option.strip_prefix('-').unwrap_or(option);
        let (name, glued) = option.split_once('=').map_or((option, None), |(n, v)| (n, Some(v)));
        if text == "--" || text == "-args" {
            break;
        }
        if !GO.has(name) {
            continue;
        }
        let value = match glued {
            Some(value) => Some(Word::known(value, word.span.clone())),
            None => words.get(at + 1).cloned(),
        };
        match value {
            Some(value) if ["exec", "toolexec", "vettool"].contains(&name) => {
                actions.run_text(&value, Runner::SH);
            }
            _ => return actions.opaque(word.span.clone(), "an option that can run a program"),
        }
    }
}

fn crontab(actions: &mut Actions<'_>, call: &Call<'_>) {
    let lists = call.arguments().iter().any(|word| word.text().as_deref() == Some("-l"));
    if !lists {
        actions.opaque(call.span(), "commands that run later");
    }
}

/// `tar cIf`: letters without a dash, followed by their values.
fn old_style_tar(actions: &mut Actions<'_>, call: &Call<'_>) {
    let Some(letters) = call.arguments().first().and_then(Word::text) else { return };
    if letters.starts_with('-') {
        return;
    }
    if letters.contains(['I', 'F']) {
        actions.opaque(call.arguments()[0].span.clone(), "an option that runs a program");
    }
}

/// Refuses texts that make a program run another.
fn signs(actions: &mut Actions<'_>, name: &str, call: &Call<'_>) {
    let Some((_, signs)) = SIGNS.iter().find(|(names, _)| names.has(name)) else {
        return;
    };
    let input = match &call.input {
        Input::Text(text) => Some(text.into()),
        _ => None,
    };
    let texts = call.arguments().iter().filter_map(Word::text).chain(input);
    for text in texts {
        let lower = text.to_lowercase();
        if signs.iter().any(|sign| lower.contains(sign)) {
            return actions.opaque(call.span(), "one of its own commands that can run a program");
        }
    }
}
