//! What is written of what is typed into a job.

use std::borrow::Cow;

use serde::Serialize;

use super::record::{Discretion, MAX_NAME, MAX_TEXT, cut, cut_list};
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
    event: &'static str,
    decision: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Cow<'a, str>>,
    tool: &'a str,
    owner: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<Cow<'a, str>>,
    server_pid: u32,
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
        Self::new(("input", "allow"), entered, discretion)
    }

    /// What was not typed, and why.
    pub fn refused(entered: &Entered<'a>, error: &'a Error, discretion: &Discretion) -> Self {
        let rule = error.rule().map(|rule| cut(rule.into(), MAX_NAME));
        let reason = Some(discretion.unless(entered.hidden).reason(error));
        Self { rule, reason, ..Self::new(("refused", "deny"), entered, discretion) }
    }

    fn new(
        (event, decision): (&'static str, &'static str),
        entered: &Entered<'a>,
        discretion: &Discretion,
    ) -> Self {
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
            event,
            decision,
            rule: None,
            reason: None,
            tool: &origin.tool,
            owner: cut(owner.into(), MAX_NAME),
            client: origin.client.as_deref().map(|client| cut(client.into(), MAX_NAME)),
            server_pid: std::process::id(),
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
