//! Programs whose arguments name files they write: `cp`, `tee`, `dd`.
//!
//! To add one, add a row to [`WRITERS`]. An option that no row has may take the next word or not, so nobody knows which
//! file is written. Where `write_dirs` limits that, such a command is refused.

mod curl;
mod table;
mod tar;
mod words;

use super::arguments::{Argument, OptionSyntax, parse};
use crate::action::{Action, Actions};
use crate::call::Call;
use crate::names::Names;
use crate::script::Word;
use table::{Target, WRITERS};

/// Why an option is refused that is not in a table.
const NOT_KNOWN: &str = "an option that may change which file is written";

/// Why a part of a name is refused that leads to another folder.
const PART: &str = "a part of a file's name that may lead to another folder";

/// Why `..` is refused after an option that changes the folder.
const ELSEWHERE: &str = "a path with `..` that begins in another folder";

pub fn inspect(actions: &mut Actions<'_>, name: &str, call: &Call<'_>) {
    match name {
        "dd" => return dd(actions, call),
        "curl" => return curl::inspect(actions, call),
        "tar" => return tar::inspect(actions, call),
        "openssl" => return words::openssl(actions, call),
        "xxd" => return words::xxd(actions, call),
        "zip" => return words::zip(actions, call),
        _ => {}
    }
    let Some(writer) = WRITERS.iter().find(|writer| writer.names.has(name)) else { return };
    let parts = parse(&writer.syntax, call.arguments()).or_else(|span| {
        actions.push(Action::UnclearWrite { span, what: NOT_KNOWN });
        let any = OptionSyntax { flags: "", long_flags: Names(""), ..writer.syntax };
        parse(&any, call.arguments())
    });
    let (arguments, _) = match parts {
        Ok(parts) => parts,
        Err(span) => return actions.opaque(span, "an option that is not spelled out"),
    };
    let (mut operands, mut folder, mut target) = (Vec::new(), None, writer.target);
    let (mut files, mut enters) = (Vec::new(), None);
    let mut links = name == "ln";
    // Whether it copies links as links, and the folders before the names of files.
    let (mut keeps_links, mut follows_links, mut keeps_folders) = (false, false, false);
    for argument in arguments {
        match argument {
            Argument::Option { name: option, value, .. } => {
                let long = |known: &str| option.len() > 1 && known.starts_with(&*option);
                let is_folder =
                    target == Target::Into && (option == "t" || long("target-directory"));
                links |= name == "cp"
                    && (option == "s" || option == "l" || long("link") || long("symbolic-link"));
                if name == "cp" {
                    keeps_links |= ["a", "d", "P", "R", "r"].contains(&&*option)
                        || ["archive", "no-dereference", "recursive"].into_iter().any(long);
                    follows_links |= option == "L" || long("dereference");
                    keeps_folders |= long("parents");
                }
                if name == "install" && (option == "d" || long("directory")) {
                    target = Target::All;
                }
                let is_entered = name == "patch" && (option == "d" || long("directory"));
                match value {
                    Some(value) if is_entered => enters = Some(value),
                    Some(value) if is_folder => folder = Some(value),
                    Some(value) if writer.parts.has(&option) && may_lead_elsewhere(&value) => {
                        actions.push(Action::UnclearWrite { span: value.span, what: PART });
                    }
                    Some(value) if writer.begins.has(&option) => begun(actions, &mut files, value),
                    Some(value) if writer.writes.has(&option) => {
                        files.push(written(&option, value));
                    }
                    _ => {}
                }
            }
            Argument::Operand(word) | Argument::Unknown(word) => operands.push(word),
        }
    }
    // A copied or renamed link still leads to the same file.
    links |= operands.iter().any(|operand| actions.knowledge.is_link(operand));
    // Copied into a folder, a file keeps its name.
    if target == Target::Into {
        operands.iter().for_each(|operand| actions.push(Action::Create(operand.clone())));
    }
    let made = folder.clone().or_else(|| operands.last().cloned());
    let copied =
        &operands[..operands.len() - usize::from(folder.is_none() && !operands.is_empty())];
    if keeps_folders && copied.iter().any(|file| file.text().is_none() || climbs(file)) {
        let what = "a path with `..` or from a variable, with which --parents leads elsewhere";
        actions.push(Action::UnclearWrite { span: call.span(), what });
    }
    if name == "mv" {
        copied.iter().for_each(|file| actions.push(Action::Take(file.clone())));
    }
    let sources = copied.to_vec();
    match folder {
        Some(folder) => files.push(folder),
        None if target == Target::Beginning => {
            operands.iter().skip(1).for_each(|it| begun(actions, &mut files, it.clone()));
        }
        None => files.extend_from_slice(target.among(&operands)),
    }
    if let Some(folder) = enters {
        if files.iter().any(climbs) {
            actions.push(Action::UnclearWrite { span: folder.span.clone(), what: ELSEWHERE });
        }
        files.push(folder);
    }
    files.into_iter().for_each(|file| actions.push(Action::Write(file)));
    if keeps_links && !follows_links {
        let made = made.into_iter().chain(sources.iter().cloned()).collect();
        actions.push(Action::CopyLinks { sources, made });
    }
    if links {
        operands.iter().for_each(|operand| actions.push(Action::Link(operand.clone())));
    }
}

/// Whether a part of a name may lead to another folder.
fn may_lead_elsewhere(part: &Word) -> bool {
    part.text().is_none_or(|part| part.contains('/'))
}

/// Adds a file whose name begins like this.
fn begun(actions: &mut Actions<'_>, files: &mut Vec<Word>, beginning: Word) {
    files.push(match beginning.text() {
        Some(text) => Word::known(format!("{text}x"), beginning.span.clone()),
        None => beginning.clone(),
    });
    actions.push(Action::Create(beginning));
}

/// The file that the value of an option names.
fn written(option: &str, value: Word) -> Word {
    match (option, value.text()) {
        ("dump-section", Some(text)) => {
            let file = text.split_once('=').map_or("", |(_, file)| file).to_owned();
            Word::known(file, value.span)
        }
        _ => value,
    }
}

/// Whether it depends on the folder where a path begins what it leads to above.
fn climbs(file: &Word) -> bool {
    file.text().is_some_and(|path| path.split('/').any(|part| part == ".."))
}

/// What a word has after its beginning, as a word of its own.
fn rest(word: &Word, rest: &str) -> Word {
    match word.text() {
        Some(_) => Word::known(rest, word.span.clone()),
        None => Word::unknown(false, word.span.clone()),
    }
}

fn dd(actions: &mut Actions<'_>, call: &Call<'_>) {
    for word in call.arguments() {
        if let Some(file) = word.prefix().strip_prefix("of=") {
            actions.push(Action::Write(rest(word, file)));
        }
    }
}
