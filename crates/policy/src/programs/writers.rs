//! Programs whose arguments name files they write: `cp`, `tee`, `dd`.
//!
//! To add one, add a row to [`WRITERS`].

use super::arguments::{Argument, OptionSyntax, parse};
use crate::action::{Action, Actions};
use crate::call::Call;
use crate::names::Names;
use crate::script::Word;

/// Programs whose operands name files to write.
struct Writer {
    names: Names,
    /// Letters that take a value.
    valued: &'static str,
    target: Target,
}

/// Which of its operands a program writes.
enum Target {
    All,
    Last,
    First,
    /// The second, if there are two.
    Second,
}

impl Target {
    fn is_all(&self) -> bool {
        matches!(self, Self::All)
    }
}

const WRITERS: &[Writer] = &[
    Writer { names: Names("tee touch mkdir"), valued: "drtm", target: Target::All },
    Writer { names: Names("truncate"), valued: "rs", target: Target::All },
    Writer { names: Names("cp mv ln"), valued: "tS", target: Target::Last },
    Writer { names: Names("install"), valued: "gmotS", target: Target::Last },
    Writer { names: Names("uniq"), valued: "fsw", target: Target::Second },
    Writer { names: Names("zip zipsplit"), valued: "btnixOPsS", target: Target::First },
    Writer { names: Names("objcopy"), valued: "IOFBjRNKLGWS", target: Target::Second },
    Writer { names: Names("mktemp"), valued: "p", target: Target::All },
    Writer { names: Names("xxd"), valued: "cglnosR", target: Target::Second },
    Writer { names: Names("sponge mkfifo mknod"), valued: "mZ", target: Target::All },
    Writer { names: Names("patch"), valued: "pidorBDFgVYz", target: Target::First },
    Writer { names: Names("split csplit"), valued: "abClntfn", target: Target::Second },
];

pub fn inspect(actions: &mut Actions<'_>, name: &str, call: &Call<'_>) {
    match name {
        "dd" => return dd(actions, call),
        "tar" => return tar(actions, call),
        "openssl" => return openssl(actions, call),
        _ => {}
    }
    let Some(writer) = WRITERS.iter().find(|writer| writer.names.has(name)) else { return };
    let syntax = OptionSyntax {
        valued: writer.valued,
        long_valued: Names("target-directory suffix mode owner group size reference"),
        ..OptionSyntax::default()
    };
    let (arguments, _) = match parse(&syntax, call.arguments()) {
        Ok(parts) => parts,
        Err(span) => return actions.opaque(span, "an option that is not spelled out"),
    };
    let (mut operands, mut folder) = (Vec::new(), None);
    let mut links = name == "ln";
    for argument in arguments {
        match argument {
            Argument::Option { name, value, .. } => {
                let names_it = (name == "t" && !writer.target.is_all())
                    || (name.len() > 1 && "target-directory".starts_with(&*name));
                folder = value.filter(|_| names_it).or(folder);
                let long = |known: &str| name.len() > 1 && known.starts_with(&*name);
                links |= name == "s" || name == "l" || long("link") || long("symbolic-link");
            }
            Argument::Operand(word) | Argument::Unknown(word) => operands.push(word),
        }
    }
    // A copied or renamed link still leads to the same file.
    links |= operands.iter().any(|operand| actions.knowledge.is_link(operand));
    let files: Vec<_> = match (&writer.target, &folder) {
        (_, Some(folder)) => vec![folder],
        (Target::All, None) => operands.iter().collect(),
        (Target::Last, None) => operands.last().into_iter().collect(),
        (Target::First, None) => operands.first().into_iter().collect(),
        (Target::Second, None) => operands.get(1).into_iter().collect(),
    };
    // Copied into a folder, a file keeps its name.
    if let Target::Last = writer.target {
        operands.iter().for_each(|operand| actions.push(Action::Create(operand.clone())));
    }
    files.into_iter().for_each(|file| actions.push(Action::Write(file.clone())));
    if links {
        operands.iter().for_each(|operand| actions.push(Action::Link(operand.clone())));
    }
}

fn dd(actions: &mut Actions<'_>, call: &Call<'_>) {
    for word in call.arguments() {
        let prefix = word.prefix();
        if let Some(file) = prefix.strip_prefix("of=") {
            let file = match word.text() {
                Some(_) => Word::known(file, word.span.clone()),
                None => Word::unknown(false, word.span.clone()),
            };
            actions.push(Action::Write(file));
        }
    }
}

/// The archive that `tar` makes, or the folder that it fills.
fn tar(actions: &mut Actions<'_>, call: &Call<'_>) {
    const VALUED: &str = "bCfFgHIKLNTVX";
    let words = call.arguments();
    let (mut mode, mut files) = ("", Vec::new());
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let prefix = word.prefix();
        let is_first = at == 0 && !prefix.starts_with('-');
        at += 1;
        if let Some(long) = prefix.strip_prefix("--") {
            let (name, value) = long.split_once('=').unwrap_or((long, ""));
            let glued = (!value.is_empty()).then(|| Word::known(value, word.span.clone()));
            match name {
                "create" | "append" | "update" | "concatenate" => mode = "c",
                "extract" | "get" => mode = "x",
                "file" => files.extend(glued.or(words.get(at).cloned()).map(|file| ('f', file))),
                "directory" => files.extend(glued.or(words.get(at).cloned()).map(|it| ('C', it))),
                _ => {}
            }
            continue;
        }
        let Some(letters) = prefix.strip_prefix('-').or(is_first.then_some(&*prefix)) else {
            continue;
        };
        for (place, letter) in letters.char_indices() {
            match letter {
                'c' | 'r' | 'u' | 'A' => mode = "c",
                'x' => mode = "x",
                _ if !VALUED.contains(letter) => {}
                _ => {
                    let rest = &letters[place + 1..];
                    // Without a dash, the values of all letters follow in the same order.
                    let is_glued = !is_first && !rest.is_empty();
                    let value = match is_glued {
                        true => Some(Word::known(rest, word.span.clone())),
                        false => words.get(at).cloned(),
                    };
                    at += usize::from(!is_glued);
                    files.extend(value.map(|value| (letter, value)));
                    if is_glued {
                        break;
                    }
                }
            }
        }
    }
    let wanted = if mode == "c" { 'f' } else { 'C' };
    let written = files.into_iter().filter(|(letter, _)| !mode.is_empty() && *letter == wanted);
    for (_, file) in written.filter(|(_, file)| file.text().as_deref() != Some("-")) {
        actions.push(Action::Write(file));
    }
}

/// `openssl … -out file`.
fn openssl(actions: &mut Actions<'_>, call: &Call<'_>) {
    for pair in call.arguments().windows(2) {
        if Names("-out -keyout -CAserial -writerand").has(&pair[0].text().unwrap_or_default()) {
            actions.push(Action::Write(pair[1].clone()));
        }
    }
}
