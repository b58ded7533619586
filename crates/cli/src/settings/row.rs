//! What flags and the manual need to know of a setting: its row, without its type.

use clap::Arg;

use super::flag::TypedFlag;

/// A group of settings: a table of the file, or settings that only flags and variables have.
pub struct Section {
    /// The name of the table.
    #[cfg_attr(not(test), expect(dead_code, reason = "for the manual"))]
    pub table: Option<&'static str>,
    #[cfg_attr(not(test), expect(dead_code, reason = "for the manual"))]
    pub about: &'static str,
    pub rows: Vec<Row>,
}

/// A setting without its type. Functions compute what only help and the manual need.
pub struct Row {
    #[cfg_attr(not(test), expect(dead_code, reason = "for the manual"))]
    pub key: &'static str,
    #[cfg_attr(not(test), expect(dead_code, reason = "for the manual"))]
    pub about: &'static str,
    /// What a file can say: `number`, `list of strings`.
    #[cfg_attr(not(test), expect(dead_code, reason = "for the manual"))]
    pub kind: fn() -> String,
    /// The default as a file would write it, if it can be written.
    pub default: fn() -> Option<String>,
    /// The default in words, where the value would not explain it.
    #[cfg_attr(not(test), expect(dead_code, reason = "for the manual"))]
    pub words: Option<fn() -> String>,
    /// The keys of a table inside the value.
    #[cfg_attr(not(test), expect(dead_code, reason = "for the manual"))]
    pub inner: fn() -> Vec<Row>,
    pub variable: Option<&'static str>,
    pub flag: Option<TypedFlag>,
}

impl Row {
    /// The flag, if the setting has one.
    pub fn argument(&self) -> Option<Arg> {
        Some(self.flag?.argument((self.default)(), self.variable))
    }
}
