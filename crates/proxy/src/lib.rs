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
mod door;
mod environment;
mod host;
mod http;
mod intake;
mod limits;
mod network;
mod report;
mod rules;
mod serve;
mod socks;
mod target;
#[cfg(test)]
mod tests;
mod traffic;

pub use address::Kind;
pub use environment::{environment, environment_for};
pub use host::{Host, HostError, Name};
pub use limits::Limits;
pub use report::{Reached, Reason, Refusal, Report};
pub use rules::{Rules, RulesError};
pub use serve::Proxy;
