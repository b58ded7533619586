//! What the judge has learned from a request so far: values of variables, arguments of functions, directories, files
//! it wrote, texts that may become code.
//!
//! It only grows: a variable keeps every value it may have had, because a loop or function may use any of them.
//! A variable that the request does not set has the value its owner gave it, which is not an attack.

mod files;
mod numbers;
mod options;
mod readings;
mod values;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

use crate::names::Names;
use crate::paths::{OUTPUTS, ProgramPaths, Target, WorkingDirectories, base_name};
use crate::policy::{Policy, Scene};
use crate::script::{Origin, Piece, RedirectKind, Script, SimpleCommand, Span, Word};
use files::Files;
use values::Value;

#[derive(Debug, Clone, Default)]
pub struct Knowledge {
    /// Every value a variable may have had.
    values: HashMap<String, HashSet<Value>>,
    /// Variables that programs get.
    exported: HashSet<String>,
    /// Whether programs get all variables.
    exports_all: bool,
    /// What functions and inner shells are called with, a list for each call.
    arguments: Arguments,
    /// Names of functions that may exist.
    functions: Vec<String>,
    /// Aliases, each with the words it stands for.
    aliases: Vec<(String, Vec<Word>)>,
    files: Files,
    /// Base names of links it made, which lead to files with other names.
    links: BTreeSet<Option<String>>,
    pub directories: WorkingDirectories,
    /// Whether a file that a pattern such as `*.txt` finds is taken for an ordinary one. Its name could still be an
    /// option that runs a program, which a list of denied programs cannot promise to prevent.
    pub trusts_file_names: bool,
    /// Whether a descriptor other than the standard input may be open for reading.
    reads_descriptors: bool,
    /// The descriptors that the script opens by their numbers.
    opened: Vec<u32>,
    /// Variables that may be arrays, to which `declare` assigns texts by rules of their own.
    arrays: HashSet<String>,
    /// Words that the shell evaluates as arithmetic.
    pub evaluated: Vec<Word>,
    /// Words that the shell takes for the names of variables.
    pub named: Vec<Word>,
    /// Whether an array may have texts as keys.
    pub has_text_keys: bool,
    /// Whether a file that nobody judged may have set variables.
    has_sourced: bool,
    /// Texts that become code if something evaluates them.
    pub suspects: Vec<(String, Span)>,
    /// Whether something evaluates text.
    pub evaluates: bool,
    /// Whether something may run later than its place in the script: in a loop, a function, a trap.
    pub runs_out_of_order: bool,
    /// Whether something was learned while commands were judged, and not before.
    pub has_changed: bool,
    /// Whether functions may have been removed.
    pub unsets_functions: bool,
}

#[derive(Debug, Clone, Default)]
struct Arguments {
    calls: Vec<Vec<Word>>,
    /// Whether there were too many to remember.
    overflowed: bool,
    /// Whether the first ones may be gone.
    shifted: bool,
}

/// What another shell does not know.
pub struct Forgotten {
    names: Vec<String>,
    arguments: Arguments,
}

/// How many lists of arguments are remembered.
const MOST_CALLS: usize = 32;

/// Variables that the shell sets from the request's own words.
const SET_BY_SHELL: Names =
    Names("_ COMP_LINE COMP_WORDS COPROC DIRSTACK FUNCNAME MAPFILE OPTARG REPLY");

/// Variables that the shell evaluates when they are set.
const NUMBERS: Names = Names("EPOCHSECONDS HISTCMD LINENO OPTIND RANDOM SECONDS SRANDOM");

impl Knowledge {
    pub fn new(policy: &Policy, scene: &Scene<'_>) -> Self {
        let Scene { directory, rules_begin, home, .. } = *scene;
        let mut knowledge = Self {
            directories: WorkingDirectories::new(directory, rules_begin, home),
            trusts_file_names: policy.allow.is_empty(),
            ..Self::default()
        };
        for (name, value) in scene.variables {
            knowledge.add(name, Value::Text(value.clone()));
            knowledge.export(name);
        }
        knowledge
    }

    /// Learns what can be seen in a script before it runs.
    pub fn learn(&mut self, script: &mut Script, outermost: bool) {
        let changed = std::mem::take(&mut self.has_changed);
        self.evaluates |= script.evaluates;
        self.suspects.append(&mut script.suspects);
        self.evaluated.append(&mut script.evaluated);
        self.named.append(&mut script.named);
        self.arrays.extend(script.arrays.iter().cloned());
        self.functions.extend(script.function_names.iter().cloned());
        self.reads_descriptors |= script.commands.iter().any(reads_descriptor);
        let redirects = script.commands.iter().flat_map(|command| &command.redirects);
        self.opened.extend(redirects.filter_map(|redirect| redirect.descriptor));
        for (name, _) in &script.descriptor_variables {
            self.reads_descriptors = true;
            self.add(name, Value::Descriptor);
        }
        for (name, _) in &script.arithmetic_variables {
            self.add(name, Value::Number);
        }
        for assigned in script.values() {
            for value in self.values_in(script, &assigned) {
                self.add(assigned.name, value);
            }
        }
        self.has_changed = changed || (self.has_changed && !outermost);
    }

    /// Adds a value of a variable, `None` if only the run will know it.
    pub fn add_value(&mut self, name: &str, value: Option<&Word>) {
        let value = value.map_or(Value::Unknown, Value::of);
        self.add(name, value);
    }

    fn add(&mut self, name: &str, value: Value) {
        if NUMBERS.has(name) {
            self.evaluates = true;
            self.evaluated.push(Word::variable(name, 0..0));
        }
        self.has_changed |= self.values.entry(name.to_owned()).or_default().insert(value);
    }

    /// Takes note that programs get a variable.
    pub fn export(&mut self, name: &str) {
        self.has_changed |= self.exported.insert(name.to_owned());
    }

    /// From here on, programs get all variables.
    pub fn export_all(&mut self) {
        self.has_changed |= !self.exports_all;
        self.exports_all = true;
    }

    /// Whether programs get a variable.
    pub fn is_exported(&self, name: &str) -> bool {
        self.exports_all || self.exported.contains(name)
    }

    /// Adds the arguments of a function, or of a shell.
    pub fn add_arguments(&mut self, words: &[Word]) {
        if self.arguments.overflowed || self.arguments.calls.iter().any(|known| known == words) {
            return;
        }
        self.has_changed = true;
        match self.arguments.calls.len() < MOST_CALLS {
            true => self.arguments.calls.push(words.to_vec()),
            false => self.arguments.overflowed = true,
        }
    }

    /// From here on, only the run will know the arguments of functions.
    pub fn forget_arguments(&mut self) {
        self.arguments.overflowed = true;
    }

    /// Treats variables that programs do not get as unknown, and arguments as absent, until [`Knowledge::remember`].
    pub fn forget_unexported(&mut self) -> Forgotten {
        let arguments = std::mem::take(&mut self.arguments);
        let unexported = |name: &String| !self.exports_all && !self.exported.contains(name);
        let hidden = self.values.iter_mut().filter(|(name, _)| unexported(name));
        let names = hidden.filter_map(|(name, it)| it.insert(Value::Unknown).then(|| name.clone()));
        Forgotten { names: names.collect(), arguments }
    }

    pub fn remember(&mut self, forgotten: Forgotten) {
        self.arguments = forgotten.arguments;
        for name in &forgotten.names {
            if let Some(values) = self.values.get_mut(name) {
                values.remove(&Value::Unknown);
            }
        }
    }

    /// Takes note of a `shift`.
    pub fn shift_arguments(&mut self) {
        self.has_changed |= !self.arguments.shifted;
        self.arguments.shifted = true;
    }

    /// Whether there may be a function of this name.
    pub fn may_be_function(&self, name: &str) -> bool {
        self.functions.iter().any(|function| function == name)
    }

    pub fn add_alias(&mut self, name: String, words: Vec<Word>) {
        let alias = (name, words);
        if !self.aliases.contains(&alias) {
            self.has_changed = true;
            self.aliases.push(alias);
        }
    }

    /// Everything that a name may stand for as an alias.
    pub fn aliases(&self, name: &str) -> Vec<Vec<Word>> {
        let named = self.aliases.iter().filter(|(alias, _)| alias == name);
        named.map(|(_, words)| words.clone()).collect()
    }

    /// Whether there are so many that to follow all of them would take long.
    pub fn has_many_aliases(&self) -> bool {
        const MOST: usize = 8;
        self.aliases.len() >= MOST
    }

    /// Adds a link that may have the base name of this file.
    pub fn add_link(&mut self, file: &Word) {
        let name = file.text().map(|path| base_name(&path).to_owned());
        self.has_changed |= self.links.insert(name);
    }

    /// Whether a word may name a link that the request made, or a file behind one.
    pub fn is_link(&self, word: &Word) -> bool {
        !self.links.is_empty() && word.text().is_none_or(|path| self.follows_link(&path))
    }

    /// Whether a path may lead through a link that the request made.
    fn follows_link(&self, path: &str) -> bool {
        let is_part = |name: &str| path.split('/').any(|part| part == name);
        self.links.iter().any(|link| link.as_deref().is_none_or(is_part))
    }

    /// Whether a word certainly names a file in one of the folders, or a harmless device.
    pub fn is_within(&self, word: &Word, folders: &[String]) -> bool {
        let outputs = if self.reads_descriptors { Names("") } else { OUTPUTS };
        let paths = self.directories.resolve(word).unwrap_or_default();
        self.directories.is_within(word, folders, outputs)
            && !paths.iter().any(|path| self.follows_link(path))
    }

    /// Where the program with this path is. `None` if only the run will know.
    pub fn program_paths(&self, word: &Word) -> Option<ProgramPaths> {
        let program = self.directories.program(word)?;
        let paths = self.directories.resolve(word)?;
        (!paths.iter().any(|path| self.follows_link(path))).then_some(program)
    }

    /// What a word leads to where a program is about to read it.
    pub fn target(&self, word: &Word) -> Target {
        self.directories.target(word)
    }

    pub fn add_array(&mut self, name: String) {
        self.has_changed |= self.arrays.insert(name);
    }

    pub fn is_array(&self, name: &str) -> bool {
        self.arrays.contains(name)
    }

    /// Takes note of a file that the shell reads as a script, which may set any variable.
    pub fn source(&mut self) {
        self.has_changed |= !self.has_sourced;
        self.has_sourced = true;
    }

    /// Whether a variable has a text that `make` runs as code.
    pub fn has_make_code(&self) -> bool {
        let is_code = |value: &Value| matches!(value, Value::Text(text) if text.contains("$(") || text.contains("${"));
        self.values.values().flatten().any(is_code)
    }

    /// Whether these commands print only names and numbers that do not begin with a dash.
    pub fn lists(&self, script: &Script, commands: Range<usize>) -> bool {
        !self.files.may_be_options() && script.lists(commands)
    }

    /// Whether a word is the number of an open descriptor.
    pub fn is_descriptor(&self, word: &Word) -> bool {
        match word.pieces.as_slice() {
            [Piece::Unknown { origin: Origin::Variable(name), .. }] => {
                let empty = |value: &Value| *value == Value::Text(String::new());
                self.is_numeric(name) && self.has_values(name) && !self.values_of(name).any(empty)
            }
            _ => false,
        }
    }

    /// Whether a word may be the number of a descriptor that the shell uses itself: the one from which a session's
    /// shell reads its commands is among those.
    pub fn may_be_shells_descriptor(&self, word: &Word) -> bool {
        let is_foreign = |text: &str| {
            let number = text.trim_end_matches('-').parse::<u32>();
            number
                .is_ok_and(|number| number > MAX_USERS_DESCRIPTOR && !self.opened.contains(&number))
        };
        match (word.text(), word.pieces.as_slice()) {
            (Some(text), _) => is_foreign(&text),
            (None, [Piece::Unknown { origin: Origin::Variable(name), .. }]) => {
                !self.has_values(name)
                    || self.values_of(name).any(|value| match value {
                        Value::Descriptor => false,
                        Value::Text(text) => is_foreign(text),
                        _ => true,
                    })
            }
            _ => true,
        }
    }

    fn values_of(&self, name: &str) -> impl Iterator<Item = &Value> {
        self.values.get(name).into_iter().flatten()
    }

    fn has_values(&self, name: &str) -> bool {
        self.values_of(name).next().is_some()
    }
}

/// Shells keep descriptors of their own above this one.
const MAX_USERS_DESCRIPTOR: u32 = 9;

/// Whether it is a folder that the request, or an earlier one, may have chosen the name of.
fn is_folder_of_shell(name: &str) -> bool {
    name == "PWD" || name == "OLDPWD"
}

fn is_set_by_shell(name: &str) -> bool {
    const NUMBERS: Names = Names("BASHPID BASH_SUBSHELL");
    SET_BY_SHELL.has(name) || (name.starts_with("BASH") && !NUMBERS.has(name))
}

/// Whether a command opens a descriptor for reading that it could then write by its name.
fn reads_descriptor(command: &SimpleCommand) -> bool {
    command.redirects.iter().any(|redirect| match &redirect.kind {
        RedirectKind::Read(_) => redirect.descriptor.is_some_and(|number| number != 0),
        RedirectKind::Duplicate(word) => {
            let usual = word.text().is_some_and(|text| ["1", "2", "-"].contains(&&*text));
            redirect.descriptor != Some(0) && !usual
        }
        _ => false,
    })
}
