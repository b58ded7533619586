//! The types that settings can have, and how a file writes their values.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::row::Row;

pub trait Value {
    /// Whether a table inside a value may leave it out.
    const OPTIONAL: bool = false;

    /// What a file can say, in a word or two.
    fn kind() -> String;

    /// The same for several of them.
    fn kinds() -> String {
        format!("{}s", Self::kind())
    }

    /// The value as a file writes it; nothing for one that says nothing.
    fn toml(&self) -> Option<String>;

    /// The keys of a table inside the value.
    fn inner() -> Vec<Row> {
        Vec::new()
    }

    /// What counts if another source says something too.
    fn with(self, other: Self) -> Self
    where
        Self: Sized,
    {
        let _ = other;
        self
    }
}

/// What two sources say together.
pub fn combined<T: Value>(first: Option<T>, second: Option<T>) -> Option<T> {
    match (first, second) {
        (Some(first), Some(second)) => Some(first.with(second)),
        (first, second) => first.or(second),
    }
}

impl<T: Value> Value for Option<T> {
    const OPTIONAL: bool = true;

    fn kind() -> String {
        T::kind()
    }

    fn toml(&self) -> Option<String> {
        self.as_ref()?.toml()
    }

    fn inner() -> Vec<Row> {
        T::inner()
    }
}

impl<T: Value> Value for Vec<T> {
    const OPTIONAL: bool = true;

    fn kind() -> String {
        format!("list of {}", T::kinds())
    }

    fn toml(&self) -> Option<String> {
        let items: Vec<_> = self.iter().filter_map(T::toml).collect();
        (!items.is_empty()).then(|| format!("[{}]", items.join(", ")))
    }

    fn inner() -> Vec<Row> {
        T::inner()
    }
}

impl Value for BTreeMap<String, String> {
    fn kind() -> String {
        "table of strings".to_owned()
    }

    fn toml(&self) -> Option<String> {
        None
    }
}

impl Value for String {
    fn kind() -> String {
        "string".to_owned()
    }

    fn toml(&self) -> Option<String> {
        Some(format!("\"{self}\""))
    }
}

impl Value for PathBuf {
    fn kind() -> String {
        "string".to_owned()
    }

    fn toml(&self) -> Option<String> {
        Some(format!("\"{}\"", self.display()))
    }
}

impl Value for bool {
    fn kind() -> String {
        "`true` or `false`".to_owned()
    }

    fn toml(&self) -> Option<String> {
        Some(self.to_string())
    }
}

macro_rules! numbers {
    ($($type:ty),+) => {
        $(impl Value for $type {
            fn kind() -> String {
                "number".to_owned()
            }

            fn toml(&self) -> Option<String> {
                Some(self.to_string())
            }
        })+
    };
}

numbers!(u8, u64, usize);
