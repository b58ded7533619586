//! The engine's faces in the Model Context Protocol, and the transports they are served on.
//!
//! A face translates; the engine decides.

mod arguments;
mod blocking;
mod budget;
mod catch_panic;
mod handler;
mod http;
mod lines;
mod memory;
mod message;
mod output_uri;
mod prompts;
mod resources;
mod schema;
mod serve;
mod stdio;
mod subscriptions;
mod task_methods;
mod tasks;
mod telling;
mod tenants;
mod tool;
mod trace;
mod watcher;

pub use budget::MaxAnswer;
pub use handler::Shell;
pub use http::{
    Allowed, Auth, Backend, Fetching, HttpLimits, HttpSettings, Keys, OAuth, OAuthSettings,
    Principal, Source, serve_http,
};
pub use mcpz_runtime::random_name;
pub use memory::MemoryLimits;
pub use serve::{serve, serve_stdio};
pub use tenants::Tenants;
pub use tool::{
    ExecuteSettings, FaceSettings, ShellSettings, TOOLS, Timeout, Tool, ToolSet, UnknownTool,
};
pub use trace::{Attribute, Kind, Place, Span, Spans};
