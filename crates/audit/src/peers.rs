//! What is written of somebody who was refused at a control socket.

use std::borrow::Cow;

use serde::Serialize;

use crate::record::{Discretion, MAX_NAME, Verdict, cut};

/// A process that asked for jobs and may not.
pub struct RefusedPeer<'a> {
    pub pid: i32,
    /// What it calls itself.
    pub name: &'a str,
    /// The process of ours it is below, if it is.
    pub below: Option<i32>,
    pub reason: &'a str,
}

/// One line in place of whatever it wanted, which was not read.
#[derive(Serialize)]
pub struct Rejection<'a> {
    id: &'a str,
    #[serde(flatten)]
    verdict: Verdict<'a>,
    tool: &'static str,
    server_pid: u32,
    pid: i32,
    what: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    below: Option<i32>,
}

impl<'a> Rejection<'a> {
    pub fn new(id: &'a str, peer: &RefusedPeer<'a>, discretion: &Discretion) -> Self {
        Self {
            id,
            verdict: Verdict::deny_for(peer.reason),
            tool: "jobs",
            server_pid: std::process::id(),
            pid: peer.pid,
            what: cut(discretion.written(peer.name), MAX_NAME),
            below: peer.below,
        }
    }
}
