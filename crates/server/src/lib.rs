//! The engine's faces in the Model Context Protocol, and the transports they are served on.
//!
//! A face translates; the engine decides.

mod handler;
mod kept;
mod lines;
mod message;
mod progress;
mod resources;
mod schema;
mod serve;
mod stdio;
mod tool;

pub use handler::Shell;
pub use serve::{serve, serve_stdio};
pub use tool::execute::ExecuteSettings;
pub use tool::shell::ShellSettings;
pub use tool::{FaceSettings, Tool, ToolSet, UnknownTool};
