//! The record of what is typed into a job, written before it is typed.

use std::borrow::Cow;

use serde::Serialize;

use crate::mac::sha256;
use crate::record::{
    DecisionFields, MAX_TEXT, Reason, Redaction, Source, SourceFields, cut, cut_list,
};

/// What somebody types into a job.
#[derive(Clone, Copy)]
pub struct TypedInput<'a> {
    pub source: Source<'a>,
    /// The job's run, and the name its owner uses.
    pub run: &'a str,
    pub job: &'a str,
    pub text: &'a str,
    /// The names of keys that are pressed after the text.
    pub keys: &'a [String],
    /// What the job gets for both.
    pub bytes: &'a [u8],
    pub eof: bool,
    /// Whether the terminal does not echo it. Then the trail does not show it either.
    pub hidden: bool,
}

/// The line before something is typed, or instead of that. It has the id of the job's run.
#[derive(Serialize)]
pub struct InputRecord<'a> {
    id: &'a str,
    #[serde(flatten)]
    decision: DecisionFields<'a>,
    #[serde(flatten)]
    source: SourceFields<'a>,
    job: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    keys: Vec<Cow<'a, str>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    eof: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    hidden: bool,
    input_bytes: u64,
    /// The hash, if the input is not recorded completely. Never of what may be a password.
    #[serde(skip_serializing_if = "Option::is_none")]
    input_sha256: Option<String>,
}

impl<'a> InputRecord<'a> {
    pub fn start(typed: &TypedInput<'a>, redaction: &Redaction) -> Self {
        Self::new(DecisionFields::allow("input"), typed, redaction)
    }

    /// The record of input that was refused.
    pub fn refused(typed: &TypedInput<'a>, reason: &'a Reason, redaction: &Redaction) -> Self {
        let decision = DecisionFields::deny(reason, &redaction.hiding(typed.hidden));
        Self::new(decision, typed, redaction)
    }

    fn new(decision: DecisionFields<'a>, typed: &TypedInput<'a>, redaction: &Redaction) -> Self {
        let TypedInput { source, run, job, text, keys: names, bytes, eof, hidden } = *typed;
        let shown = redaction.log_commands && !hidden;
        let input = redaction.mask(text);
        let keys = match shown {
            true => cut_list(names.iter().map(|key| key.as_str().into())),
            false => Vec::new(),
        };
        let all = shown && input.len() <= MAX_TEXT && keys.len() == names.len();
        Self {
            id: run,
            decision,
            source: source.into(),
            job,
            input: (shown && !text.is_empty()).then(|| cut(input, MAX_TEXT)),
            keys,
            eof,
            hidden,
            input_bytes: bytes.len() as u64,
            input_sha256: (!all && !hidden).then(|| sha256(bytes)),
        }
    }
}
