//! Programs with options that run other programs, read such options from files, or write files.

mod table;

use super::arguments::{Argument, split};
use crate::judge::{Call, Input, Judge, Ruling};
use crate::script::{Shell, Word};
use table::{COMPRESSORS, EDITORS, GO, GUARDS, Guard, RUNNERS, SIGNS, WRITERS};

/// Judges the options of a program that has some to mind.
pub fn look(judge: &mut Judge<'_>, name: &str, call: &Call<'_>) -> Ruling {
    let asks = |word: &Word| {
        word.data().is_some_and(|text| ["--version", "--help", "-V"].contains(&text.as_str()))
    };
    if RUNNERS.has(name) && !call.arguments().iter().any(asks) {
        return judge.hides(call.span(), "a program that runs others");
    }
    let loader =
        name.starts_with("ld-linux") || name.starts_with("ld.so") || name.starts_with("ld-musl");
    if loader && !call.arguments().is_empty() && !call.arguments().iter().any(asks) {
        return judge.hides(call.span(), "a program that runs others");
    }
    if EDITORS.has(name) {
        return editor(judge, call);
    }
    match name {
        "ed" | "red" => return line_editor(judge, call),
        "go" => return go(judge, call),
        "crontab" => return crontab(judge, call),
        "tar" | "gtar" | "bsdtar" => old_style_tar(judge, call)?,
        "dd" => return dd(judge, call),
        "npm"
            if call.arguments().first().and_then(Word::data).is_some_and(|sub| {
                ["explore", "config", "set", "c", "edit"].contains(&sub.as_str())
            }) =>
        {
            return npm_settings(judge, call);
        }
        "script"
            if !call.arguments().iter().any(|word| {
                word.data().is_some_and(|text| text.contains('c') && text.starts_with('-'))
            }) =>
        {
            return judge.hides(call.span(), "a shell that reads its commands");
        }
        _ => {}
    }
    signs(judge, name, call)?;
    if !judge.policy.write_dirs.is_empty() {
        written(judge, name, call)?;
    }
    match GUARDS.iter().find(|guard| guard.names.has(name)) {
        Some(guard) => options(judge, guard, name, call),
        None => Ok(()),
    }
}

fn options(judge: &mut Judge<'_>, guard: &Guard, program: &str, call: &Call<'_>) -> Ruling {
    let (arguments, _) = match split(&guard.form, call.arguments()) {
        Ok(parts) => parts,
        Err(span) => return judge.hides(span, "an option that is not known"),
    };
    for argument in arguments {
        match argument {
            Argument::Option { name, value: Some(value), span }
                if program.ends_with("make")
                    && ["f", "file", "makefile"].contains(&name.as_str()) =>
            {
                let read = value.data().is_none_or(|file| file == "-" || file.starts_with("/dev/"));
                if read {
                    return judge.hides(span, "a makefile that is not known");
                }
            }
            Argument::Option { name, value, span } => {
                let is = |known: &str| is_option(guard, known, &name);
                if guard.run.iter().any(is) {
                    match value {
                        Some(value) if is_compressor(&value) => {}
                        Some(value) => judge.text(&value, Shell::Sh)?,
                        None => return judge.hides(span, "an option that runs a program"),
                    }
                } else if guard.refuse.iter().any(is) {
                    return judge.hides(span, "an option that can run a program");
                } else if guard.write.iter().any(is)
                    && let Some(file) = value
                {
                    judge.file(&file)?;
                }
            }
            Argument::Unknown(word) if !guard.run.is_empty() || !guard.refuse.is_empty() => {
                return judge
                    .unresolved(word.span, "a word that may be an option; put ./ or -- before it");
            }
            Argument::Other(word) => operand(judge, program, &word)?,
            Argument::Unknown(_) => {}
        }
    }
    Ok(())
}

fn is_option(guard: &Guard, known: &str, given: &str) -> bool {
    let abbreviated = guard.abbreviates
        && given.len() > 1
        && known.len() > 2
        && known.starts_with(given)
        && !guard.whole.has(given);
    known == given || abbreviated
}

fn is_compressor(value: &Word) -> bool {
    value.data().is_some_and(|text| {
        COMPRESSORS.has(text.split(' ').next().unwrap_or_default())
            && !text.contains([';', '|', '&', '$', '`', '\n', '<', '>', '('])
    })
}

/// Operands that are more than files.
fn operand(judge: &mut Judge<'_>, program: &str, word: &Word) -> Ruling {
    let text = word.data().unwrap_or_default();
    match program {
        "less" | "more" | "most"
            if text.starts_with('+') && text.contains(['!', '|', 'v', 's', 'E']) =>
        {
            judge.hides(word.span.clone(), "a command for the pager")
        }
        "make" | "gmake" => {
            if let Some((name, value)) = text.split_once('=') {
                let name = name.trim_end_matches([':', '+', '?', '!']);
                if [".SHELLFLAGS", "SHELL", "MAKEFLAGS", "MAKE"].contains(&name) {
                    return judge
                        .hides(word.span.clone(), "a variable of make that names a program");
                }
                let value = Word::known(value, word.span.clone());
                return match name {
                    "CC" | "CXX" | "LD" | "AR" => judge.text(&value, Shell::Sh),
                    _ => Ok(()),
                };
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn editor(judge: &mut Judge<'_>, call: &Call<'_>) -> Ruling {
    let fine = ["--clean", "--version", "--help", "-R", "-n", "-N", "-v", "-h", "--"];
    let bad = call.arguments().iter().find(|word| {
        word.data().is_none_or(|text| {
            (text.starts_with('-') || text.starts_with('+')) && !fine.contains(&text.as_str())
        })
    });
    match bad {
        Some(word) => judge.hides(word.span.clone(), "a command for the editor"),
        None => Ok(()),
    }
}

/// `ed` runs what follows `!` in its input.
fn line_editor(judge: &mut Judge<'_>, call: &Call<'_>) -> Ruling {
    let bang =
        call.arguments().iter().any(|word| word.data().is_none_or(|text| text.starts_with('!')));
    match &call.input {
        Input::Text(text) if !text.contains('!') && !bang => Ok(()),
        _ => judge.hides(call.span(), "an editor that can run commands"),
    }
}

fn go(judge: &mut Judge<'_>, call: &Call<'_>) -> Ruling {
    let words = call.arguments();
    for (at, word) in words.iter().enumerate() {
        let Some(text) = word.data() else { continue };
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
                judge.text(&value, Shell::Sh)?
            }
            _ => return judge.hides(word.span.clone(), "an option that can run a program"),
        }
    }
    Ok(())
}

fn crontab(judge: &mut Judge<'_>, call: &Call<'_>) -> Ruling {
    let lists = call.arguments().iter().any(|word| word.data().as_deref() == Some("-l"));
    match lists {
        true => Ok(()),
        false => judge.hides(call.span(), "commands that run later"),
    }
}

/// `tar cIf`: letters without a dash, their values behind them.
fn old_style_tar(judge: &mut Judge<'_>, call: &Call<'_>) -> Ruling {
    let Some(letters) = call.arguments().first().and_then(Word::data) else { return Ok(()) };
    if letters.starts_with('-') {
        return Ok(());
    }
    match letters.contains(['I', 'F']) {
        true => judge.hides(call.arguments()[0].span.clone(), "an option that runs a program"),
        false => Ok(()),
    }
}

fn dd(judge: &mut Judge<'_>, call: &Call<'_>) -> Ruling {
    for word in call.arguments() {
        let beginning = word.beginning();
        if let Some(file) = beginning.strip_prefix("of=") {
            let file = match word.data() {
                Some(_) => Word::known(file, word.span.clone()),
                None => Word::unknown(false, word.span.clone()),
            };
            judge.file(&file)?;
        }
    }
    Ok(())
}

fn npm_settings(judge: &mut Judge<'_>, call: &Call<'_>) -> Ruling {
    let words: Vec<_> =
        call.arguments().iter().map(|word| word.data().unwrap_or_default()).collect();
    let reads = words.get(1).is_none_or(|verb| ["get", "list", "ls"].contains(&verb.as_str()));
    match reads && words[0] != "explore" && words[0] != "edit" {
        true => Ok(()),
        false => judge.hides(call.span(), "a setting that can run a program"),
    }
}

fn signs(judge: &mut Judge<'_>, name: &str, call: &Call<'_>) -> Ruling {
    let Some((_, signs)) = SIGNS.iter().find(|(names, _)| names.has(name)) else {
        return Ok(());
    };
    let input = match &call.input {
        Input::Text(text) => Some(text.clone()),
        _ => None,
    };
    let texts = call.arguments().iter().filter_map(Word::data).chain(input);
    for text in texts {
        let lower = text.to_lowercase();
        if signs.iter().any(|sign| lower.contains(sign)) {
            return judge.hides(call.span(), "a command of its own that can run a program");
        }
    }
    Ok(())
}

/// Judges the files a program is there to write.
fn written(judge: &mut Judge<'_>, name: &str, call: &Call<'_>) -> Ruling {
    let Some((_, all)) = WRITERS.iter().find(|(writer, _)| *writer == name) else { return Ok(()) };
    let is_operand = |word: &&Word| word.data().is_none_or(|text| !text.starts_with('-'));
    let operands: Vec<_> = call.arguments().iter().filter(is_operand).collect();
    let files =
        if *all { operands.as_slice() } else { &operands[operands.len().saturating_sub(1)..] };
    files.iter().try_for_each(|file| judge.file(file))
}
