//! Where a command wants to connect to, and which command it says it is.

use crate::host::Host;

/// What is asked for, and by whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub host: Host,
    pub port: u16,
    pub label: Option<String>,
}

/// What a command calls itself, if it can be shown.
pub fn label(text: &[u8]) -> Option<String> {
    let plain = (1..=64).contains(&text.len()) && text.iter().all(u8::is_ascii_graphic);
    str::from_utf8(text).ok().filter(|_| plain).map(str::to_owned)
}
