//! Where a command wants to connect to, and which command it says it is.

use crate::host::Host;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub host: Host,
    pub port: u16,
    /// The command's own claim, for reports. No decision may depend on it.
    pub label: Option<String>,
}

/// Reads a label, unless it is too long or has bytes that cannot be shown.
pub fn parse_label(text: &[u8]) -> Option<String> {
    let printable = (1..=64).contains(&text.len()) && text.iter().all(u8::is_ascii_graphic);
    str::from_utf8(text).ok().filter(|_| printable).map(str::to_owned)
}
