//! What is written of what is typed into a job.

use std::borrow::Cow;

use serde::Serialize;

use crate::record::{Asking, Discretion, MAX_TEXT, Reason, Source, Verdict, cut, cut_list};
use crate::seal::sha256;

/// What somebody types into a job.
#[derive(Clone, Copy)]
pub struct Entered<'a> {
    pub source: Source<'a>,
    /// The run of the job, and what its owner calls it.
    pub run: &'a str,
    pub job: &'a str,
    pub text: &'a str,
    /// The names of keys that are pressed after it.
    pub keys: &'a [String],
    /// What is written for both.
    pub bytes: &'a [u8],
    pub eof: bool,
    /// Whether the terminal shows nothing of it: then the trail does not either.
    pub hidden: bool,
}

/// One line before something is typed, or in place of that. It has the id of the job's run.
#[derive(Serialize)]
pub struct Typed<'a> {
    id: &'a str,
    #[serde(flatten)]
    verdict: Verdict<'a>,
    #[serde(flatten)]
    source: Asking<'a>,
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
    /// Where not all of it is written, unless it may be a password.
    #[serde(skip_serializing_if = "Option::is_none")]
    input_sha256: Option<String>,
}

impl<'a> Typed<'a> {
    pub fn start(entered: &Entered<'a>, discretion: &Discretion) -> Self {
        Self::new(Verdict::allow("input"), entered, discretion)
    }

    /// What was not typed, and why.
    pub fn refused(entered: &Entered<'a>, reason: &'a Reason, discretion: &Discretion) -> Self {
        let verdict = Verdict::deny(reason, &discretion.unless(entered.hidden));
        Self::new(verdict, entered, discretion)
    }

    fn new(verdict: Verdict<'a>, entered: &Entered<'a>, discretion: &Discretion) -> Self {
        let Entered { source, run, job, text, keys: names, bytes, eof, hidden } = *entered;
        let shown = discretion.commands && !hidden;
        let input = discretion.written(text);
        let keys = match shown {
            true => cut_list(names.iter().map(|key| key.as_str().into())),
            false => Vec::new(),
        };
        let all = shown && input.len() <= MAX_TEXT && keys.len() == names.len();
        Self {
            id: run,
            verdict,
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
