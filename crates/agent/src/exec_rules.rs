//! What the programs of a run may execute, as the server tells its keeper.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The rules of one run.
///
/// In what programs need, `*` stands for any number of characters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecRules {
    /// The programs that may be executed. `None` means all that are not denied.
    pub allowed: Option<Vec<AllowedProgram>>,
    /// The `PATH` in whose folders allowed programs are: the server's, whatever the run sets.
    pub path: Vec<u8>,
    /// The policy's deny rules. No process of the run may execute what they deny.
    pub denied: Vec<String>,
    /// The policy's rules for variables that programs may get.
    pub variables: Vec<String>,
}

impl ExecRules {
    /// Whether there is anything that they do not allow.
    pub fn hold(&self) -> bool {
        self.allowed.is_some() || !self.denied.is_empty()
    }

    /// Whether they name no file or folder to which links may lead elsewhere at the next command.
    pub fn are_lasting(&self) -> bool {
        let is_lasting = |program: &AllowedProgram| {
            let mut calls = program.calls.iter().flatten();
            program.files.is_empty() && calls.all(|call| call.limit.is_none())
        };
        self.allowed.iter().flatten().all(is_lasting)
    }
}

/// Rules as they travel. Many commands have the same ones, so they are encoded once, and a keeper that gets them again
/// does not decode them.
#[derive(Clone, PartialEq, Eq)]
pub struct EncodedRules(Arc<[u8]>);

impl From<&ExecRules> for EncodedRules {
    fn from(rules: &ExecRules) -> Self {
        let bytes = postcard::to_allocvec(rules).expect("texts and lists of them can be encoded");
        Self(bytes.into())
    }
}

impl EncodedRules {
    pub fn decode(&self) -> Result<ExecRules, postcard::Error> {
        postcard::from_bytes(&self.0)
    }
}

impl fmt::Debug for EncodedRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EncodedRules").field(&self.decode()).finish()
    }
}

impl Serialize for EncodedRules {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for EncodedRules {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = EncodedRules;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<EncodedRules, E> {
                Ok(EncodedRules(bytes.into()))
            }
        }
        deserializer.deserialize_bytes(Bytes)
    }
}

/// A program that may be executed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllowedProgram {
    /// The name or path that a process executes it by, if it is `named`. Otherwise a pattern for that.
    pub name: String,
    /// The files that it may be, if it is named by a relative path. That path may then be any.
    pub files: Vec<PathBuf>,
    /// Whether every process of the run may execute it, or only programs that need it.
    pub named: bool,
    /// The calls that it may be executed by. `None` means any.
    pub calls: Option<Vec<AllowedCall>>,
    /// What it may execute besides the programs that everyone may.
    pub may_run: MayRun,
}

impl AllowedProgram {
    /// The absolute paths by which a command names it.
    pub fn paths(&self) -> impl Iterator<Item = PathBuf> {
        let name = Some(&self.name).filter(|name| name.starts_with('/')).map(PathBuf::from);
        name.into_iter().chain(self.files.iter().cloned()).filter(|_| self.named)
    }

    /// The programs that it may execute, if it may not execute any.
    pub fn needs(&self) -> impl Iterator<Item = &str> {
        let programs: &[String] =
            if let MayRun::Only(programs) = &self.may_run { programs } else { &[] };
        programs.iter().map(String::as_str)
    }
}

/// A call of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllowedCall {
    /// Its arguments, without its name.
    pub words: Vec<Argument>,
    /// For a program that can run anything.
    pub limit: Option<CallLimit>,
}

/// The rule of the policy that allows a call, by which what is executed is judged again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallLimit {
    pub rule: String,
    /// Where rules begin.
    pub directory: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Argument {
    Known(String),
    /// One that begins like this.
    Begins(String),
    /// One or more that begin like this, and lead to no folder above.
    AllBegin(String),
    Any,
    /// Any number of them.
    Many,
    /// One that is not an option.
    Operand,
    /// Any number of them.
    Operands,
}

/// What a program may execute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum MayRun {
    /// These programs, and no others.
    Only(Arc<[String]>),
    /// Everything that is not denied. The same holds for all programs below it.
    Anything,
    /// A shell: what the program may execute that started it.
    AsBefore,
}

/// A program that a run was not allowed to execute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedExec {
    /// The file, as it was named, and the beginning of its arguments.
    pub program: String,
    pub arguments: Vec<String>,
    /// The name of the program that wanted to execute it, and the beginning of its command line.
    pub by: String,
    pub command_line: Vec<String>,
    /// The name of the program that started that one.
    pub parent: String,
    pub why: RefusedBecause,
    /// How often it was refused.
    pub times: u32,
}

/// Why a program was not executed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RefusedBecause {
    /// This rule denies it.
    Denied(String),
    /// It is not among the allowed programs.
    NotAllowed,
    /// It is allowed only with certain arguments, and this variable may change what it does with them.
    Variable(String),
    /// It could not be found out what would be executed.
    Unclear,
    /// The process has another root or other mounts, where names mean other files.
    Elsewhere,
    /// It, or what runs it, has changed since the command began.
    Changed,
    /// It wanted to change what is mounted, and so what programs are.
    Mount,
    /// The kernel would run it with an interpreter that it was told (`binfmt_misc`).
    Format,
}
