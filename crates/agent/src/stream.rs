//! One byte stream to an agent somewhere else: in a container, on another host, in a pod, in a batch step.
//!
//!     engine ─ Link, Process ═ pipes ═ far ──── one stream ──── relay ─ Link, Process ─ agent ═ keepers
//!              ╰───────── the server ─────╯                     ╰──────── the place ─────────╯
//!
//! The relay (`mcpz agent --stream`) is what the server would be there: it has a link to an ordinary agent, and a task
//! for each run. The server has a task for each run too, with ordinary pipes, so what reads output or types input is
//! the same code everywhere.
//!
//!     codec.rs     frames, and the messages in them
//!     incoming.rs  what has arrived; backlog.rs how much of it waits to be taken
//!     outgoing.rs  what is to be sent, with room for what runs print
//!     exchange.rs  reads, writes and beats
//!     patient.rs   how the place writes, and gathering.rs how the server reads, while there is much
//!     pipes.rs     the pipes of a run, one end here, the other there
//!     far.rs       the server's end: what it knows of all runs; far_link.rs its caller, far_run.rs one run
//!     relay.rs     the place's end, relayed.rs one run there
//!
//! # What the two ends rely on
//!
//! - The server speaks first. What a place prints before its greeting is skipped: login banners, warnings.
//! - Each pipe has credit: nobody sends more than the other end has room for, so one run's output does not hold up
//!   another's, nor a heartbeat.
//! - What a run has printed before an event arrives before the event, and before what its shell replies after it.
//! - The server says at every beat that it is there, and the relay says so in return. An end that hears nothing for
//!   three beats takes the other for gone: the relay then ends all runs, and the server reports them as lost.
//! - The other end may be hostile. What does not decode, has not been announced or has no credit ends the stream, and
//!   no number from the other side is ever used as a process, a path or a length without a check.

mod backlog;
mod codec;
mod exchange;
mod far;
mod far_link;
mod far_run;
mod gathering;
mod incoming;
mod outgoing;
mod patient;
mod pause;
mod pipes;
#[cfg(any(test, fuzzing))]
mod played;
mod relay;
mod relayed;

pub use codec::PlaceFacts;
pub use exchange::Broken;
pub use far_link::{FarLink, StreamError};
pub use far_run::FarProcess;
#[cfg(fuzzing)]
pub use played::play as play_place;
pub use relay::{RelayError, TOKEN_LENGTH, WELCOME, serve_stream};
