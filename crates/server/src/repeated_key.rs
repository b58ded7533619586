//! Finds a key that occurs twice in an object, anywhere in a JSON document.
//!
//! One pass, which builds nothing but the set of keys of each object it is in.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// The first such key of a document, if there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepeatedKey(pub Option<String>);

impl<'de> Deserialize<'de> for RepeatedKey {
    fn deserialize<D: Deserializer<'de>>(document: D) -> Result<Self, D::Error> {
        document.deserialize_any(Search)
    }
}

struct Search;

impl<'de> Visitor<'de> for Search {
    type Value = RepeatedKey;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON document")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RepeatedKey, A::Error> {
        let (mut keys, mut repeated) = (HashSet::new(), None);
        while let Some(Key(key)) = map.next_key()? {
            if keys.contains(&key) {
                repeated = repeated.or_else(|| Some(key.into_owned()));
            } else {
                keys.insert(key);
            }
            let RepeatedKey(inside) = map.next_value()?;
            repeated = repeated.or(inside);
        }
        Ok(RepeatedKey(repeated))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<RepeatedKey, A::Error> {
        let mut repeated = None;
        while let Some(RepeatedKey(inside)) = elements.next_element()? {
            repeated = repeated.or(inside);
        }
        Ok(RepeatedKey(repeated))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<RepeatedKey, E> {
        Ok(RepeatedKey(None))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<RepeatedKey, E> {
        Ok(RepeatedKey(None))
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<RepeatedKey, E> {
        Ok(RepeatedKey(None))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<RepeatedKey, E> {
        Ok(RepeatedKey(None))
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<RepeatedKey, E> {
        Ok(RepeatedKey(None))
    }

    fn visit_unit<E: Error>(self) -> Result<RepeatedKey, E> {
        Ok(RepeatedKey(None))
    }
}

/// A key, borrowed from the document unless it has escapes: `"\u0061"` is `"a"`.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);
