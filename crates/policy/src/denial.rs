//! Why something may not run, in words for who sent it.

use std::fmt;

use crate::script::Span;

/// A refusal: which part of what was sent, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// The part, as it was sent.
    pub part: String,
    /// Where the part is, in bytes.
    pub span: Span,
    pub why: Why,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// A rule of the deny list is about it.
    Denied { rule: String, reason: Option<String>, instead: Option<String> },
    /// No rule of the allow list is about it.
    NotAllowed { name: String, allowed: Vec<String> },
    /// What runs is known only when it runs, and could be something that may not.
    Unresolved { what: &'static str },
    /// The program can be made to run others this way, which cannot be judged.
    Opaque { what: &'static str },
    /// The variable changes what programs run.
    Variable { name: String },
    /// The file is not where files may be written.
    Writes { path: String },
    /// A network address that looks like a file.
    Network,
    /// The text is not understood.
    NotUnderstood { what: &'static str },
    /// There is no command in it.
    Empty,
    /// The shell is not one whose language is understood.
    Shell { shell: String },
    /// It looks like an attack.
    Threat { what: &'static str },
}

impl Denial {
    /// The rule that decided, if one did.
    pub fn rule(&self) -> Option<&str> {
        match &self.why {
            Why::Denied { rule, .. } => Some(rule),
            _ => None,
        }
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { part, span, why } = self;
        if !part.is_empty() {
            write!(f, "`{part}` (at {}) ", span.start)?;
        }
        match why {
            Why::Denied { rule, reason, instead } => {
                write!(f, "is denied by the rule `{rule}`")?;
                reason.iter().try_for_each(|reason| write!(f, ": {reason}"))?;
                instead.iter().try_for_each(|instead| write!(f, "; instead: {instead}"))
            }
            Why::NotAllowed { name, allowed } => {
                write!(
                    f,
                    "runs `{name}`, which is not on the allow list; allowed: {}",
                    few(allowed)
                )
            }
            Why::Unresolved { what } => {
                write!(f, "is not known before it runs ({what}); write out what is to run")
            }
            Why::Opaque { what } => {
                write!(f, "could run any command ({what}), which cannot be judged")
            }
            Why::Variable { name } => {
                write!(f, "sets the variable `{name}`, which could change what runs")
            }
            Why::Writes { path } => {
                write!(f, "writes to `{path}`, which is not where files may be written")
            }
            Why::Network => f.write_str("opens a network connection"),
            Why::NotUnderstood { what } => write!(f, "is not understood: {what}"),
            Why::Empty => f.write_str("there is no command in it"),
            Why::Shell { shell } => {
                write!(f, "commands for `{shell}` cannot be judged; use sh or bash")
            }
            Why::Threat { what } => write!(f, "is refused: {what}"),
        }
    }
}

/// The first of many.
fn few(names: &[String]) -> String {
    const SHOWN: usize = 12;
    let more = if names.len() > SHOWN { ", …" } else { "" };
    format!("{}{more}", names[..names.len().min(SHOWN)].join(", "))
}
