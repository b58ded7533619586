//! What is written of what is typed into a job.

use std::borrow::Cow;

use serde::Serialize;

use super::record::{Discretion, MAX_TEXT, Source, Verdict, cut, cut_list};
use super::seal::sha256;
use crate::error::Error;
use crate::jobs::{Job, Typing};
use crate::request::Origin;

/// What somebody has typed, as the engine sees it.
pub struct Entered<'a> {
    pub typing: &'a Typing,
    /// Whether the terminal shows nothing of it: then the trail does not either.
    pub hidden: bool,
    pub job: &'a Job,
    pub origin: &'a Origin,
    pub owner: &'a str,
}

/// One line before something is typed, or in place of that. It has the id of the job's run.
#[derive(Serialize)]
pub struct Typed<'a> {
    id: &'a str,
    #[serde(flatten)]
    verdict: Verdict<'a>,
    #[serde(flatten)]
    source: Source<'a>,
    job: String,
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
    pub fn refused(entered: &Entered<'a>, error: &'a Error, discretion: &Discretion) -> Self {
        let verdict = Verdict::deny(error, &discretion.unless(entered.hidden));
        Self::new(verdict, entered, discretion)
    }

    fn new(verdict: Verdict<'a>, entered: &Entered<'a>, discretion: &Discretion) -> Self {
        let Entered { typing, hidden, job, origin, owner } = *entered;
        let (shown, bytes) = (discretion.commands && !hidden, typing.bytes());
        let input = discretion.written(&typing.text);
        let keys = match shown {
            true => cut_list(typing.keys.iter().map(|key| key.as_str().into())),
            false => Vec::new(),
        };
        let all = shown && input.len() <= MAX_TEXT && keys.len() == typing.keys.len();
        Self {
            id: &job.run,
            verdict,
            source: Source::new(origin, owner),
            job: job.id().to_owned(),
            input: (shown && !typing.text.is_empty()).then(|| cut(input, MAX_TEXT)),
            keys,
            eof: typing.eof,
            hidden,
            input_bytes: bytes.len() as u64,
            input_sha256: (!all && !hidden).then(|| sha256(&bytes)),
        }
    }
}
