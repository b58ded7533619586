//! What a program does with its input, judged by its name and its arguments.

use super::table::{
    CHOOSERS, COMMAND_FILES, CONSOLE_WORDS, CONSOLES, DATA, DEBUGGERS, ESCAPING, KEYED, PAGERS,
    PLAIN_RELAYS, RELAYS, SHELL_RELAYS, STARTERS,
};
use crate::identity;
use crate::names::Names;
use crate::paths::{Target, base_name, target_anywhere};
use crate::programs::{
    is_database, is_debugging, is_editor, is_inline_option, is_interpreter, is_shell, is_wrapper,
};

/// A program that may read the input of a job.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reader<'a> {
    pub name: &'a str,
    pub arguments: &'a [String],
    /// Whether it has a terminal for other programs, and may pass its input on to them.
    pub relays: bool,
}

/// What a program does with its input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Use {
    /// Runs it, as this program does.
    Runs(String),
    /// Shows text, and runs commands after some keys.
    Pages,
    /// Edits text, and runs commands after some keys.
    Edits(Editor),
    /// Does something at every key, and may run commands.
    ActsOnKeys,
    /// Runs another program step by step, and reads commands for that.
    Debugs,
    /// Reads answers, and may start a pager or an editor that reads the rest.
    Starts,
    /// Nobody knows. An interpreter runs a program of which that is true.
    Unknown { interpreter: Option<String> },
    /// Reads data.
    Reads,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Editor {
    Vi,
    Nano,
    Emacs,
    Other,
}

impl Reader<'_> {
    pub(super) fn its_use(&self) -> Use {
        let (name, arguments) = (identity::program(self.name), self.arguments);
        let passes_on = self.relays && !PLAIN_RELAYS.has(name);
        match use_of(self.name, arguments) {
            // What it passes its input on to can be anything, and most likely is a shell.
            Use::Reads | Use::Unknown { .. } if passes_on => Use::Runs("sh".to_owned()),
            Use::Runs(_) if passes_on && !RELAYS.has(name) => Use::Runs("sh".to_owned()),
            found => found,
        }
    }

    /// Whether it certainly reads keys as soon as it is started.
    pub(super) fn takes_keys(&self) -> bool {
        matches!(self.its_use(), Use::Pages | Use::Edits(_) | Use::ActsOnKeys | Use::Debugs)
    }
}

/// The programs that a command with these words starts. Behind a wrapper, each word may be one.
pub fn started(words: &[String]) -> impl Iterator<Item = Reader<'_>> {
    let first = words.first().map(|name| identity::program(base_name(name))).unwrap_or_default();
    let most = if is_wrapper(first) || RELAYS.has(first) { words.len() } else { 1 };
    words.iter().enumerate().take(most).map(|(at, name)| Reader {
        name: base_name(name),
        arguments: &words[at + 1..],
        relays: false,
    })
}

fn use_of(full_name: &str, arguments: &[String]) -> Use {
    let name = identity::program(full_name);
    let has = |words: &[&str]| {
        arguments.iter().any(|argument| words.iter().any(|word| argument.contains(word)))
    };
    match name {
        "busybox" | "toybox" => match arguments.split_first() {
            Some((applet, arguments)) => use_of(base_name(applet), arguments),
            None => Use::Reads,
        },
        _ if is_shell(name) => match has_program(name, arguments) {
            true => Use::Reads,
            false => Use::Runs(full_name.to_owned()),
        },
        // A line begins with a command, as in a shell.
        "tclsh" | "wish" | "expect" if !has_program(name, arguments) => Use::Runs("sh".to_owned()),
        _ if is_interpreter(name) => interpreted(full_name, arguments),
        _ if is_database(name) || ESCAPING.has(name) => Use::Runs(name.to_owned()),
        _ if RELAYS.has(name) => relayed(name, arguments),
        _ if PAGERS.has(name) => Use::Pages,
        _ if KEYED.has(name) => Use::ActsOnKeys,
        _ if CHOOSERS.has(name)
            && has(&["execute", "become", "reload", "preview", "transform"]) =>
        {
            Use::ActsOnKeys
        }
        _ if DEBUGGERS.has(name) => Use::Debugs,
        _ if is_editor(name) && has(COMMAND_FILES) => Use::ActsOnKeys,
        "nano" | "rnano" | "pico" => Use::Edits(Editor::Nano),
        _ if name.contains("vi") && is_editor(name) => Use::Edits(Editor::Vi),
        "ex" => Use::Runs("ex".to_owned()),
        "emacs" | "emacsclient" | "xemacs" | "zile" | "mg" | "jove" => Use::Edits(Editor::Emacs),
        _ if is_editor(name) => Use::Edits(Editor::Other),
        _ if STARTERS.has(name) => Use::Starts,
        _ if DATA.has(name) || is_wrapper(name) => Use::Reads,
        _ => Use::Unknown { interpreter: None },
    }
}

/// What an interpreter does with its input: its program decides, if it was given one.
fn interpreted(full_name: &str, arguments: &[String]) -> Use {
    let name = identity::program(full_name);
    let runs = Use::Runs(full_name.to_owned());
    let is_debugger = |word: &String| is_debugging(name, word);
    if arguments.iter().any(is_debugger) {
        return Use::Debugs;
    }
    if !has_program(name, arguments) {
        return runs;
    }
    let unknown = Use::Unknown { interpreter: Some(full_name.to_owned()) };
    let operand = arguments.iter().position(|word| !word.starts_with('-'));
    let inline = arguments.iter().position(|word| is_inline_option(name, word));
    let inline = inline.filter(|at| operand.is_none_or(|operand| *at < operand));
    let (program, rest) = match (module(name, arguments), inline, operand) {
        (Some(module), ..) => module,
        (None, Some(at), _) => {
            let is_console = |text: &String| CONSOLE_WORDS.iter().any(|word| text.contains(word));
            return if arguments[at..].iter().any(is_console) { runs } else { unknown };
        }
        (None, None, Some(at)) => (base_name(&arguments[at]), &arguments[at + 1..]),
        (None, None, None) => return runs,
    };
    if let Some((_, interpreter)) = CONSOLES.iter().find(|(names, _)| names.has(program)) {
        return Use::Runs((*interpreter).to_owned());
    }
    match use_of(program, rest) {
        Use::Unknown { .. } | Use::Reads => unknown,
        found => found,
    }
}

/// The module that Python runs, and the arguments after it: `-m pdb x.py`, `-mpdb`.
fn module<'a>(name: &str, arguments: &'a [String]) -> Option<(&'a str, &'a [String])> {
    let is_python = Names("python pypy").has(name);
    let glued = |word: &'a String| {
        let (letters, glued) = word.strip_prefix('-')?.split_once('m')?;
        letters.chars().all(|c| "bBdEIOPqRsStuvx".contains(c)).then_some(glued)
    };
    let found = arguments.iter().enumerate().filter(|_| is_python);
    let (at, glued) = found.filter_map(|(at, word)| Some((at, glued(word)?))).next()?;
    match (glued, arguments.get(at + 1)) {
        ("", Some(next)) => Some((next, &arguments[at + 2..])),
        ("", None) => None,
        _ => Some((glued, &arguments[at + 1..])),
    }
}

/// What becomes of input that a program passes on: the command among its arguments decides.
fn relayed(name: &str, arguments: &[String]) -> Use {
    let has = |option: &str| arguments.iter().any(|argument| argument == option);
    let words = arguments.iter().flat_map(|argument| argument.split([' ', ';', '|', '&', '=']));
    let uses = words.map(|word| {
        let bare = identity::program(base_name(word));
        let is_relay = RELAYS.has(bare);
        if is_relay { Use::Reads } else { use_of(bare, &[]) }
    });
    let starts_shell = SHELL_RELAYS.has(name)
        || (name == "sudo" && (has("-i") || has("-s")))
        || ["exec", "run", "attach", "shell"].into_iter().any(has);
    let is_known = |found: &Use| !matches!(found, Use::Reads | Use::Unknown { .. });
    let found = uses.into_iter().find(is_known);
    match found {
        Some(found) => found,
        None if starts_shell => Use::Runs("sh".to_owned()),
        None if STARTERS.has(name) => Use::Starts,
        None => Use::Reads,
    }
}

/// Whether a shell or interpreter certainly got its program when it was started: `sh -c text`, `python3 file`.
fn has_program(name: &str, arguments: &[String]) -> bool {
    const FLAGS: Names =
        Names("-u -B -q -v -x -e -l -w --norc --noprofile --posix --login -- --verbose");
    let is_python = Names("python pypy").has(name);
    // `-ic` runs a program, and reads another one after it.
    let stays = |word: &String| {
        let letters = word.strip_prefix('-').unwrap_or_default();
        let before = letters.split(['c', 'm', 'W', 'X']).next().unwrap_or_default();
        word == "-i"
            || word == "-s"
            || (is_python && !letters.starts_with('-') && before.contains('i'))
    };
    if arguments.iter().any(stays) {
        return false;
    }
    let is_file = |word: &String| target_anywhere(word) == Target::File;
    let is_operand = |word: &String| !word.is_empty() && !word.starts_with('-') && is_file(word);
    let is_certain = |at: usize| match at.checked_sub(1).map(|before| &arguments[before]) {
        None => true,
        Some(before) => !before.starts_with('-') || FLAGS.has(before),
    };
    let inline = arguments.iter().any(|word| is_inline_option(name, word));
    inline || (0..arguments.len()).any(|at| is_operand(&arguments[at]) && is_certain(at))
}
