//! The MCP server: transports (stdio, HTTP), and tools that translate the protocol's calls into calls to the engine.
//!
//!     client ─▶ stdio ─┐                            ┌─▶ tool ─▶ watcher ─▶ engine
//!     clients ─▶ http ─┴─▶ service loop ─▶ handler ─┼─▶ tasks
//!                                                   └─▶ resources, subscriptions, prompts
//!
//! The service loop is rmcp's; both transports are our own (`stdio.rs` and `http.rs` say why).
//!
//! A tool translates and the engine decides: nothing here starts a process, judges a command or reads a setting. One
//! thread serves everybody, so that no call waits for another thread to wake; nothing here blocks it (`blocking.rs`).

mod arguments;
mod blocking;
mod budget;
mod catch_panic;
mod handler;
mod http;
mod lines;
mod memory;
mod message;
mod notifications;
mod output_uri;
mod prompts;
mod repeated_key;
mod resources;
mod schema;
mod serve;
mod stdio;
mod subscriptions;
mod task_methods;
mod tasks;
mod tenants;
mod tool;
mod trace;
mod watcher;

pub use budget::MaxAnswer;
pub use handler::ShellServer;
pub use http::{
    Allowed, Auth, Backend, Fetching, HttpLimits, HttpSettings, Keys, OAuth, OAuthSettings,
    Principal, Source, serve_http,
};
pub use lines::MAX_LINE;
pub use memory::MemoryLimits;
pub use serve::{serve, serve_stdio};
pub use tenants::Tenants;
pub use tool::{
    ExecuteSettings, FaceSettings, ShellSettings, TOOLS, Timeout, Tool, ToolSet, UnknownTool,
};
pub use trace::{Attribute, Kind, Span, SpanIds, Spans};
