//! Programs with options, arguments or input that make them run other programs.
//!
//! Most of them are rows in [`table`]; a function here handles what does not fit into one.

mod few;
mod signs;
mod table;

use super::arguments::{Argument, parse};
use super::beginnings::beginnings;
use super::{compilers, databases, editors, make, packages, writers};
use crate::action::{Action, Actions, Runner};
use crate::call::{Call, Input};
use crate::names::Names;
use crate::script::Word;
use crate::subcommands;
use few::FEW_RISKY_OPTIONS;
use signs::{ASKING, COMPRESSORS, RUNNERS, SIGNS};
use table::{RISKY_OPTIONS, RiskyOptions};

pub fn inspect(actions: &mut Actions<'_>, name: &str, call: &Call<'_>) {
    let first = call.arguments().first().and_then(Word::text).unwrap_or_default();
    let asks = ASKING.has(&first) || (first == "-h" && call.arguments().len() == 1);
    let loader =
        ["ld-linux", "ld.so", "ld-musl", "dh_"].iter().any(|start| name.starts_with(start));
    // Emulators of other machines, which take a program; `qemu-img` and the like do not.
    let emulator = name
        .strip_prefix("qemu-")
        .is_some_and(|machine| !Names("img io nbd storage-daemon ga edid pr-helper").has(machine));
    if (RUNNERS.has(name) || loader || emulator) && !asks {
        return actions.opaque(call.span(), "a program that runs others");
    }
    if editors::is_editor(name) {
        return editors::inspect(actions, call);
    }
    match name {
        "ed" | "red" => return editors::ed(actions, call),
        "dc" => return editors::dc(actions, call),
        "go" => return compilers::go(actions, call),
        "crontab" => return crontab(actions, call),
        "tar" => {
            old_style_tar(actions, call);
            tar_list(actions, call);
        }
        "dd" => return writers::inspect(actions, name, call),
        "npm" | "pnpm" | "yarn" => packages::npm(actions, name, call),
        "npx" | "pnpx" | "bunx" | "uvx" => packages::run_package(actions, call.arguments()),
        "pip" => packages::pip(actions, call),
        "corepack" => packages::corepack(actions, call),
        _ if packages::is_runner(name) => packages::runner(actions, name, call),
        "rustc" | "rustdoc" | "clippy-driver" => compilers::rustc(actions, call.arguments()),
        "cargo" => compilers::cargo(actions, call),
        "rustup" => compilers::rustup(actions, call),
        "make" => return make::inspect(actions, call),
        "ip" => return ip(actions, call),
        "zip" => zip(actions, call),
        "apt" | "apt-get" | "aptitude" | "apt-cache" => packages::apt(actions, call),
        "cmake" | "ctest" => cmake(actions, call),
        "docker" | "podman" | "nerdctl" => docker(actions, call),
        "gh" | "glab" | "aws" | "systemctl" | "gcloud" | "helm" | "openssl" => {
            settings(actions, name, call)
        }
        _ if LINKING.has(name) => return compilers::c(actions, name, call),
        _ => {}
    }
    databases::inspect(actions, name, call);
    beginnings(actions, name, call);
    signs(actions, name, call);
    writers::inspect(actions, name, call);
    let rows = RISKY_OPTIONS.iter().chain(FEW_RISKY_OPTIONS);
    for risky in rows.filter(|risky| risky.names.has(name)) {
        options(actions, risky, name, call);
    }
}

/// Compilers and linkers for C.
const LINKING: Names = Names(
    "gcc g++ cc c++ cpp clang clang++ clang-cl gfortran gccgo gnat gdc ldc2 dmd icc icx ld ld.lld \
     lld mold",
);

/// Sub-commands that change settings or install something that runs later.
const SETTINGS: &[(&str, Names)] = &[
    ("gh", Names("alias extension ext config:set codespace")),
    ("glab", Names("alias config:set")),
    ("aws", Names("configure:set ssm:start-session")),
    ("systemctl", Names("edit")),
    ("gcloud", Names("config:set")),
    ("helm", Names("plugin")),
    ("openssl", Names("engine")),
];

fn settings(actions: &mut Actions<'_>, program: &str, call: &Call<'_>) {
    let Some((_, refused)) = SETTINGS.iter().find(|(name, _)| *name == program) else { return };
    let words = call.arguments();
    let words = subcommands::after_global_options(program, words).unwrap_or(words);
    let sub = |at: usize| words.get(at).and_then(Word::text).unwrap_or_default();
    if sub(1) == "list" {
        return;
    }
    if refused.has(&sub(0)) || refused.has(&format!("{}:{}", sub(0), sub(1))) {
        actions.opaque(call.span(), "a setting that can run a program");
    }
}

/// `docker --config folder`, in which plugins and credential helpers are.
fn docker(actions: &mut Actions<'_>, call: &Call<'_>) {
    let is_option = |word: &&Word| word.prefix().starts_with('-');
    let mut options = call.arguments().iter().take_while(is_option);
    if let Some(word) = options.find(|word| word.prefix().starts_with("--config")) {
        actions.opaque(word.span.clone(), "settings that can run programs");
    }
}

/// `ip netns exec name command`.
fn ip(actions: &mut Actions<'_>, call: &Call<'_>) {
    let words = call.arguments();
    let is = |word: &Word, long: &str| {
        word.text().is_some_and(|text| text.len() > 1 && long.starts_with(&*text))
    };
    let object = words.iter().position(|word| is(word, "netns") || is(word, "vrf"));
    let verb = words.iter().position(|word| is(word, "exec"));
    match (object, verb) {
        (Some(object), Some(verb)) if object < verb => match words.get(verb + 2..) {
            Some(command) if !command.is_empty() => actions.run(command.to_vec()),
            _ => {}
        },
        _ if words.iter().any(|word| is(word, "-batch") || is(word, "-force")) => {
            actions.opaque(call.span(), "commands in a file");
        }
        _ => {}
    }
}

/// `cmake -E env command`, `cmake -D CMAKE_C_COMPILER=x`.
fn cmake(actions: &mut Actions<'_>, call: &Call<'_>) {
    const NAMING: [&str; 6] =
        ["COMPILER", "LAUNCHER", "TOOLCHAIN", "_PROGRAM", "EMULATOR", "LINKER"];
    for word in call.arguments() {
        let name = word.prefix();
        let name = name.split('=').next().unwrap_or_default();
        if NAMING.iter().any(|sign| name.contains(sign)) {
            return actions.opaque(word.span.clone(), "a setting that names a program");
        }
    }
}

/// `zip -TT command`, also at the end of other letters.
fn zip(actions: &mut Actions<'_>, call: &Call<'_>) {
    let tests = |word: &&Word| {
        let text = word.prefix();
        text.starts_with('-') && !text.starts_with("--") && text.contains("TT")
    };
    if let Some(word) = call.arguments().iter().find(tests) {
        actions.opaque(word.span.clone(), "an option that runs a program");
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
                let breaks =
                    value.as_ref().and_then(Word::text).is_some_and(|it| it.contains('\n'));
                if breaks && is_pager(program) {
                    return actions.opaque(span, "a command for the pager");
                }
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
                } else if risky.aside.iter().any(is)
                    && let Some(file) = value
                {
                    actions.push(Action::WriteAside(file));
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

fn is_pager(program: &str) -> bool {
    Names("less more most pg").has(program)
}

/// Refuses a command for a pager: `less '+!x'`.
fn operand(actions: &mut Actions<'_>, program: &str, word: &Word) {
    let text = word.text().unwrap_or_default();
    let runs = text.starts_with('+') && text.contains(['!', '|', 'v', 's', 'E']);
    if runs && is_pager(program) {
        actions.opaque(word.span.clone(), "a command for the pager");
    }
}

fn crontab(actions: &mut Actions<'_>, call: &Call<'_>) {
    let lists = call.arguments().iter().any(|word| word.text().as_deref() == Some("-l"));
    if !lists {
        actions.opaque(call.span(), "commands that run later");
    }
}

/// `tar -T -`: a list of files may contain options.
fn tar_list(actions: &mut Actions<'_>, call: &Call<'_>) {
    let words = call.arguments();
    let is_verbatim = |word: &Word| {
        let text = word.text().unwrap_or_default();
        text == "--null" || text.starts_with("--verb")
    };
    let is_list = |(at, word): (usize, &Word)| {
        let (text, prefix) = (word.text(), word.prefix());
        let known = text.as_deref().unwrap_or_default();
        let short = known.starts_with('-') && !known.starts_with("--") && known.ends_with('T');
        let long = known.starts_with("--files") && !known.contains('=');
        let glued = match prefix.strip_prefix("--files") {
            Some(rest) => rest.split_once('=').map(|(_, file)| file),
            None => prefix.strip_prefix("-T").filter(|_| !short),
        };
        let glued = glued.map(|file| match &text {
            Some(_) => Word::known(file, word.span.clone()),
            None => Word::unknown(false, word.span.clone()),
        });
        let named = words.get(at + 1).filter(|_| short || long).cloned();
        named.or(glued).is_some_and(|file| actions.knowledge.has_unknown_content(&file))
    };
    if !words.iter().any(is_verbatim) && words.iter().enumerate().any(is_list) {
        let what = "a list of files that may contain options; --verbatim-files-from prevents that";
        actions.opaque(call.span(), what);
    }
}

/// `tar cIf`: letters without a dash, followed by their values.
fn old_style_tar(actions: &mut Actions<'_>, call: &Call<'_>) {
    let Some(letters) = call.arguments().first().and_then(Word::text) else { return };
    if letters.starts_with('-') {
        return;
    }
    if letters.contains(['I', 'F', 'T']) {
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
