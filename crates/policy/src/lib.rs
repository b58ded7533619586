//! Judges shell commands: a text, its shell and a policy go in, a [`Judgement`] comes out.
//!
//!     text ─▶ script ──────────▶ judge ───────▶ rule, variables, paths ─▶ Judgement
//!             every command      │   ▲                                    verdict, threats
//!             in it, parsed      ▼   │ actions: run this command, run this text, write this file
//!                              programs
//!                              what sudo, find, git, awk, … do
//!
//! Pure: it looks at no file, process or environment. What it does not understand it refuses; a policy without
//! rules refuses nothing.
//!
//! To teach it a program, see the table in `programs.rs`. A wrapper, which runs the command after it like `sudo` or
//! `timeout`, is one row in `programs/wrappers/table.rs`. Variables are in `variables/table.rs`, names such as
//! `gcc-12` in `identity.rs`, harmless arguments of build tools in `additions/table.rs`, and `typing.rs` judges what is
//! typed into programs that already run.
//!
//! Arrows run one way: judge → programs → action → knowledge → script, and judge → lock → rule → subcommands → script.
//!
//! It is tested with a corpus of commands that were run once (`tests/corpus.jsonl`), with ways around it that were
//! found (`tests/attacks.jsonl`, `tests/attacks.rs`, `tests/attacks_by_programs.rs`, `tests/values.rs`), and with
//! thousands of generated scripts that real shells run in bubblewrap, where every program that ran must have been named
//! or refused (`tests/differential.rs`). `fuzz/` has targets for cargo-fuzz.

mod action;
mod additions;
mod call;
mod denial;
mod identity;
mod judge;
mod knowledge;
mod limit;
mod lock;
mod locked;
mod names;
mod opened;
mod paths;
mod pattern;
mod policy;
mod programs;
mod rule;
mod script;
mod subcommands;
mod threats;
mod traces;
mod typing;
mod variables;

pub use additions::{AddedPlaces, Reach};
pub use denial::{Denial, Suspect, Why};
pub use identity::{is_same_program, names as program_names, without_g};
pub use limit::{Limit, Place};
pub use locked::{
    KnownNeeds, Lock, LockedArguments, LockedCall, LockedLimit, LockedProgram, LockedWord, MayRun,
    Runs,
};
pub use pattern::{glob, glob_path};
pub use policy::{Policy, Scene, Threats, Unresolved};
pub use programs::{is_interpreter, is_shell, opens_programs};
pub use rule::{ExactCall, Rule, RuleError};
pub use script::{Shell, Span};
pub use threats::Threat;
pub use traces::{Traces, is_builtin};

pub use typing::{InputWay, Reader, TypedText, TypingError};
pub use variables::{is_harmless, is_inert, is_settled};

use judge::{Findings, Judge, Ruling};

/// The verdict, and what to warn about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    pub verdict: Verdict,
    pub threats: Vec<Threat>,
    /// The allow rules that were needed.
    pub rules: Vec<String>,
    /// What may be executed, if not everything.
    pub lock: Option<Lock>,
    /// What is left for later commands of the same shell.
    pub traces: Traces,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Allow,
    Deny(Denial),
}

impl Judgement {
    /// Allowed, without a threat.
    pub fn allowed() -> Self {
        let (threats, rules, traces) = (Vec::new(), Vec::new(), Traces::default());
        Self { verdict: Verdict::Allow, threats, rules, lock: None, traces }
    }

    /// The judgement with positions that count from `length`, for a text whose beginning was sent earlier.
    /// Threats in the beginning are left out.
    fn behind(mut self, length: usize) -> Self {
        let moved =
            |span: &Span| span.start.saturating_sub(length)..span.end.saturating_sub(length);
        self.threats.retain(|threat| threat.span.start >= length);
        self.threats.iter_mut().for_each(|threat| threat.span = moved(&threat.span));
        if let Verdict::Deny(denial) = &mut self.verdict {
            denial.span = moved(&denial.span);
        }
        self
    }
}

impl Policy {
    /// Judges a script. `shell` is the path of the shell that would run it.
    pub fn judge(&self, text: &str, shell: &str, scene: &Scene<'_>) -> Judgement {
        self.judge_by(Judge::new(self, scene, text), text, shell, scene)
    }

    /// Judges a script for a shell that has run others before. It is judged alone, so that nothing before can hide it,
    /// and behind the others, because variables and functions defined there still apply.
    pub fn judge_next(
        &self,
        before: &str,
        text: &str,
        shell: &str,
        scene: &Scene<'_>,
    ) -> Judgement {
        let alone = self.judge(text, shell, scene);
        if before.is_empty() || alone.verdict != Verdict::Allow {
            return alone;
        }
        let whole = [before, text].concat();
        let judge = Judge::new(self, scene, &whole).for_whole_shell();
        let whole = self.judge_by(judge, &whole, shell, scene).behind(before.len());
        Judgement { traces: alone.traces, ..whole }
    }

    fn judge_by(
        &self,
        mut judge: Judge<'_>,
        text: &str,
        shell: &str,
        scene: &Scene<'_>,
    ) -> Judgement {
        if !self.restricts() && (self.threats == Threats::Off || !threats::may_be_in(text)) {
            return Judgement::allowed();
        }
        let language = match paths::base_name(shell) {
            "bash" => Some(Shell::Bash),
            "sh" | "dash" | "ash" => Some(Shell::Sh),
            _ => None,
        };
        let ruling = match language {
            None => Err(judge.deny(0..0, Why::Shell { shell: shell.to_owned() })),
            Some(_) if text.trim().is_empty() => Err(judge.deny(0..0, Why::Empty)),
            Some(language) => judge.request(text, language),
        };
        self.conclude(judge, ruling, scene)
    }

    /// Judges a program and its arguments, which no shell reads.
    pub fn judge_words(&self, words: &[String], scene: &Scene<'_>) -> Judgement {
        let text = words.join(" ");
        let mut judge = Judge::new(self, scene, &text);
        let mut start = 0;
        let spans = words.iter().map(|word| {
            let span = start..start + word.len();
            start = span.end + 1;
            script::Word::known(word, span)
        });
        let words: Vec<_> = spans.collect();
        let ruling = match words.is_empty() {
            true => Err(judge.deny(0..0, Why::Empty)),
            false => judge.program(&words),
        };
        self.conclude(judge, ruling, scene)
    }

    /// Judges a script of our own, in which a text of the caller's stands.
    fn judge_script(&self, text: &str, scene: &Scene<'_>) -> Result<(), Denial> {
        match self.judge(text, "bash", scene).verdict {
            Verdict::Allow => Ok(()),
            Verdict::Deny(denial) => Err(denial),
        }
    }

    /// Judges the input of a program that already runs, and returns what may be executed for it.
    fn judge_input(
        &self,
        name: &str,
        text: &str,
        scene: &Scene<'_>,
    ) -> Result<Option<Lock>, Denial> {
        let scene = Scene { typed: scene.typed && judge::is_one_command(text), ..*scene };
        let mut judge = Judge::new(self, &scene, name).for_whole_shell();
        let ruling = judge.input(name, text);
        match self.conclude(judge, ruling, &scene) {
            Judgement { verdict: Verdict::Allow, lock, .. } => Ok(lock),
            Judgement { verdict: Verdict::Deny(denial), .. } => Err(denial),
        }
    }

    /// Judges the request's variables, and turns the ruling into a judgement.
    fn conclude(&self, mut judge: Judge<'_>, ruling: Ruling, scene: &Scene<'_>) -> Judgement {
        let ruling = ruling.and_then(|()| {
            scene.variables.iter().try_for_each(|(name, value)| {
                let value = script::Word::known(value, 0..0);
                judge.variable(name, Some(&value), &(0..0))
            })
        });
        let Findings { threats, rules, lock, traces } = judge.into_findings();
        let threats = if self.threats == Threats::Off { Vec::new() } else { threats };
        let verdict = match (ruling, threats.first()) {
            (Err(denial), _) if self.restricts() => Verdict::Deny(denial),
            (_, Some(threat)) if self.threats == Threats::Deny => {
                let (what, span) = (threat.what, threat.span.clone());
                Verdict::Deny(Denial { part: String::new(), span, why: Why::Threat { what } })
            }
            _ => Verdict::Allow,
        };
        Judgement { verdict, threats, rules, lock, traces }
    }

    /// Programs on the allow list that can run any other, which makes the list nearly useless.
    pub fn open_doors(&self) -> Vec<&str> {
        let programs = self.allow.iter().filter_map(Rule::program);
        let is_open = |name: &&str| programs::runs_anything(name) || lock::runs_anything(name);
        programs.filter(is_open).collect()
    }
}
