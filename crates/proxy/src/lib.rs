//! An HTTP and SOCKS proxy: the only way to the network for commands that have no network of their own.
//!
//! A command in an empty network namespace reaches one listener, and asks there for a host in HTTP or
//! SOCKS. The rules check the name, one lookup finds its addresses, each address is checked again, and the
//! proxy connects to exactly the addresses it checked. The command and the caller are told of every refusal.
//! What a tunnel carries is not inspected: a host that is allowed can pass on what it likes.
//!
//!     command ─▶ Proxy ─┬─ http ──┐
//!                       └─ socks ─┴─▶ Connector: Rules ─▶ lookup ─▶ PublicAddress ─▶ connection
//!                                         └─▶ Report: refused, reached
//!
//! Nothing else of the project is known here.

mod address;
mod connector;
mod environment;
mod host;
mod http;
mod internet;
mod limits;
mod network;
mod peer;
mod proxy;
mod reader;
mod report;
mod rules;
mod socks;
mod target;
#[cfg(test)]
mod tests;
mod traffic;

pub use address::Kind;
pub use environment::{environment, environment_for};
pub use host::{Host, HostError, Name};
pub use limits::Limits;
pub use proxy::Proxy;
pub use report::{Reached, Reason, Refusal, Report};
pub use rules::{Rules, RulesError};
