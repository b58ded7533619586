//! Why a command may not run, in words for the model that sent it.
//!
//! [`Why::Unresolved`] is for what only the run will know, [`Why::Opaque`] for what could run anything. The setting
//! `unresolved` can allow the first; the second also needs a policy without an allow list.

use std::fmt;

use crate::script::Span;

/// A refusal: the part of the request that is refused, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// The part as it was sent, shortened. Empty if the denial is about the request as a whole.
    pub part: String,
    /// The part's position in the request, in bytes.
    pub span: Span,
    pub why: Why,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// A deny rule matches it.
    Denied { rule: String, reason: Option<String>, instead: Option<String> },
    /// No allow rule matches it.
    NotAllowed { name: String, allowed: Vec<String> },
    /// A rule allows the command without this argument, which may change what runs.
    Added { rule: String },
    /// A rule names this file by a relative path, but the command runs elsewhere.
    Moved { rule: String },
    /// Only the run will know what it is, and it could be something that is refused. What to do instead may follow
    /// after a semicolon, here and below.
    Unresolved { what: &'static str },
    /// Only the run will know whether the rule denies it.
    MayBeDenied { rule: String, by: Suspect },
    /// It is a program in another language with the name of a denied command in it.
    Mentions { rule: String },
    /// It can run other programs in a way that cannot be judged.
    Opaque { what: &'static str },
    /// The variable could change what runs.
    Variable { name: String },
    /// No allow rule names the variable, which a program may do anything with.
    VariableNotAllowed { name: String },
    /// The file is outside the writable folders, or its path is only known at run time.
    Writes { path: Option<String> },
    /// `/dev/tcp` and `/dev/udp`: network addresses that look like files.
    Network,
    /// The text is not understood.
    NotUnderstood { what: &'static str },
    /// It has no command.
    Empty,
    /// The shell's language is not understood.
    Shell { shell: String },
    /// It looks like an attack.
    Threat { what: &'static str },
}

/// What may make a command a denied one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suspect {
    /// A word that may be an option.
    Option,
    Other,
}

impl Denial {
    /// The deny rule that matched, if it was one.
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
            Why::NotAllowed { name, allowed } if allowed.contains(name) => write!(
                f,
                "runs `{name}`, which may not be the file that the allow list means: the one in the server's working \
                 directory, and not behind a link that a command made"
            ),
            Why::NotAllowed { name, allowed } => {
                let is_use = |rule: &&String| {
                    rule.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with(' '))
                };
                let uses: Vec<_> = allowed.iter().filter(is_use).cloned().collect();
                match uses.as_slice() {
                    [] => write!(
                        f,
                        "runs `{name}`, which is not on the allow list; allowed: {}",
                        few(allowed)
                    ),
                    uses => write!(f, "is not among the allowed uses of `{name}`: {}", few(uses)),
                }
            }
            Why::Added { rule } => write!(
                f,
                "is added to what the rule `{rule}` allows, and is not known to be harmless; leave it out, or ask \
                 for a rule that names it"
            ),
            Why::Moved { rule } => write!(
                f,
                "may not be the file that the rule `{rule}` means: its path starts at the server's working directory; \
                 run the command there"
            ),
            Why::Unresolved { what } => {
                let (what, advice) =
                    what.split_once("; ").unwrap_or((what, "write the command out"));
                write!(f, "is only known at run time ({what}); {advice}")
            }
            Why::MayBeDenied { rule, by: Suspect::Option } => write!(
                f,
                "is only known at run time (a word may be an option that the rule `{rule}` denies); put -- or ./ \
                 before the word"
            ),
            Why::MayBeDenied { rule, by: Suspect::Other } => write!(
                f,
                "is only known at run time (it could be what the rule `{rule}` denies); write the command out"
            ),
            Why::Mentions { rule } => write!(
                f,
                "could run any command (its program mentions what the rule `{rule}` denies), so it cannot be judged; \
                 leave the name out"
            ),
            Why::Opaque { what } => {
                let (what, advice) = what.split_once("; ").unwrap_or((what, ""));
                write!(f, "could run any command ({what}), so it cannot be judged")?;
                if advice.is_empty() { Ok(()) } else { write!(f, "; {advice}") }
            }
            Why::Variable { name } => {
                let advice = match name.as_str() {
                    "PATH" => {
                        "add folders behind it (`PATH=$PATH:/folder`), or run the program by its path"
                    }
                    _ => "run the command without it",
                };
                write!(f, "sets the variable `{name}`, which could change what runs; {advice}")
            }
            Why::VariableNotAllowed { name } => write!(
                f,
                "passes the variable `{name}` to a program, and it is not known to be harmless; a rule `{name}=*` \
                 would allow it"
            ),
            Why::Writes { path: Some(path) } => {
                write!(f, "writes to `{path}`, which is outside the writable folders")
            }
            Why::Writes { path: None } => {
                f.write_str("writes to a file that is only known at run time; write its path out")
            }
            Why::Network => f.write_str("opens a network connection"),
            Why::NotUnderstood { what } => write!(f, "is not understood: {what}"),
            Why::Empty => f.write_str("it contains no command"),
            Why::Shell { shell } => {
                write!(f, "commands for `{shell}` cannot be judged; use sh or bash")
            }
            Why::Threat { what } => write!(f, "is refused: {what}"),
        }
    }
}

/// The first names of a list, with an ellipsis if there are more.
fn few(names: &[String]) -> String {
    const SHOWN: usize = 12;
    let more = if names.len() > SHOWN { ", …" } else { "" };
    format!("{}{more}", names[..names.len().min(SHOWN)].join(", "))
}
