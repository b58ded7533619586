//! Which places there are.

use std::ffi::OsString;
use std::fmt;
use std::sync::Arc;

use mcpz_agent::PlaceFacts;
use mcpz_places::Place;

use crate::environment::Environment;
use crate::error::Error;

/// Where commands can run besides this machine.
#[derive(Clone)]
pub struct PlaceSettings {
    pub all: Vec<Place>,
    /// The one that commands run in if they name none. Without it, that is this machine.
    pub default: Option<String>,
    /// The variables of this process, for the programs that lead to places.
    pub variables: Vec<(OsString, OsString)>,
    /// Makes the environment of commands from what a place says about itself.
    pub resolve: ResolvePlace,
}

type ResolvePlace = Arc<dyn Fn(&PlaceFacts) -> Environment + Send + Sync>;

impl PlaceSettings {
    /// The places that a request may name, if there is a choice. With a default, that does not include this machine.
    pub fn offered(&self) -> Vec<String> {
        match (self.all.len(), &self.default) {
            (0, _) | (1, Some(_)) => Vec::new(),
            _ => self.all.iter().map(|place| place.name.clone()).collect(),
        }
    }

    /// The place that a request means.
    pub fn find(&self, named: Option<&str>) -> Result<Option<&Place>, Error> {
        let Some(name) = named.or(self.default.as_deref()) else { return Ok(None) };
        let found = self.all.iter().find(|place| place.name == name);
        found.map(Some).ok_or_else(|| Error::UnknownPlace {
            name: name.to_owned(),
            known: self.all.iter().map(|place| place.name.as_str()).collect::<Vec<_>>().join(", "),
        })
    }
}

impl fmt::Debug for PlaceSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlaceSettings").field("all", &self.all).finish_non_exhaustive()
    }
}
