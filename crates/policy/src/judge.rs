//! Judges every command of a script, and every command those run.

use crate::denial::{Denial, Why};
use crate::knowledge::Knowledge;
use crate::names::Names;
use crate::paths::{WorkingDirectories, base_name};
use crate::rule::{CommandName, Match};
use crate::script::{
    MAX_COMMANDS, ParseError, Redirect, RedirectKind, Script, Shell, SimpleCommand, Span, Word,
};
use crate::threats::{self, Threat};
use crate::variables::{Effect, effect};
use crate::{Policy, Scene, Unresolved, programs};

/// How many commands may start one another before we stop looking.
const MAX_WRAPPERS: u32 = 8;
/// How many texts may stand in one another: `sh -c 'sh -c "…"'`.
const MAX_TEXTS: u32 = 8;

pub type Ruling = Result<(), Denial>;

/// One judging of one request.
pub struct Judge<'a> {
    pub policy: &'a Policy,
    scene: &'a Scene<'a>,
    /// What was sent, for showing parts of it.
    text: &'a str,
    /// The language of the text that is being judged.
    pub shell: Shell,
    commands: usize,
    texts: u32,
    pub directories: WorkingDirectories,
    pub knowledge: Knowledge,
    /// Functions that are defined for sure where the text is that is being judged.
    functions: Vec<String>,
    pub threats: Vec<Threat>,
    /// The rules of the allow list that were needed, by their places in it.
    needed: Vec<usize>,
}

/// A command and what it finds.
#[derive(Clone)]
pub struct Call<'a> {
    pub words: &'a [Word],
    pub input: Input,
    /// Whether all it reads is names and numbers that other commands print.
    pub listed: bool,
    /// How many commands are between it and the script.
    pub wrappers: u32,
}

/// What a command reads on its standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A text that stands in the script.
    Text(String),
    /// What another command prints, or a text that only the run will know.
    Unknown,
    /// What is typed while it runs, which is judged then.
    Typed,
    /// A file, or whatever the script itself reads.
    Other,
}

impl Call<'_> {
    /// The program's name, without the folder it is in.
    pub fn name(&self) -> Option<String> {
        let word = self.words.first()?;
        match word.literal() {
            Some(name) => Some(base_name(&name).to_owned()),
            None => {
                let end = word.suffix();
                let base = end.rsplit_once('/').filter(|_| word.is_single())?.1;
                Some(base.to_owned())
            }
        }
    }

    pub fn arguments(&self) -> &[Word] {
        &self.words[1..]
    }

    pub fn span(&self) -> Span {
        let start = self.words.first().map_or(0, |word| word.span.start);
        let end = self.words.iter().map(|word| word.span.end).max().unwrap_or(start);
        start..end.max(start)
    }
}

impl<'a> Judge<'a> {
    pub fn new(policy: &'a Policy, scene: &'a Scene<'a>, text: &'a str) -> Self {
        Self {
            policy,
            scene,
            text,
            shell: Shell::Sh,
            commands: 0,
            texts: 0,
            directories: WorkingDirectories::new(scene.directory, scene.home),
            knowledge: Knowledge::new(scene.variables),
            functions: Vec::new(),
            threats: Vec::new(),
            needed: Vec::new(),
        }
    }

    /// Whether what the script reads is typed and judged then, and nothing in it can change that.
    fn is_typed(&self) -> bool {
        self.scene.typed && !self.text.trim().contains(INDIRECT)
    }

    /// The rules of the allow list that were needed.
    pub fn rules(&self) -> Vec<String> {
        self.needed.iter().map(|at| self.policy.allow[*at].to_string()).collect()
    }

    /// Judges the whole of a text that was sent.
    pub fn whole(&mut self, text: &str, shell: Shell) -> Ruling {
        self.look(text, shell)?;
        let moved = self.directories.have_changed() && !self.policy.write_dirs.is_empty();
        if !self.knowledge.runs_out_of_order || !(moved || self.knowledge.has_changed) {
            return Ok(());
        }
        // Something runs later than it stands there, with what was learned since.
        let (directories, knowledge) = (self.directories.clone(), self.knowledge.clone());
        *self = Self { directories, knowledge, ..Self::new(self.policy, self.scene, self.text) };
        self.look(text, shell)
    }

    fn look(&mut self, text: &str, shell: Shell) -> Ruling {
        self.script(text, shell, None)?;
        self.evaluate_suspects()
    }

    /// Judges what is code to something that evaluates text.
    fn evaluate_suspects(&mut self) -> Ruling {
        let suspects = std::mem::take(&mut self.knowledge.suspects);
        if self.knowledge.evaluates {
            for (text, span) in &suspects {
                self.evaluate(text, span)?;
            }
        }
        Ok(())
    }

    /// Judges a text as something that evaluates it would read it.
    pub fn evaluate(&mut self, text: &str, span: &Span) -> Ruling {
        let inert = !text.contains("$(") && !text.contains("${") && !text.contains('`');
        if inert {
            return self.unresolved(span.clone(), "a text that could become code");
        }
        let read = Script::parse_evaluated(text, Shell::Bash, span.clone());
        let script = read.map_err(|error| self.not_understood(error))?;
        self.all_of(&script)
    }

    fn not_understood(&self, ParseError { span, what }: ParseError) -> Denial {
        self.deny(span, Why::NotUnderstood { what })
    }

    pub fn deny(&self, span: Span, why: Why) -> Denial {
        let part = self.text.get(span.clone()).unwrap_or_default();
        Denial { part: shortened(part), span, why }
    }

    /// Judges a text for a shell.
    pub fn script(&mut self, text: &str, shell: Shell, within: Option<Span>) -> Ruling {
        let whole = within.clone().unwrap_or(0..text.len());
        let read = Script::parse(text, shell, within);
        let mut script = read.map_err(|error| self.not_understood(error))?;
        self.commands += script.commands.len();
        self.texts += 1;
        if self.commands > MAX_COMMANDS {
            return Err(self.deny(whole, Why::NotUnderstood { what: "it has too many commands" }));
        }
        if self.texts > MAX_TEXTS {
            return Err(self.deny(whole, Why::NotUnderstood { what: "it is nested too deep" }));
        }
        threats::look(self, &script);
        self.knowledge.learn(&mut script, self.texts == 1);
        let outer = std::mem::replace(&mut self.shell, shell);
        // A text knows the functions around it; nobody can say whether those in it are ever defined.
        let functions = self.functions.clone();
        self.all_of(&script)?;
        self.functions = functions;
        self.shell = outer;
        self.texts -= 1;
        Ok(())
    }

    fn all_of(&mut self, script: &Script) -> Ruling {
        for (name, span) in script.set_variables.iter().chain(&script.arithmetic_variables) {
            self.variable(name, None, span)?;
        }
        for (at, command) in script.commands.iter().enumerate() {
            self.command(script, at, command)?;
        }
        Ok(())
    }

    fn command(&mut self, script: &Script, at: usize, command: &SimpleCommand) -> Ruling {
        for assignment in &command.assignments {
            self.variable(&assignment.name, Some(&assignment.value), &assignment.value.span)?;
        }
        for redirect in &command.redirects {
            self.redirect(redirect)?;
        }
        self.knowledge.runs_out_of_order |= command.repeats;
        let Some(first) = command.words.first() else { return Ok(()) };
        let name = first.literal().unwrap_or_default();
        for (function, from) in &script.functions {
            if *from <= at && !self.functions.contains(function) {
                self.functions.push(function.clone());
            }
        }
        let defined = self.functions.iter().any(|defined| *defined == name) && !SPECIAL.has(&name);
        if defined && !self.knowledge.unsets_functions && !unsets(script) {
            // Its body was judged where it stands.
            return self.denied(&command.words);
        }
        let before = (0..at).filter(|at| script.commands[*at].pipeline == command.pipeline);
        let listed =
            command.piped && before.clone().all(|at| self.knowledge.lists(script, at..at + 1));
        let input = match script.input(command) {
            Some(word) => word.text().map_or(Input::Unknown, |text| Input::Text(text.into())),
            None if command.piped => Input::Unknown,
            None if self.is_typed() => Input::Typed,
            None => Input::Other,
        };
        let words = self.knowledge.with_single_words(&command.words);
        self.call(&Call { words: &words, input, listed, wrappers: 0 })
    }

    /// Judges a command and all it runs.
    pub fn call(&mut self, call: &Call<'_>) -> Ruling {
        self.is_shallow(call)?;
        let name = CommandName::of(call.words);
        self.denied_as(&name, call.words)?;
        self.allowed(&name, call.words)?;
        let Some(name) = call.name() else { return Ok(()) };
        if ["cd", "pushd", "popd"].contains(&name.as_str()) {
            self.enter(call.arguments());
        }
        programs::inspect(self, &name, call)
    }

    fn is_shallow(&self, call: &Call<'_>) -> Ruling {
        match call.wrappers > MAX_WRAPPERS {
            true => {
                Err(self.deny(call.span(), Why::NotUnderstood { what: "it is nested too deep" }))
            }
            false => Ok(()),
        }
    }

    /// Refuses what a rule denies, or may deny.
    pub fn denied(&self, words: &[Word]) -> Ruling {
        self.denied_as(&CommandName::of(words), words)
    }

    fn denied_as(&self, name: &CommandName<'_>, words: &[Word]) -> Ruling {
        let span = span_of(words);
        for rule in &self.policy.deny {
            match rule.matches(name, words) {
                Match::No => {}
                Match::Maybe if self.policy.unresolved == Unresolved::Allow => {}
                Match::Maybe => {
                    let what = "it could be something that is denied";
                    return Err(self.deny(span, Why::Unresolved { what }));
                }
                Match::Yes => {
                    let (reason, instead) = (rule.reason.clone(), rule.instead.clone());
                    let rule = rule.to_string();
                    return Err(self.deny(span, Why::Denied { rule, reason, instead }));
                }
            }
        }
        Ok(())
    }

    fn allowed(&mut self, name: &CommandName<'_>, words: &[Word]) -> Ruling {
        let allow = &self.policy.allow;
        if let Some(at) = allow.iter().position(|rule| rule.allows(name, words)) {
            if !self.needed.contains(&at) {
                self.needed.push(at);
            }
            return Ok(());
        }
        if allow.is_empty() {
            return Ok(());
        }
        let span = span_of(words);
        match name.known().map(str::to_owned) {
            Some(name) => {
                let allowed = allow.iter().map(ToString::to_string).collect();
                Err(self.deny(span, Why::NotAllowed { name, allowed }))
            }
            None if allow.iter().any(|rule| rule.is_everything()) => Ok(()),
            None if self.policy.unresolved == Unresolved::Allow => Ok(()),
            None => Err(self.deny(span, Why::Unresolved { what: "its name" })),
        }
    }

    /// Judges a text that another process runs as a script, if it is known.
    pub fn text(&mut self, word: &Word, shell: Shell) -> Ruling {
        self.elsewhere(|judge| judge.text_here(word, shell))
    }

    /// Judges a text that this shell runs as a script, if it is known.
    pub fn text_here(&mut self, word: &Word, shell: Shell) -> Ruling {
        match word.text() {
            Some(text) => self.script(&text, shell, Some(word.span.clone())),
            None => self.unresolved(word.span.clone(), "a text that becomes a script"),
        }
    }

    /// Judges what another process runs, which knows nothing of our functions.
    pub fn elsewhere(&mut self, work: impl FnOnce(&mut Self) -> Ruling) -> Ruling {
        let functions = std::mem::take(&mut self.functions);
        work(self)?;
        self.functions = functions;
        Ok(())
    }

    /// Judges a command that a program runs for its own purposes: no rule has to allow it.
    pub fn run_by(&mut self, call: &Call<'_>) -> Ruling {
        self.is_shallow(call)?;
        self.denied(call.words)?;
        match call.name() {
            Some(name) => self.elsewhere(|judge| programs::inspect(judge, &name, call)),
            None => self.unresolved(call.span(), "its name"),
        }
    }

    /// Refuses what only the run will know.
    pub fn unresolved(&self, span: Span, what: &'static str) -> Ruling {
        match self.policy.unresolved {
            Unresolved::Allow => Ok(()),
            Unresolved::Deny => Err(self.deny(span, Why::Unresolved { what })),
        }
    }

    /// Refuses what could run anything.
    pub fn opaque(&self, span: Span, what: &'static str) -> Ruling {
        match self.policy.unresolved == Unresolved::Allow && self.policy.allow.is_empty() {
            true => Ok(()),
            false => Err(self.deny(span, Why::Opaque { what })),
        }
    }

    /// Judges a variable that gets a value.
    pub fn variable(&mut self, name: &str, value: Option<&Word>, span: &Span) -> Ruling {
        let known = value.and_then(Word::text);
        let open = self.policy.unresolved == Unresolved::Allow && self.policy.allow.is_empty();
        match (effect(name, known.as_deref()), value) {
            (Effect::Harmless, _) => Ok(()),
            (Effect::Command, Some(_))
                if known.as_deref().is_some_and(|value| KNOWN.has(value)) =>
            {
                Ok(())
            }
            (Effect::Command, Some(_)) if known.as_deref() == Some("") => Ok(()),
            (Effect::Command, Some(value)) if known.is_some() => self.text(value, Shell::Sh),
            _ if open => Ok(()),
            _ => Err(self.deny(span.clone(), Why::Variable { name: name.to_owned() })),
        }
    }

    fn redirect(&mut self, redirect: &Redirect) -> Ruling {
        let (word, writes) = match &redirect.kind {
            RedirectKind::Read(word) => (word, false),
            RedirectKind::Write(word) => (word, true),
            RedirectKind::Duplicate(word) => {
                (word, !is_descriptor(word) && !self.knowledge.is_descriptor(word))
            }
            RedirectKind::HereString(_) | RedirectKind::HereDocument(_) => return Ok(()),
        };
        let folders = &self.policy.write_dirs;
        let text = word.text().unwrap_or_default();
        if text.starts_with("/dev/tcp/") || text.starts_with("/dev/udp/") {
            return Err(self.deny(redirect.span.clone(), Why::Network));
        }
        if let (RedirectKind::Duplicate(_), true) = (&redirect.kind, writes) {
            // Bash expands such a name twice.
            self.knowledge.evaluates |= word.text().is_none();
            if text.contains(['$', '`']) {
                self.evaluate(&text, &word.span)?;
            }
        }
        if !writes || word.is_pipe() {
            return Ok(());
        }
        self.knowledge.add_written_file(word);
        match folders.is_empty() || self.directories.is_within(word, folders) {
            true => Ok(()),
            false => Err(self.writes(redirect.span.clone(), word)),
        }
    }

    fn writes(&self, span: Span, word: &Word) -> Denial {
        let path = word.text().unwrap_or("a file only the run will know".into());
        self.deny(span, Why::Writes { path: path.into() })
    }

    /// Judges a file that a program's option or argument makes it write.
    pub fn file(&mut self, word: &Word) -> Ruling {
        if word.is_pipe() {
            return Ok(());
        }
        self.knowledge.add_written_file(word);
        let folders = &self.policy.write_dirs;
        let inside = |word: &Word| self.directories.is_within(word, folders);
        match folders.is_empty() || word.alternatives().iter().all(inside) {
            true => Ok(()),
            false => Err(self.writes(word.span.clone(), word)),
        }
    }

    /// The same where writing is not what the program is for: without folders of its own, the working
    /// directory is where it may write.
    pub fn side_file(&mut self, word: &Word) -> Ruling {
        if self.policy.allow.is_empty() || !self.policy.write_dirs.is_empty() {
            return self.file(word);
        }
        self.knowledge.add_written_file(word);
        let here = [self.scene.directory.to_owned()];
        match self.directories.is_within(word, &here) {
            true => Ok(()),
            false => Err(self.writes(word.span.clone(), word)),
        }
    }

    /// Whether a word that only the run will know may be an option of a program.
    pub fn may_be_option(&self, word: &Word) -> bool {
        self.knowledge.may_be_option(word)
    }

    /// Notes a `cd`.
    fn enter(&mut self, arguments: &[Word]) {
        let is_target =
            |word: &&Word| word.text().is_none_or(|text| !text.starts_with('-') || text == "-");
        let target = arguments.iter().find(is_target);
        // In a loop it may come again and again.
        self.directories.enter(target, self.knowledge.runs_out_of_order);
    }
}

/// Without these a text is one command, which reads what the script reads.
const INDIRECT: [char; 10] = ['<', '>', '|', '&', ';', '(', '{', '$', '`', '\n'];

/// Commands that are harmless wherever a variable names them: they show, compile, or do nothing.
const KNOWN: Names = Names("cat true : less more gcc g++ cc c++ clang clang++ ld ar as");

/// Builtins that come before functions in some modes.
const SPECIAL: Names = Names(
    ". : break continue eval exec exit export readonly return set shift source times trap unset \
     command builtin",
);

/// Whether a function may be gone again when it is called.
fn unsets(script: &Script) -> bool {
    let mut words = script.commands.iter().flat_map(|command| &command.words);
    words.any(|word| word.text().is_some_and(|text| text.contains("unset")))
}

fn is_descriptor(word: &Word) -> bool {
    let text = word.text().unwrap_or_default();
    text == "-"
        || (!text.is_empty() && text.trim_end_matches('-').bytes().all(|b| b.is_ascii_digit()))
}

fn span_of(words: &[Word]) -> Span {
    let start = words.first().map_or(0, |word| word.span.start);
    start..words.iter().map(|word| word.span.end).max().unwrap_or(start).max(start)
}

/// A part of a command, short enough for a message.
fn shortened(part: &str) -> String {
    const SHOWN: usize = 80;
    let line = part.lines().next().unwrap_or_default();
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None if line.len() < part.trim_end().len() => format!("{line}…"),
        None => line.to_owned(),
    }
}
