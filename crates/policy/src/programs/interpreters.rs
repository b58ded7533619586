//! Interpreters of other languages, whose programs can do anything a shell can.

use std::borrow::Cow;

use crate::action::{Action, Actions};
use crate::call::{Call, Input};
use crate::identity;
use crate::names::Names;
use crate::opened::{self, Kind, opened};
use crate::paths::Target;
use crate::script::Word;

/// Interpreters, and the options that take a program.
const INTERPRETERS: &[(Names, Names)] = &[
    (Names("python pypy ipython bpython ptpython jython micropython graalpy cython"), Names("-c")),
    (Names("node"), Names("-e --eval -p --print -pe")),
    (Names("ts-node tsx coffee qjs"), Names("-e --eval -p --print")),
    (Names("deno crystal"), Names("eval")),
    (Names("bun mongo mongosh"), Names("-e --eval")),
    (Names("perl ruby jruby truffleruby raku perl6 lua luajit texlua"), Names("-e -E")),
    (Names("php php-cgi phpdbg psysh"), Names("-r -B -R -E")),
    (Names("R Rscript julia octave scilab gnuplot gp elixir iex groovy scala"), Names("-e --eval")),
    (Names("osascript jrunscript rust-script clojure clj bb racket pry"), Names("-e --eval")),
    (Names("guile gjs sage gosh csi"), Names("-c -e")),
    (Names("sbcl clisp ecl erl maxima"), Names("-x -r -eval --eval --batch-string")),
    (Names("irb ghci tclsh wish jshell jjs ocaml swipl rails evcxr j2 slsh yap"), Names("")),
];

/// Those for which the operands behind the text of a program are its arguments. Others may run
/// them as well.
const TAKES_ARGUMENTS: Names = Names(
    "python pypy micropython node ts-node tsx coffee perl ruby jruby truffleruby raku perl6 php Rscript julia groovy",
);

/// Other programs that run commands from somewhere the policy does not look, such as a file.
const RUNNERS: Names =
    Names("sh bash dash zsh fish ksh source . sudo make npx docker ssh gdb vim vi emacs ed screen");

/// Options with which an interpreter prints something about itself and ends, tried with a program on its input. Others
/// take the option for an argument, or only say more, and run what they read.
const INFORMATION: &[(&str, Names)] = &[
    ("python", Names("-h -V --help --version")),
    ("node ruby perl irb", Names("-h -v --help --version")),
    ("perl", Names("-V")),
    ("jshell", Names("-h --help --version")),
    ("lua luajit", Names("-v")),
    ("php", Names("-h -i -m -v --help --version")),
];

/// Modules of Python that run what they read.
const DEBUGGERS: Names = Names("pdb ipdb pudb code asyncio");

fn interpreter(name: &str) -> Option<Names> {
    let name = identity::program(name);
    INTERPRETERS.iter().find(|(names, _)| names.has(name)).map(|(_, options)| *options)
}

/// Whether the program runs what is written in a language of its own.
pub fn is_interpreter(name: &str) -> bool {
    interpreter(name).is_some()
}

/// Whether the program opens scripts, and it is known which of its arguments is one.
pub fn opens_programs(name: &str) -> bool {
    is_interpreter(name) || opened::SHELLS.has(identity::program(name))
}

/// Whether an option of an interpreter or shell takes a program: `-c`, `-e`, `-m`.
pub fn is_inline_option(name: &str, option: &str) -> bool {
    let is_module = option == "-m" && Names("python pypy").has(name);
    is_module || is_inline(interpreter(name).unwrap_or(Names("-c")), option)
}

/// Whether an interpreter that was given the text of a program may run its operands as well.
pub fn runs_operands_too(name: &str) -> bool {
    is_interpreter(name) && !TAKES_ARGUMENTS.has(name)
}

/// Whether an argument makes an interpreter debug a program, and read commands meanwhile.
pub fn is_debugging(name: &str, argument: &str) -> bool {
    match name {
        "perl" => {
            let letters = argument.strip_prefix('-').unwrap_or_default();
            let flags = letters.split(|letter| "MmIFixCDeE".contains(letter)).next();
            flags.is_some_and(|flags| flags.contains('d'))
        }
        "node" => argument == "inspect",
        "ruby" => Names("-rdebug -rbyebug -rpry").has(argument),
        _ => argument == "--pdb",
    }
}

/// Whether this makes an interpreter print something about itself and end.
pub fn is_information(program: &str, option: &str) -> bool {
    let all = INFORMATION.iter().filter(|(programs, _)| Names(programs).has(program));
    all.into_iter().any(|(_, options)| options.has(option))
}

/// Whether a rule that allows the program allows everything.
pub fn runs_anything(name: &str) -> bool {
    interpreter(name).is_some() || RUNNERS.has(name)
}

pub fn inspect(actions: &mut Actions<'_>, name: &str, call: &Call<'_>) {
    let Some(options) = interpreter(name) else { return };
    let words = call.arguments();
    if words.first().is_some_and(|first| is_information(identity::program(name), &text(first))) {
        return;
    }
    let module = opened::module(name, words)
        .map(|(first, rest)| [std::slice::from_ref(&first), rest].concat());
    let debugs = |word: &Word| is_debugging(name, &text(word));
    let debugger =
        |module: &Vec<Word>| DEBUGGERS.has(&module.first().map(text).unwrap_or_default());
    if (module.as_ref().is_some_and(debugger) || words.iter().any(debugs))
        && !matches!(call.input, Input::Typed)
    {
        actions.unresolved(
            call.span(),
            "a debugger that reads commands from its input; run it in a terminal",
        );
        return;
    }
    if let Some(module) = module {
        if runs_made_python(actions, &module) {
            let what = "it runs the python in the folder, which the command made; run it in a call of its own";
            return actions.opaque(call.span(), what);
        }
        return open(actions, name, call);
    }
    let file = opened::file(name, words);
    let is_inline = |word: &Word| is_inline(options, &text(word));
    let inline = words[..file.unwrap_or(words.len())].iter().position(is_inline);
    let stands_for_input =
        |word: &Word| actions.knowledge.target(word) != Target::File || word.is_pipe();
    // It looks for tests instead.
    let tests = name == "node" && words.iter().any(|word| text(word) == "--test");
    let reads = inline.is_none() && file.map_or(!tests, |at| stands_for_input(&words[at]));
    let dash = words.iter().any(|word| text(word) == "-");
    if reads || (dash && inline.is_none()) {
        return match &call.input {
            Input::Text(program) => {
                let texts = vec![program.clone()];
                actions.push(Action::RunForeign { texts, span: call.span() });
            }
            Input::Typed => {}
            _ => actions.unresolved(
                call.span(),
                "an interpreter that reads a program from its input; run a file by its name",
            ),
        };
    }
    match (inline, file) {
        (Some(at), _) => {
            let texts = words[at..].iter().map(|word| text(word).into_owned()).collect();
            actions.push(Action::RunForeign { texts, span: call.span() });
            // A letter may also be the option of another interpreter.
            if opened::knows(name) {
                open(actions, name, call);
            }
        }
        (None, Some(at)) => {
            if words[at].literal().is_some() {
                let options = words[..at].iter().map(|word| text(word).into_owned());
                let texts = options.chain(actions.knowledge.texts_of_file(&words[at])).collect();
                actions.push(Action::RunForeign { texts, span: call.span() });
            }
            open(actions, name, call);
        }
        (None, None) => {}
    }
}

/// Lists what an interpreter opens as a program.
fn open(actions: &mut Actions<'_>, name: &str, call: &Call<'_>) {
    let known = actions.knowledge;
    let resolve = |word: &Word| known.directories.resolve(word);
    let Some(all) = opened(name, call.arguments(), &resolve) else {
        return actions.opaque(call.span(), "options with which nobody knows what it runs");
    };
    for opened in all {
        actions.push(match opened.kind {
            Kind::Named => Action::Open(opened.words()),
            Kind::Installed => Action::RunOwn(opened.words()),
            Kind::Unknown => Action::OpenUnknown(opened.words()),
        });
    }
}

/// Whether it is `venv` for a folder in which the command may have put a program of that name.
fn runs_made_python(actions: &Actions<'_>, module: &[Word]) -> bool {
    let known = actions.knowledge;
    let is_made = |folder: &Word| {
        let python = |name: &str| format!("{}/bin/{name}", text(folder).trim_end_matches('/'));
        let is_made = |path: String| {
            path.split('/').any(|part| known.has_written(part))
                || known.is_link(&Word::known(path, folder.span.clone()))
        };
        ["python", "python3"].map(python).into_iter().any(is_made)
    };
    let is_venv = module.first().is_some_and(|name| text(name) == "venv");
    is_venv && module[1..].iter().any(is_made)
}

/// Whether an argument introduces a program: `-c`, `-Bc`, `--eval=…`.
fn is_inline(options: Names, text: &str) -> bool {
    let long = |option: &str| option.starts_with("--") && text.starts_with(option);
    let cluster = text.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
    let short = |option: &str| {
        let letter = option.strip_prefix('-').filter(|letter| letter.len() == 1);
        letter.is_some_and(|letter| cluster.is_some_and(|letters| letters.contains(letter)))
    };
    options.iter().any(|option| option == text || long(option) || short(option))
}

fn text(word: &Word) -> Cow<'_, str> {
    word.text().unwrap_or_default()
}
