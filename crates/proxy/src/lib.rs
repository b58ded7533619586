//! The way out for commands that have no network of their own.
//!
//! A command in an empty network namespace reaches one listener. Whatever it asks for there, in HTTP
//! or SOCKS, is decided by name, looked up once, checked again by address, and connected to exactly
//! the address that was checked. Whatever is refused is said to the command and to the caller.
//!
//!     command ─▶ listener ─┬─ http ──┐
//!                          └─ socks ─┴─▶ door: rules ─▶ lookup ─▶ Public ─▶ connection
//!                                         └─▶ Report: refused, reached

mod address;
mod answer;
mod body;
mod door;
mod environment;
mod head;
mod host;
mod http;
mod intake;
mod network;
mod report;
mod response;
mod rules;
mod serve;
mod socks;
#[cfg(test)]
mod tests;
mod traffic;

pub use address::Kind;
pub use environment::{environment, environment_for};
pub use host::{Host, HostError, Name};
pub use report::{Reached, Reason, Refusal, Report};
pub use rules::{Rules, RulesError};
pub use serve::{Limits, Proxy};
