//! Which commands may run.
//!
//! Pure: a text, the shell it is for and where it would run go in, a [`Judgement`] comes out; no
//! file, process or environment is looked at.
//!
//!     text ─▶ script (every command in it) ─▶ judge ─▶ rules, variables, paths
//!                                              │  ▲
//!                                              ▼  │
//!                                     tools: what a command runs in turn
//!
//! What is not understood is refused; a policy without rules refuses nothing.

mod action;
mod call;
mod denial;
mod judge;
mod knowledge;
mod names;
mod paths;
mod programs;
mod rule;
mod script;
mod subcommands;
mod threats;
mod variables;

pub use denial::{Denial, Why};
pub use rule::{Rule, RuleError, glob};
pub use script::{MAX_TEXT, Shell, Span};
pub use threats::Threat;

use judge::{Judge, Ruling};

/// What may run. Deny wins over allow; an empty allow list allows everything.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    pub allow: Vec<Rule>,
    pub deny: Vec<Rule>,
    pub unresolved: Unresolved,
    pub threats: Threats,
    /// Where redirections may write; everywhere if it is empty.
    pub write_dirs: Vec<String>,
}

/// What happens to commands that only the run will know.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Unresolved {
    #[default]
    Deny,
    Allow,
}

/// What happens when something looks like an attack.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Threats {
    Off,
    #[default]
    Warn,
    Deny,
}

/// Where and how something would run.
#[derive(Debug, Clone, Copy)]
pub struct Scene<'a> {
    pub directory: &'a str,
    pub home: Option<&'a str>,
    /// Variables that are set for it.
    pub variables: &'a [(String, String)],
    /// Whether what it reads is judged when it comes.
    pub typed: bool,
}

/// Whether a program takes what it reads for a program: a shell, an interpreter.
pub fn reads_programs(name: &str) -> bool {
    SHELLS.has(name) || programs::runs_anything(name)
}

/// The shells there are.
const SHELLS: names::Names =
    names::Names("sh bash dash ash rbash zsh fish ksh mksh csh tcsh pwsh nu elvish xonsh");

/// What was decided, and what there is to be warned of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    pub verdict: Verdict,
    pub threats: Vec<Threat>,
    /// The rules that allowed it, if there is a list of what is allowed.
    pub rules: Vec<String>,
}

impl Judgement {
    /// There is nothing to say against it.
    pub fn allowed() -> Self {
        Self { verdict: Verdict::Allow, threats: Vec::new(), rules: Vec::new() }
    }

    /// The same for the end of a text whose beginning, of this length, is not shown.
    pub fn behind(mut self, length: usize) -> Self {
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Allow,
    Deny(Denial),
}

impl Policy {
    /// Whether anything is refused.
    pub fn restricts(&self) -> bool {
        !self.allow.is_empty() || !self.deny.is_empty() || !self.write_dirs.is_empty()
    }

    /// Judges a text for a shell, which is given by its path.
    pub fn judge(&self, text: &str, shell: &str, scene: &Scene<'_>) -> Judgement {
        if !self.restricts() && (self.threats == Threats::Off || !threats::may_be_in(text)) {
            return Judgement { verdict: Verdict::Allow, threats: Vec::new(), rules: Vec::new() };
        }
        let language = match paths::base_name(shell) {
            "bash" => Some(Shell::Bash),
            "sh" | "dash" | "ash" => Some(Shell::Sh),
            _ => None,
        };
        let Some(language) = language else {
            let why = Why::Shell { shell: shell.to_owned() };
            let denial = Denial { part: String::new(), span: 0..0, why };
            return self.conclude(Err(denial), Vec::new(), Vec::new());
        };
        let mut judge = Judge::new(self, scene, text);
        let is_comment = |line: &str| line.trim().is_empty() || line.trim().starts_with('#');
        let ruling = match text.lines().all(is_comment) {
            true => Err(judge.deny(0..0, Why::Empty)),
            false => judge.request(text, language),
        };
        let ruling = ruling.and_then(|()| environment(&mut judge, scene));
        let (threats, rules) = judge.into_findings();
        self.conclude(ruling, threats, rules)
    }

    /// Judges a program and its arguments, which no shell will read.
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
        let ruling = ruling.and_then(|()| environment(&mut judge, scene));
        let (threats, rules) = judge.into_findings();
        self.conclude(ruling, threats, rules)
    }

    fn conclude(&self, ruling: Ruling, threats: Vec<Threat>, rules: Vec<String>) -> Judgement {
        let threats = if self.threats == Threats::Off { Vec::new() } else { threats };
        let verdict = match (ruling, threats.first()) {
            (Err(denial), _) if self.restricts() => Verdict::Deny(denial),
            (_, Some(threat)) if self.threats == Threats::Deny => {
                let (what, span) = (threat.what, threat.span.clone());
                Verdict::Deny(Denial { part: String::new(), span, why: Why::Threat { what } })
            }
            _ => Verdict::Allow,
        };
        Judgement { verdict, threats, rules }
    }

    /// Programs on the allow list that can run any other, so that the list means little.
    pub fn open_doors(&self) -> Vec<&str> {
        let programs = self.allow.iter().filter_map(Rule::program);
        programs.filter(|name| programs::runs_anything(name)).collect()
    }
}

fn environment(judge: &mut Judge<'_>, scene: &Scene<'_>) -> Ruling {
    for (name, value) in scene.variables {
        let value = script::Word::known(value, 0..0);
        judge.variable(name, Some(&value), &(0..0))?;
    }
    Ok(())
}
