//! Programs with options that run other programs, read such options from files, or write files.

mod table;

use super::arguments::{Argument, Form, split};
use crate::judge::{Call, Input, Judge, Ruling};
use crate::options;
use crate::script::{Shell, Word};
use crate::words::Words;
use table::{
    COMPILERS, COMPRESSORS, EDITORS, GO, GUARDS, Guard, RUNNERS, SIGNS, SQLITE, Target, WRITERS,
};

/// Judges the options of a program that has some to mind.
pub fn look(judge: &mut Judge<'_>, name: &str, call: &Call<'_>) -> Ruling {
    let first = call.arguments().first().and_then(Word::data).unwrap_or_default();
    let asks = Words("--version --help -V").has(&first);
    let loader =
        name.starts_with("ld-linux") || name.starts_with("ld.so") || name.starts_with("ld-musl");
    if (RUNNERS.has(name) || loader) && !asks {
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
        "npm" | "pnpm" | "yarn" => npm_settings(judge, name, call)?,
        "npx" | "pnpx" | "bunx" => run_behind(judge, call, call.arguments())?,
        "uv" | "poetry" | "pipenv" | "bundle" | "conda" | "mise" | "rye" | "hatch" => {
            let words = call.arguments();
            let verb = words.first().and_then(Word::data).unwrap_or_default();
            if ["run", "exec", "x"].contains(&&*verb) {
                run_behind(judge, call, &words[1..])?;
            }
        }
        "sqlite3" => sqlite(judge, call)?,
        "make" | "gmake" if judge.knowledge.has_make_code() => {
            return judge.hides(call.span(), "a variable that make takes for code");
        }
        _ if COMPILERS.0.has(name) => return compiler(judge, call),
        _ => {}
    }
    signs(judge, name, call)?;
    written(judge, name, call)?;
    match GUARDS.iter().find(|guard| guard.names.has(name)) {
        Some(guard) => judge_options(judge, guard, name, call),
        None => Ok(()),
    }
}

fn judge_options(judge: &mut Judge<'_>, guard: &Guard, program: &str, call: &Call<'_>) -> Ruling {
    let (arguments, _) = match split(&guard.form, call.arguments()) {
        Ok(parts) => parts,
        Err(span) => return judge.hides(span, "an option that is not spelled out"),
    };
    let mut runs = false;
    for argument in arguments {
        match argument {
            Argument::Option { name, value, span } => {
                let is = |known: &str| is_option(guard, known, &name);
                if guard.run.iter().any(is) {
                    runs = true;
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
                } else if program.ends_with("make")
                    && ["f", "file", "makefile"].into_iter().any(is)
                    && value.is_none_or(|file| is_input(&file))
                {
                    return judge.hides(span, "a makefile that is not known");
                }
            }
            Argument::Unknown(word)
                if (!guard.run.is_empty() || !guard.refuse.is_empty())
                    && judge.may_be_option(&word) =>
            {
                let what = "a word that may be an option; put ./ or -- before it";
                return judge.unresolved(word.span, what);
            }
            Argument::Other(word) | Argument::Unknown(word) => operand(judge, program, &word)?,
        }
    }
    match program == "script" && !runs {
        true => judge.hides(call.span(), "a shell that reads its commands"),
        false => Ok(()),
    }
}

fn is_input(file: &Word) -> bool {
    file.data().is_none_or(|file| file == "-" || file.starts_with("/dev/"))
}

fn is_option(guard: &Guard, known: &str, given: &str) -> bool {
    let abbreviated = guard.abbreviates
        && given.len() > 1
        && known.len() > 2
        && known.starts_with(given)
        && !guard.form.whole.has(given);
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
        "make" | "gmake" => make_variable(judge, &text, word),
        _ => Ok(()),
    }
}

/// `NAME=value` as an argument of make: a value is code once it is used.
fn make_variable(judge: &mut Judge<'_>, text: &str, word: &Word) -> Ruling {
    let Some((name, value)) = text.split_once('=') else { return Ok(()) };
    let runs = name.ends_with('!') || value.contains(['$', '`']) || word.data().is_none();
    let name = name.trim_end_matches([':', '+', '?', '!', ' ', '\t']);
    if runs || [".SHELLFLAGS", "SHELL", "MAKEFLAGS", "MAKE"].contains(&name) {
        return judge.hides(word.span.clone(), "a variable of make can be code");
    }
    judge.variable(name, Some(&Word::known(value.trim(), word.span.clone())), &word.span)
}

fn compiler(judge: &mut Judge<'_>, call: &Call<'_>) -> Ruling {
    for word in call.arguments() {
        let beginning = word.beginning();
        let loads = COMPILERS.1.iter().any(|sign| beginning.starts_with(sign));
        let unknown = word.data().is_none() && beginning.is_empty() && judge.may_be_option(word);
        if loads || unknown {
            return judge.hides(word.span.clone(), "an option that can run a program");
        }
    }
    Ok(())
}

/// sqlite3's own commands begin with a dot, and may be cut short.
fn sqlite(judge: &mut Judge<'_>, call: &Call<'_>) -> Ruling {
    let input = match &call.input {
        Input::Text(text) => Some(text.into()),
        _ => None,
    };
    let texts = call.arguments().iter().filter_map(Word::data).chain(input);
    for text in texts {
        let own = |line: &str| line.split_whitespace().next().map(str::to_owned);
        let mut commands = text.lines().filter_map(own).filter(|word| word.starts_with('.'));
        if commands.any(|word| !SQLITE.has(&word) && !word.contains('/')) {
            return judge.hides(call.span(), "a command of its own that can run a program");
        }
    }
    Ok(())
}

fn editor(judge: &mut Judge<'_>, call: &Call<'_>) -> Ruling {
    let fine = Words("--clean --version --help -R -n -N -v -h -d -o -O -p --");
    let bad = call.arguments().iter().find(|word| {
        word.data().is_none_or(|text| {
            let line =
                text.strip_prefix('+').is_some_and(|line| line.bytes().all(|b| b.is_ascii_digit()));
            (text.starts_with('-') || text.starts_with('+')) && !fine.has(&text) && !line
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

/// Settings of npm can name programs; reading them is fine.
fn npm_settings(judge: &mut Judge<'_>, program: &str, call: &Call<'_>) -> Ruling {
    let words = options::behind_global(program, call.arguments()).unwrap_or(call.arguments());
    let word = |at: usize| words.get(at).and_then(Word::data).unwrap_or_default();
    if ["exec", "x", "dlx"].contains(&&*word(0)) {
        run_behind(judge, call, &words[1..])?;
    }
    let sets = match &*word(0) {
        "config" | "c" => !["", "get", "list", "ls"].contains(&&*word(1)),
        "set" | "explore" | "edit" => true,
        _ => false,
    };
    match sets {
        true => judge.hides(call.span(), "a setting that can run a program"),
        false => Ok(()),
    }
}

/// Judges a command behind options that do not matter, such as one of a package.
fn run_behind(judge: &mut Judge<'_>, call: &Call<'_>, words: &[Word]) -> Ruling {
    let is_option = |word: &&Word| word.data().is_some_and(|text| text.starts_with('-'));
    let command = &words[words.iter().take_while(is_option).count()..];
    match command.is_empty() {
        true => Ok(()),
        false => {
            judge.run_by(&Call { words: command, wrappers: call.wrappers + 1, ..call.clone() })
        }
    }
}

fn signs(judge: &mut Judge<'_>, name: &str, call: &Call<'_>) -> Ruling {
    let Some((_, signs)) = SIGNS.iter().find(|(names, _)| names.has(name)) else {
        return Ok(());
    };
    let input = match &call.input {
        Input::Text(text) => Some(text.into()),
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
    let Some(writer) = WRITERS.iter().find(|writer| writer.names.has(name)) else { return Ok(()) };
    let form = Form {
        valued: writer.valued,
        long_valued: Words("target-directory suffix mode owner group size reference"),
        ..Form::default()
    };
    let (arguments, _) = match split(&form, call.arguments()) {
        Ok(parts) => parts,
        Err(span) => return judge.hides(span, "an option that is not spelled out"),
    };
    let (mut operands, mut folder) = (Vec::new(), None);
    for argument in arguments {
        match argument {
            Argument::Option { name, value, .. } => {
                let names_it = (name == "t" && !writer.target.is_all())
                    || (name.len() > 1 && "target-directory".starts_with(&*name));
                folder = value.filter(|_| names_it).or(folder);
            }
            Argument::Other(word) | Argument::Unknown(word) => operands.push(word),
        }
    }
    let files: Vec<_> = match (&writer.target, &folder) {
        (_, Some(folder)) => vec![folder],
        (Target::All, None) => operands.iter().collect(),
        (Target::Last, None) => operands.last().into_iter().collect(),
        (Target::Second, None) => operands.get(1).into_iter().collect(),
    };
    // In a folder, what is written has the name it had.
    if let Target::Last = writer.target {
        operands.iter().for_each(|operand| judge.knowledge.note_written(operand));
    }
    files.into_iter().try_for_each(|file| judge.file(file))
}
