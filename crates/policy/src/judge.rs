//! Judges every command of a script, and every command those run.
//!
//!     text ─▶ Script ─▶ each command ─▶ rules ─▶ programs ─▶ each Action
//!      ▲                    ▲                                   │
//!      └──── a script ──────┴──────────── a command ◀───────────┘
//!
//! A command is judged whether or not it will run. The first refusal ends the judging. What may run out of order
//! (loops, functions, traps) is judged a second time, with everything that was learned after it.

mod actions;
mod aliases;
mod allowed;
mod files;
mod held;
mod input;
mod variables;

use crate::call::{Call, Input, Listing, span_of};
use crate::denial::{Denial, Suspect, Why};
use crate::knowledge::Knowledge;
use crate::lock::Named;
use crate::locked::{Lock, ProgramFiles};
use crate::names::Names;
use crate::policy::{Policy, Scene, Unresolved};
use crate::programs;
use crate::rule::{CommandName, Match, Rule};
use crate::script::{
    Assignment, Limits, ParseError, Redirect, Script, Shell, SimpleCommand, Span, Word,
};
use crate::threats::{self, Threat};
use crate::traces::Traces;
use crate::variables::Seen;
use allowed::HARMLESS;

/// How many commands may start one another: `env env env ls`.
const MAX_WRAPPERS: u32 = 8;
/// How many scripts may nest: `sh -c 'sh -c "…"'`.
const MAX_TEXTS: u32 = 8;

/// How often a script with loops and functions is judged, until nothing new is learned.
const MAX_PASSES: u32 = 5;

pub type Ruling = Result<(), Denial>;

/// The judging of one request.
pub struct Judge<'a> {
    policy: &'a Policy,
    scene: &'a Scene<'a>,
    /// The text that was sent, to quote parts of it.
    text: &'a str,
    /// The language of the script that is being judged.
    shell: Shell,
    limits: Limits,
    commands: usize,
    texts: u32,
    knowledge: Knowledge,
    /// Functions that are certainly defined at the command that is being judged.
    functions: Vec<String>,
    /// Aliases that the words of the command which is being judged come from.
    expanding: Vec<String>,
    /// Whether the command that is being judged changes nothing by its redirections.
    is_quiet: bool,
    /// Whether the kernel sees the arguments of the programs that are executed.
    held: bool,
    threats: Vec<Threat>,
    /// The allow rules that were needed, by their position in the list.
    needed: Vec<usize>,
    /// The programs that it names.
    named: Named,
    /// What is left for later commands, besides files that were written.
    traces: Traces,
}

/// What was found while a request was judged.
pub struct Findings {
    pub threats: Vec<Threat>,
    /// The allow rules that were needed.
    pub rules: Vec<String>,
    /// What may be executed, if not everything.
    pub lock: Option<Lock>,
    pub traces: Traces,
}

impl<'a> Judge<'a> {
    pub fn new(policy: &'a Policy, scene: &'a Scene<'a>, text: &'a str) -> Self {
        Self {
            policy,
            scene,
            text,
            shell: Shell::Sh,
            limits: Limits::ONE,
            commands: 0,
            texts: 0,
            knowledge: Knowledge::new(policy, scene),
            functions: Vec::new(),
            expanding: Vec::new(),
            is_quiet: false,
            held: scene.locked,
            threats: Vec::new(),
            needed: Vec::new(),
            named: Named::default(),
            traces: Traces::default(),
        }
    }

    /// The same, for everything that a shell has got so far.
    pub fn for_whole_shell(self) -> Self {
        Self { limits: Limits::MANY, ..self }
    }

    /// Judges the whole text of a request.
    pub fn request(&mut self, text: &str, shell: Shell) -> Ruling {
        self.settle(|judge| judge.script(text, shell, None))
    }

    /// Judges a program and its arguments, which no shell reads.
    pub fn program(&mut self, words: &[Word]) -> Ruling {
        self.settle(|judge| {
            let (input, shell) = (Input::Other, judge.shell);
            judge.call(&Call { words, input, listing: Listing::No, shell, wrappers: 0 })
        })
    }

    /// Judges until nothing new is learned: a loop, function or trap may run with what was learned after it.
    fn settle(&mut self, judge: impl Fn(&mut Self) -> Ruling) -> Ruling {
        let mut moved = false;
        for pass in 1..=MAX_PASSES {
            self.knowledge.has_changed = false;
            judge(self)?;
            self.values()?;
            let moves = self.knowledge.directories.have_changed() && !moved;
            if !self.knowledge.runs_out_of_order || !(moves || self.knowledge.has_changed) {
                return Ok(());
            }
            moved |= moves;
            // A function that calls itself may get longer arguments every time.
            if pass == MAX_PASSES - 2 {
                self.knowledge.forget_arguments();
            }
            let knowledge = self.knowledge.clone();
            let limits = self.limits;
            *self = Self { knowledge, limits, ..Self::new(self.policy, self.scene, self.text) };
        }
        let what = "its functions are too involved";
        Err(self.deny(0..self.text.len(), Why::NotUnderstood { what }))
    }

    /// Judges the values that the shell takes for numbers and for names, and texts that something evaluates.
    fn values(&mut self) -> Ruling {
        let evaluated = std::mem::take(&mut self.knowledge.evaluated);
        if let Some(word) = evaluated.iter().find(|word| !self.knowledge.is_number(word)) {
            let what = "a value that may not be a number, in which arithmetic would run code";
            self.unresolved(word.span.clone(), what)?;
        }
        let named = std::mem::take(&mut self.knowledge.named);
        if let Some(word) = named.iter().find(|word| !self.knowledge.is_variable_name(word)) {
            self.unresolved(word.span.clone(), "a name can contain code")?;
        }
        let suspects = std::mem::take(&mut self.knowledge.suspects);
        match self.knowledge.evaluates {
            true => suspects.iter().try_for_each(|(text, span)| self.evaluate(text, span)),
            false => Ok(()),
        }
    }

    /// Judges a text as something that evaluates it would read it.
    fn evaluate(&mut self, text: &str, span: &Span) -> Ruling {
        let inert = !text.contains("$(") && !text.contains("${") && !text.contains('`');
        if inert {
            return self.unresolved(span.clone(), "text that could become code");
        }
        let parsed = Script::parse_evaluated(text, Shell::Bash, span.clone());
        let script = parsed.map_err(|error| self.not_understood(error))?;
        self.all_of(&script)
    }

    /// Judges a text as a script. `within` is its place in the request, if it is only a part of it.
    fn script(&mut self, text: &str, shell: Shell, within: Option<Span>) -> Ruling {
        let whole = within.clone().unwrap_or(0..text.len());
        let parsed = Script::parse(text, shell, within, self.limits);
        let mut script = parsed.map_err(|error| self.not_understood(error))?;
        self.commands += script.commands.len();
        self.texts += 1;
        if self.commands > self.limits.commands {
            return Err(self.deny(whole, Why::NotUnderstood { what: self.limits.too_many }));
        }
        if self.texts > MAX_TEXTS {
            return Err(self.deny(whole, Why::NotUnderstood { what: "it is nested too deeply" }));
        }
        for threat in threats::find(&script) {
            if !self.threats.contains(&threat) {
                self.threats.push(threat);
            }
        }
        let is_outermost = self.texts == 1;
        if is_outermost {
            self.leave(Traces::in_shell(&script));
        }
        self.knowledge.learn(&mut script, is_outermost);
        let outer = std::mem::replace(&mut self.shell, shell);
        // The script knows the functions around it, but whether its own are ever defined is uncertain.
        let functions = self.functions.clone();
        self.all_of(&script)?;
        self.functions = functions;
        self.shell = outer;
        self.texts -= 1;
        Ok(())
    }

    fn all_of(&mut self, script: &Script) -> Ruling {
        for (name, span) in &script.set_variables {
            self.variable(name, None, span)?;
        }
        for (name, span) in script.arithmetic_variables.iter().chain(&script.descriptor_variables) {
            let number = Word::known("0", span.clone());
            self.variable(name, Some(&number), span)?;
        }
        for (at, command) in script.commands.iter().enumerate() {
            self.command(script, at, command)?;
        }
        Ok(())
    }

    fn command(&mut self, script: &Script, at: usize, command: &SimpleCommand) -> Ruling {
        for Assignment { name, value, .. } in &command.assignments {
            // Before a command, it is only for that command.
            match command.words.is_empty() {
                true => self.variable(name, Some(value), &value.span)?,
                false => self.variable_for(name, Some(value), &value.span, Seen::ByPrograms)?,
            }
        }
        let text = script.written_text(command).filter(|_| {
            let name = command.words[0].literal().unwrap_or_default();
            !self.knowledge.may_be_function(&name) && self.knowledge.aliases(&name).is_empty()
        });
        for redirect in &command.redirects {
            self.redirect(redirect, text.as_ref().map(|(_, text)| text.as_str()))?;
        }
        self.knowledge.runs_out_of_order |= command.repeats;
        self.is_quiet = command.redirects.iter().all(Redirect::is_quiet);
        for words in self.knowledge.readings(&command.words, self.shell) {
            self.reading(script, at, &words)?;
        }
        Ok(())
    }

    /// Judges a command with the words that it may turn out to have.
    fn reading(&mut self, script: &Script, at: usize, words: &[Word]) -> Ruling {
        let (command, first) = (&script.commands[at], &words[0]);
        let name = first.literal().unwrap_or_default();
        self.aliases(script, at, words)?;
        for (function, from) in &script.functions {
            if *from <= at && !self.functions.contains(function) {
                self.functions.push(function.clone());
            }
        }
        if self.knowledge.may_be_function(&name) {
            self.knowledge.add_arguments(&words[1..]);
        } else if !HARMLESS.has(&name)
            && NOT_FOUND.iter().any(|handler| self.knowledge.may_be_function(handler))
        {
            self.knowledge.add_arguments(words);
        }
        // An alias of that name may have given the function another.
        let is_aliased = !self.knowledge.aliases(&name).is_empty();
        let defined = self.functions.iter().any(|defined| *defined == name) && !SPECIAL.has(&name);
        if defined && !is_aliased && !self.knowledge.unsets_functions && !mentions_unset(script) {
            // Its body is judged where it is defined.
            return self.denied(words);
        }
        let before = (0..at).filter(|at| script.commands[*at].pipeline == command.pipeline);
        let listing = match command.piped {
            true => self.listing(script, before),
            false => Listing::No,
        };
        let input = self.input_of(script, command);
        let words = self.knowledge.with_single_words(words);
        self.call(&Call { words: &words, input, listing, shell: self.shell, wrappers: 0 })
    }

    /// Whether the script's input is typed and judged then, and nothing in the script can change that.
    fn is_typed(&self) -> bool {
        self.scene.typed && is_one_command(self.text)
    }

    /// Judges what a program does that already runs and reads this input.
    pub fn input(&mut self, name: &str, text: &str) -> Ruling {
        let words = [Word::known(name, 0..name.len())];
        self.settle(|judge| {
            let (input, shell) = (Input::Text(text.to_owned()), judge.shell);
            let call = Call { words: &words, input, listing: Listing::No, shell, wrappers: 0 };
            judge.actions(name, &call)
        })
    }

    /// Judges a command and all it runs.
    fn call(&mut self, call: &Call<'_>) -> Ruling {
        self.is_shallow(call)?;
        let name = CommandName::of(call.words).at(self.program_paths(&call.words[0]));
        self.denied_as(&name, call.words)?;
        // A builtin is not executed, so a program of the same name is not allowed either.
        if !self.needs_no_rule(&name, call) {
            let rule = self.allowed(&name, call.words)?;
            let arguments = self.only_arguments(&name, call, rule);
            let files = name.files().unwrap_or_else(|| self.files(name.known()));
            let paths = self.policy.runs.iter().map(|it| &it.program).filter(|it| it.contains('/'));
            let told = paths.filter(|path| name.is_at(path)).cloned().collect();
            let is_spelled_out = self.is_spelled_out(&name, call.words);
            let at = ProgramFiles { files, told, is_spelled_out };
            self.named.add(name.known(), at, arguments);
        }
        self.run_file(&call.words[0]);
        self.knowledge.may_have_changed(call.words);
        let Some(name) = call.name() else { return Ok(()) };
        if ["cd", "chdir", "pushd", "popd"].contains(&name.as_str()) {
            self.enter(call.arguments());
        }
        self.actions(&name, call)
    }

    fn is_shallow(&self, call: &Call<'_>) -> Ruling {
        match call.wrappers > MAX_WRAPPERS {
            true => {
                Err(self.deny(call.span(), Why::NotUnderstood { what: "it is nested too deeply" }))
            }
            false => Ok(()),
        }
    }

    /// Takes note of a `cd`.
    fn enter(&mut self, arguments: &[Word]) {
        let is_option =
            |word: &Word| word.text().is_some_and(|text| text.starts_with('-') && text != "-");
        let is_end = |word: &Word| word.literal().is_some_and(|text| text == "--");
        let target = match arguments.iter().position(|word| is_end(word) || !is_option(word)) {
            Some(at) if is_end(&arguments[at]) => arguments.get(at + 1),
            at => at.map(|at| &arguments[at]),
        };
        // In a loop it may happen again and again.
        self.knowledge.directories.enter(target, self.knowledge.runs_out_of_order);
    }

    /// Refuses words that a deny rule matches, or may match.
    fn denied(&self, words: &[Word]) -> Ruling {
        self.denied_as(&CommandName::of(words), words)
    }

    fn denied_as(&self, name: &CommandName, words: &[Word]) -> Ruling {
        let span = span_of(words);
        let words = &*self.knowledge.without_options(words);
        for rule in &self.policy.deny {
            match rule.matches(name, words) {
                Match::No if !self.may_be_git_alias(rule, words) => {}
                Match::No | Match::Maybe if self.policy.unresolved == Unresolved::Allow => {}
                Match::No => {
                    let what = "it may be an alias in the settings of git that were written";
                    return Err(self.deny(span, Why::Unresolved { what }));
                }
                Match::Maybe if self.is_held(name, rule) => {}
                Match::Maybe => {
                    let by = match name.known().is_some() && rule.is_about_options() {
                        true => Suspect::Option,
                        false => Suspect::Other,
                    };
                    let rule = rule.to_string();
                    return Err(self.deny(span, Why::MayBeDenied { rule, by }));
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

    /// Whether a rule has the name of the program at the end of its path. What a `*` stands for there may be called
    /// anything.
    fn is_spelled_out(&self, name: &CommandName, words: &[Word]) -> bool {
        let by_rule = |rule: &Rule| match (rule.path(), rule.program()) {
            (Some(path), Some(program)) => !program.contains('*') && name.is_at(path),
            (None, Some(_)) => rule.allows(name, words),
            _ => false,
        };
        name.known().is_none_or(|name| !name.contains('/')) || self.policy.allow.iter().any(by_rule)
    }

    /// Judges a script that another shell runs, which does not know the functions.
    fn new_shell(&mut self, text: &str, shell: Shell, span: Span) -> Ruling {
        self.elsewhere(|judge| judge.script(text, shell, Some(span)))
    }

    /// Judges a script that a program has a shell run. The program may set any variable that it has not inherited, and
    /// gives the shell no arguments.
    fn shell_of_program(&mut self, text: &str, shell: Shell, span: Span) -> Ruling {
        for arguments in held::shell_arguments(text) {
            self.named.add(Some("sh"), ProgramFiles::anywhere(), Some(arguments.into()));
        }
        let forgotten = self.knowledge.forget_unexported();
        let judged = self.new_shell(text, shell, span);
        self.knowledge.remember(forgotten);
        judged
    }

    /// Judges something that happens in another process, which does not know the functions.
    fn elsewhere(&mut self, judge: impl FnOnce(&mut Self) -> Ruling) -> Ruling {
        let functions = std::mem::take(&mut self.functions);
        judge(self)?;
        self.functions = functions;
        Ok(())
    }

    /// Refuses what only the run will know.
    fn unresolved(&self, span: Span, what: &'static str) -> Ruling {
        match self.policy.unresolved {
            Unresolved::Allow => Ok(()),
            Unresolved::Deny => Err(self.deny(span, Why::Unresolved { what })),
        }
    }

    /// Refuses what could run anything.
    fn opaque(&self, span: Span, what: &'static str) -> Ruling {
        match self.allows_opaque() {
            true => Ok(()),
            false => Err(self.deny(span, Why::Opaque { what })),
        }
    }

    fn allows_opaque(&self) -> bool {
        self.policy.unresolved == Unresolved::Allow && self.policy.allow.is_empty()
    }

    fn not_understood(&self, ParseError { span, what }: ParseError) -> Denial {
        self.deny(span, Why::NotUnderstood { what })
    }

    pub fn deny(&self, span: Span, why: Why) -> Denial {
        let part = self.text.get(span.clone()).unwrap_or_default();
        Denial { part: shortened(part), span, why }
    }

    /// Takes note of something that is left for later commands.
    fn leave(&mut self, traces: Traces) {
        self.traces = self.traces.max(traces);
    }

    pub fn into_findings(self) -> Findings {
        let rules = self.needed.iter().map(|at| self.policy.allow[*at].to_string()).collect();
        let files = if self.knowledge.has_made_files() { Traces::Values } else { Traces::Nothing };
        Findings {
            rules,
            lock: self.policy.lock(&self.named),
            traces: self.traces.max(files),
            threats: self.threats,
        }
    }
}

/// Functions that shells call with the words of a command that they do not find.
const NOT_FOUND: Names = Names("command_not_found_handle command_not_found_handler");

/// Whether a text is certainly a single command that reads what the script reads.
pub fn is_one_command(text: &str) -> bool {
    !text.trim().contains(['<', '>', '|', '&', ';', '(', '{', '$', '`', '\n'])
}

/// Builtins that some modes look up before functions.
const SPECIAL: Names = Names(
    ". : break continue eval exec exit export readonly return set shift source times trap unset \
     command builtin",
);

/// Whether a function may be gone again when it is called.
fn mentions_unset(script: &Script) -> bool {
    let mut words = script.commands.iter().flat_map(|command| &command.words);
    words.any(|word| word.text().is_some_and(|text| text.contains("unset")))
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
