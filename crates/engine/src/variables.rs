//! Environment variables.

use std::ffi::{OsStr, OsString};
use std::fmt;

use serde::{Deserialize, Serialize};

/// Variables and their values.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variables(Vec<(OsString, OsString)>);

impl Variables {
    pub fn new(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        Self(variables.into_iter().collect())
    }

    pub fn get(&self, name: impl AsRef<OsStr>) -> Option<&OsStr> {
        let found = self.0.iter().find(|(known, _)| known == name.as_ref());
        found.map(|(_, value)| value.as_os_str())
    }

    pub fn all(&self) -> &[(OsString, OsString)] {
        &self.0
    }
}

/// Names only: a printed value could give a secret away.
impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}
