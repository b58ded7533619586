//! Settings in environment variables. One that is empty says nothing.

use std::path::PathBuf;

use crate::environment;

#[derive(Debug, thiserror::Error)]
#[error("{name} is `{text}`, but must be a whole number")]
pub struct InvalidVariable {
    name: &'static str,
    text: String,
}

/// A type that a variable can have.
pub trait FromVariable: Sized {
    /// The value of a variable, if it is set.
    fn read(name: &'static str) -> Result<Option<Self>, InvalidVariable>;
}

impl<T: FromVariable> FromVariable for Option<T> {
    fn read(name: &'static str) -> Result<Option<Self>, InvalidVariable> {
        Ok(T::read(name)?.map(Some))
    }
}

impl FromVariable for String {
    fn read(name: &'static str) -> Result<Option<Self>, InvalidVariable> {
        Ok(environment::text(name))
    }
}

impl FromVariable for PathBuf {
    fn read(name: &'static str) -> Result<Option<Self>, InvalidVariable> {
        Ok(environment::variable(name).map(Self::from))
    }
}

/// A switch: only `1` turns it on.
impl FromVariable for bool {
    fn read(name: &'static str) -> Result<Option<Self>, InvalidVariable> {
        Ok(environment::text(name).map(|text| text == "1"))
    }
}

impl FromVariable for usize {
    fn read(name: &'static str) -> Result<Option<Self>, InvalidVariable> {
        let Some(text) = environment::text(name) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| InvalidVariable { name, text })
    }
}
