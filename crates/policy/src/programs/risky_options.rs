//! Programs with options that run other programs, read such options from files, or write files.

mod table;

use super::arguments::{Argument, OptionSyntax, parse};
use crate::judge::{Call, Input, Judge, Ruling};
use crate::names::Names;
use crate::script::{Shell, Word};
use crate::subcommands;
use table::{
    COMPILERS, COMPRESSORS, EDITORS, GO, RISKY_OPTIONS, RUNNERS, RiskyOptions, SIGNS, SQLITE,
    Target, WRITERS,
};

/// Judges the options of a program that has some to mind.
pub fn inspect(judge: &mut Judge<'_>, name: &str, call: &Call<'_>) -> Ruling {
    let first = call.arguments().first().and_then(Word::text).unwrap_or_default();
    let asks = Names("--version --help -V").has(&first);
    let loader =
        name.starts_with("ld-linux") || name.starts_with("ld.so") || name.starts_with("ld-musl");
    if (RUNNERS.has(name) || loader) && !asks {
        return judge.opaque(call.span(), "a program that runs others");
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
            let verb = words.first().and_then(Word::text).unwrap_or_default();
            if ["run", "exec", "x"].contains(&&*verb) {
                run_behind(judge, call, &words[1..])?;
            }
        }
        "sqlite3" => sqlite(judge, call)?,
        "make" | "gmake" if judge.knowledge.has_make_code() => {
            return judge.opaque(call.span(), "a variable that make takes for code");
        }
        _ if COMPILERS.0.has(name) => return compiler(judge, call),
        _ => {}
    }
    signs(judge, name, call)?;
    written(judge, name, call)?;
    match RISKY_OPTIONS.iter().find(|options| options.names.has(name)) {
        Some(options) => judge_options(judge, options, name, call),
        None => Ok(()),
    }
}

fn judge_options(
    judge: &mut Judge<'_>,
    options: &RiskyOptions,
    program: &str,
    call: &Call<'_>,
) -> Ruling {
    let (arguments, _) = match parse(&options.syntax, call.arguments()) {
        Ok(parts) => parts,
        Err(span) => return judge.opaque(span, "an option that is not spelled out"),
    };
    let mut runs = false;
    for argument in arguments {
        match argument {
            Argument::Option { name, value, span } => {
                let is = |known: &str| is_option(options, known, &name);
                if options.run.iter().any(is) {
                    runs = true;
                    match value {
                        Some(value) if is_compressor(&value) => {}
                        Some(value) => judge.text(&value, Shell::Sh)?,
                        None => return judge.opaque(span, "an option that runs a program"),
                    }
                } else if options.refuse.iter().any(is) {
                    return judge.opaque(span, "an option that can run a program");
                } else if options.write.iter().any(is)
                    && let Some(file) = value
                {
                    judge.file(&file)?;
                } else if program.ends_with("make")
                    && ["f", "file", "makefile"].into_iter().any(is)
                    && value.is_none_or(|file| is_input(&file))
                {
                    return judge.opaque(span, "a makefile that is not known");
                }
            }
            Argument::Unknown(word)
                if (!options.run.is_empty() || !options.refuse.is_empty())
                    && judge.may_be_option(&word) =>
            {
                let what = "a word that may be an option; put ./ or -- before it";
                return judge.unresolved(word.span, what);
            }
            Argument::Operand(word) | Argument::Unknown(word) => operand(judge, program, &word)?,
        }
    }
    match program == "script" && !runs {
        true => judge.opaque(call.span(), "a shell that reads its commands"),
        false => Ok(()),
    }
}

fn is_input(file: &Word) -> bool {
    file.text().is_none_or(|file| file == "-" || file.starts_with("/dev/"))
}

fn is_option(options: &RiskyOptions, known: &str, given: &str) -> bool {
    let abbreviated = options.abbreviates
        && given.len() > 1
        && known.len() > 2
        && known.starts_with(given)
        && !options.syntax.exact.has(given);
    known == given || abbreviated
}

fn is_compressor(value: &Word) -> bool {
    value.text().is_some_and(|text| {
        COMPRESSORS.has(text.split(' ').next().unwrap_or_default())
            && !text.contains([';', '|', '&', '$', '`', '\n', '<', '>', '('])
    })
}

/// Operands that are more than files.
fn operand(judge: &mut Judge<'_>, program: &str, word: &Word) -> Ruling {
    let text = word.text().unwrap_or_default();
    match program {
        "less" | "more" | "most"
            if text.starts_with('+') && text.contains(['!', '|', 'v', 's', 'E']) =>
        {
            judge.opaque(word.span.clone(), "a command for the pager")
        }
        "make" | "gmake" => make_variable(judge, &text, word),
        _ => Ok(()),
    }
}

/// `NAME=value` as an argument of make: a value is code once it is used.
fn make_variable(judge: &mut Judge<'_>, text: &str, word: &Word) -> Ruling {
    let Some((name, value)) = text.split_once('=') else { return Ok(()) };
    let runs = name.ends_with('!') || value.contains(['$', '`']) || word.text().is_none();
    let name = name.trim_end_matches([':', '+', '?', '!', ' ', '\t']);
    if runs || [".SHELLFLAGS", "SHELL", "MAKEFLAGS", "MAKE"].contains(&name) {
        return judge.opaque(word.span.clone(), "a variable of make can be code");
    }
    judge.variable(name, Some(&Word::known(value.trim(), word.span.clone())), &word.span)
}

fn compiler(judge: &mut Judge<'_>, call: &Call<'_>) -> Ruling {
    for word in call.arguments() {
        let beginning = word.prefix();
        let loads = COMPILERS.1.iter().any(|sign| beginning.starts_with(sign));
        let unknown = word.text().is_none() && beginning.is_empty() && judge.may_be_option(word);
        if loads || unknown {
            return judge.opaque(word.span.clone(), "an option that can run a program");
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
    let texts = call.arguments().iter().filter_map(Word::text).chain(input);
    for text in texts {
        let own = |line: &str| line.split_whitespace().next().map(str::to_owned);
        let mut commands = text.lines().filter_map(own).filter(|word| word.starts_with('.'));
        if commands.any(|word| !SQLITE.has(&word) && !word.contains('/')) {
            return judge.opaque(call.span(), "a command of its own that can run a program");
        }
    }
    Ok(())
}

fn editor(judge: &mut Judge<'_>, call: &Call<'_>) -> Ruling {
    let fine = Names("--clean --version --help -R -n -N -v -h -d -o -O -p --");
    let bad = call.arguments().iter().find(|word| {
        word.text().is_none_or(|text| {
            let line =
                text.strip_prefix('+').is_some_and(|line| line.bytes().all(|b| b.is_ascii_digit()));
            (text.starts_with('-') || text.starts_with('+')) && !fine.has(&text) && !line
        })
    });
    match bad {
        Some(word) => judge.opaque(word.span.clone(), "a command for the editor"),
        None => Ok(()),
    }
}

/// `ed` runs what follows `!` in its input.
fn line_editor(judge: &mut Judge<'_>, call: &Call<'_>) -> Ruling {
    let bang =
        call.arguments().iter().any(|word| word.text().is_none_or(|text| text.starts_with('!')));
    match &call.input {
        Input::Text(text) if !text.contains('!') && !bang => Ok(()),
        _ => judge.opaque(call.span(), "an editor that can run commands"),
    }
}

fn go(judge: &mut Judge<'_>, call: &Call<'_>) -> Ruling {
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
                judge.text(&value, Shell::Sh)?
            }
            _ => return judge.opaque(word.span.clone(), "an option that can run a program"),
        }
    }
    Ok(())
}

fn crontab(judge: &mut Judge<'_>, call: &Call<'_>) -> Ruling {
    let lists = call.arguments().iter().any(|word| word.text().as_deref() == Some("-l"));
    match lists {
        true => Ok(()),
        false => judge.opaque(call.span(), "commands that run later"),
    }
}

/// `tar cIf`: letters without a dash, their values behind them.
fn old_style_tar(judge: &mut Judge<'_>, call: &Call<'_>) -> Ruling {
    let Some(letters) = call.arguments().first().and_then(Word::text) else { return Ok(()) };
    if letters.starts_with('-') {
        return Ok(());
    }
    match letters.contains(['I', 'F']) {
        true => judge.opaque(call.arguments()[0].span.clone(), "an option that runs a program"),
        false => Ok(()),
    }
}

fn dd(judge: &mut Judge<'_>, call: &Call<'_>) -> Ruling {
    for word in call.arguments() {
        let beginning = word.prefix();
        if let Some(file) = beginning.strip_prefix("of=") {
            let file = match word.text() {
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
    let words =
        subcommands::after_global_options(program, call.arguments()).unwrap_or(call.arguments());
    let word = |at: usize| words.get(at).and_then(Word::text).unwrap_or_default();
    if ["exec", "x", "dlx"].contains(&&*word(0)) {
        run_behind(judge, call, &words[1..])?;
    }
    let sets = match &*word(0) {
        "config" | "c" => !["", "get", "list", "ls"].contains(&&*word(1)),
        "set" | "explore" | "edit" => true,
        _ => false,
    };
    match sets {
        true => judge.opaque(call.span(), "a setting that can run a program"),
        false => Ok(()),
    }
}

/// Judges a command behind options that do not matter, such as one of a package.
fn run_behind(judge: &mut Judge<'_>, call: &Call<'_>, words: &[Word]) -> Ruling {
    let is_option = |word: &&Word| word.text().is_some_and(|text| text.starts_with('-'));
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
    let texts = call.arguments().iter().filter_map(Word::text).chain(input);
    for text in texts {
        let lower = text.to_lowercase();
        if signs.iter().any(|sign| lower.contains(sign)) {
            return judge.opaque(call.span(), "a command of its own that can run a program");
        }
    }
    Ok(())
}

/// Judges the files a program is there to write.
fn written(judge: &mut Judge<'_>, name: &str, call: &Call<'_>) -> Ruling {
    let Some(writer) = WRITERS.iter().find(|writer| writer.names.has(name)) else { return Ok(()) };
    let syntax = OptionSyntax {
        valued: writer.valued,
        long_valued: Names("target-directory suffix mode owner group size reference"),
        ..OptionSyntax::default()
    };
    let (arguments, _) = match parse(&syntax, call.arguments()) {
        Ok(parts) => parts,
        Err(span) => return judge.opaque(span, "an option that is not spelled out"),
    };
    let (mut operands, mut folder) = (Vec::new(), None);
    for argument in arguments {
        match argument {
            Argument::Option { name, value, .. } => {
                let names_it = (name == "t" && !writer.target.is_all())
                    || (name.len() > 1 && "target-directory".starts_with(&*name));
                folder = value.filter(|_| names_it).or(folder);
            }
            Argument::Operand(word) | Argument::Unknown(word) => operands.push(word),
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
        operands.iter().for_each(|operand| judge.knowledge.add_written_file(operand));
    }
    files.into_iter().try_for_each(|file| judge.file(file))
}
