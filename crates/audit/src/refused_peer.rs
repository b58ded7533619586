//! The record of a process that was refused at a control socket.

use std::borrow::Cow;

use serde::Serialize;

use crate::record::{DecisionFields, MAX_NAME, Redaction, cut};

/// A process that asked for jobs and may not see them.
pub struct RefusedPeer<'a> {
    pub pid: i32,
    /// What it calls itself.
    pub name: &'a str,
    /// The process of ours that it descends from, if it does.
    pub below: Option<i32>,
    pub reason: &'a str,
}

/// The line that is written instead of the request, which is not even read.
#[derive(Serialize)]
pub struct PeerRefusalRecord<'a> {
    id: &'a str,
    #[serde(flatten)]
    decision: DecisionFields<'a>,
    tool: &'static str,
    server_pid: u32,
    pid: i32,
    what: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    below: Option<i32>,
}

impl<'a> PeerRefusalRecord<'a> {
    pub fn new(id: &'a str, peer: &RefusedPeer<'a>, redaction: &Redaction) -> Self {
        Self {
            id,
            decision: DecisionFields::deny_for(peer.reason),
            tool: "jobs",
            server_pid: std::process::id(),
            pid: peer.pid,
            what: cut(redaction.mask(peer.name), MAX_NAME),
            below: peer.below,
        }
    }
}
