//! What is held of a command: the programs that it may execute, with which arguments, and what these may execute.
//!
//! `lock.rs` works it out, and the keeper of the run holds it.

mod known;

use std::sync::Arc;

pub use known::KnownNeeds;

/// What the programs of a command may execute. What a rule denies is never executed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lock {
    /// `None` means everything that is not denied.
    pub allowed: Option<Arc<[LockedProgram]>>,
    /// The deny rules.
    pub denied: Vec<String>,
    /// The allow rules for variables, such as `NAME=*`.
    pub variables: Vec<String>,
}

/// A program that may be executed, by its name or path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockedProgram {
    /// As the command names it. For others a pattern, in which `*` stands for any number of characters.
    pub name: String,
    /// The files that it may be, if the command names it by a relative path.
    pub files: Vec<String>,
    /// Whether the command names it. Others may be executed only by programs that need them.
    pub named: bool,
    /// The calls that rules allow. `None` means any.
    pub arguments: Option<Vec<LockedCall>>,
    pub may_run: MayRun,
}

/// A call of a program, as the judge allowed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockedCall {
    pub words: LockedArguments,
    /// For a program that can run anything.
    pub limit: Option<LockedLimit>,
}

/// The rule that allows a call of a program which can run anything. The keeper judges by it what is really executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockedLimit {
    pub rule: String,
    /// Where rules begin.
    pub directory: String,
}

impl From<LockedArguments> for LockedCall {
    fn from(words: LockedArguments) -> Self {
        Self { words, limit: None }
    }
}

/// Arguments of a program, without its name.
pub type LockedArguments = Vec<LockedWord>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockedWord {
    Known(String),
    /// One word that begins like this.
    Begins(String),
    /// One word or more that begin like this, and lead to no folder above.
    AllBegin(String),
    /// One word that only the run will know.
    Any,
    /// Any number of them.
    Many,
    /// One word that only the run will know, but that is not an option.
    Operand,
    /// Any number of them.
    Operands,
}

/// What a program may execute, besides the programs that the command names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MayRun {
    Only(Arc<[String]>),
    /// Everything that is not denied.
    Anything,
    /// A shell, whose commands are judged: what the program may execute that starts it.
    AsBefore,
}

/// A program that a command names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedProgram {
    pub name: String,
    pub at: ProgramFiles,
    /// The calls that rules allow. `None` means any.
    pub arguments: Option<Vec<LockedCall>>,
}

/// Where a program is that is named by a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramFiles {
    /// What its name means if that is a relative path.
    pub files: Vec<String>,
    /// The paths of tables in the settings that are about it.
    pub told: Vec<String>,
    /// Whether a rule has its name, so that it is what it is called.
    pub is_spelled_out: bool,
}

impl ProgramFiles {
    /// Of a program that is found by its name.
    pub fn anywhere() -> Self {
        Self { files: Vec::new(), told: Vec::new(), is_spelled_out: true }
    }
}

/// What a program may execute because the settings say so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runs {
    /// A name, in which `*` stands for any number of characters.
    pub program: String,
    pub may_run: Vec<String>,
}
