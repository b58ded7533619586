//! One pass over JSON documents, following a path.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufReader, Read};

use jmespath::ast::Ast;
use jmespath::{Rcvar, Variable};
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Deserializer, Number};

use super::{JsonPath, Projection, Step};
use crate::error::Error;
use crate::page::{Blocks, Page, PageBuilder, PageRequest, Reader};

/// The memory a value takes besides its text, about.
const VALUE_SIZE: usize = 72;

/// The state of one pass.
pub struct Lookup<'a> {
    path: &'a JsonPath,
    page: RefCell<PageBuilder>,
    /// The limit for the values held at once.
    limit: usize,
    /// What the values held now take.
    held: Cell<usize>,
    /// How much was read since the last value.
    token: Cell<usize>,
    skipping: Cell<bool>,
    /// Why the pass stopped, if the document is not the reason.
    failure: RefCell<Option<Error>>,
}

impl<'a> Lookup<'a> {
    pub fn new(path: &'a JsonPath, request: PageRequest, limit: usize) -> Self {
        Self {
            path,
            page: RefCell::new(PageBuilder::new(request)),
            limit,
            held: Cell::new(0),
            token: Cell::new(0),
            skipping: Cell::new(false),
            failure: RefCell::new(None),
        }
    }

    /// Looks up the path in every document.
    pub fn run(self, reader: &Reader) -> Result<Page, Error> {
        let text = TextReader { blocks: reader.blocks(), block: Vec::new(), at: 0, lookup: &self };
        let mut documents = Deserializer::from_reader(BufReader::with_capacity(64 << 10, text));
        while documents.end().is_err() {
            if let Err(error) = self.document(&mut documents) {
                return Err(match self.failure.take() {
                    Some(failure) => failure,
                    None if error.is_io() => Error::Read(error.into()),
                    None => Error::NoJson(error),
                });
            }
        }
        drop(documents);
        Ok(self.page.into_inner().finish())
    }

    fn document<'de, D: serde::Deserializer<'de>>(&self, document: D) -> Result<(), D::Error> {
        self.held.set(0);
        self.token.set(0);
        let found = Descent { lookup: self, steps: &self.path.plan.steps }.deserialize(document)?;
        match found {
            Found::Emitted => self.emit("\n"),
            Found::Value(value) => self.emit(&format!("{value}\n")),
        }
        Ok(())
    }

    fn emit(&self, text: &str) {
        self.page.borrow_mut().feed(text);
    }

    /// Adds the size of a value that is held.
    fn count<E: serde::de::Error>(&self, bytes: usize) -> Result<(), E> {
        self.token.set(0);
        self.held.set(self.held.get() + VALUE_SIZE + bytes);
        match self.held.get() > self.limit {
            true => Err(self.fail(self.too_long())),
            false => Ok(()),
        }
    }

    fn too_long(&self) -> Error {
        Error::DocumentTooLong { limit: self.limit as u64 }
    }

    fn fail<E: serde::de::Error>(&self, error: Error) -> E {
        *self.failure.borrow_mut() = Some(error);
        E::custom("stopped")
    }

    fn interpret<E: serde::de::Error>(&self, value: &Rcvar, ast: &Ast) -> Result<Rcvar, E> {
        self.path.interpret(value, ast).map_err(|error| self.fail(error))
    }

    /// Reads something that is dropped, however long it is.
    fn skipping<T>(&self, read: impl FnOnce() -> T) -> T {
        self.skipping.set(true);
        let result = read();
        self.skipping.set(false);
        self.token.set(0);
        result
    }

    /// Applies the rest of the expression to a value.
    fn rest<E: serde::de::Error>(&self, value: Rcvar) -> Result<Found, E> {
        match &self.path.plan.rest {
            Some(rest) => self.interpret(&value, rest).map(Found::Value),
            None => Ok(Found::Value(value)),
        }
    }
}

/// The result for a document.
enum Found {
    Value(Rcvar),
    /// Already emitted, one element at a time.
    Emitted,
}

/// The text of the output. Reading fails within a single name or string that is too long to hold.
struct TextReader<'a> {
    blocks: Blocks<'a>,
    /// The current block, which is read up to `at`.
    block: Vec<u8>,
    at: usize,
    lookup: &'a Lookup<'a>,
}

impl Read for TextReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.block.len() {
            let Some(block) = self.blocks.next()? else { return Ok(0) };
            self.block.clear();
            self.block.extend_from_slice(block);
            self.at = 0;
        }
        let read = (&self.block[self.at..]).read(buffer)?;
        self.at += read;
        let token = self.lookup.token.get() + read;
        self.lookup.token.set(token);
        if token > self.lookup.limit && !self.lookup.skipping.get() {
            *self.lookup.failure.borrow_mut() = Some(self.lookup.too_long());
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(read)
    }
}

/// Descends to where the steps lead.
#[derive(Clone, Copy)]
struct Descent<'a> {
    lookup: &'a Lookup<'a>,
    steps: &'a [Step],
}

impl Descent<'_> {
    /// There is nothing where the steps lead.
    fn missing<E: serde::de::Error>(self) -> Result<Found, E> {
        self.lookup.rest(Rcvar::new(Variable::Null))
    }
}

impl<'de> DeserializeSeed<'de> for Descent<'_> {
    type Value = Found;

    fn deserialize<D: serde::Deserializer<'de>>(self, value: D) -> Result<Found, D::Error> {
        match (self.steps, &self.lookup.path.plan.projection) {
            ([], Some(projection)) => {
                value.deserialize_any(Elements { lookup: self.lookup, projection })
            }
            ([], None) => self.lookup.rest(WholeValue(self.lookup).deserialize(value)?),
            _ => value.deserialize_any(self),
        }
    }
}

/// There is nothing inside a scalar.
macro_rules! missing_in_scalars {
    () => {
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a value")
        }
        fn visit_bool<E: serde::de::Error>(self, _: bool) -> Result<Found, E> {
            self.missing()
        }
        fn visit_i64<E: serde::de::Error>(self, _: i64) -> Result<Found, E> {
            self.missing()
        }
        fn visit_u64<E: serde::de::Error>(self, _: u64) -> Result<Found, E> {
            self.missing()
        }
        fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<Found, E> {
            self.missing()
        }
        fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<Found, E> {
            self.missing()
        }
        fn visit_unit<E: serde::de::Error>(self) -> Result<Found, E> {
            self.missing()
        }
    };
}

impl<'de> Visitor<'de> for Descent<'_> {
    type Value = Found;

    missing_in_scalars!();

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Found, A::Error> {
        let Some((Step::Index(wanted), steps)) = self.steps.split_first() else {
            self.lookup.skipping(|| skip_elements(&mut elements, usize::MAX))?;
            return self.missing();
        };
        let skipped = self.lookup.skipping(|| skip_elements(&mut elements, *wanted))?;
        let found = match skipped == *wanted {
            true => elements.next_element_seed(Descent { steps, ..self })?,
            false => None,
        };
        self.lookup.skipping(|| skip_elements(&mut elements, usize::MAX))?;
        found.map_or_else(|| self.missing(), Ok)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Found, A::Error> {
        let mut found = None;
        while let Some(name) = members.next_key::<String>()? {
            self.lookup.token.set(0);
            match self.steps.split_first() {
                // If two members have the same name, the first one counts: its result may be emitted already.
                Some((Step::Field(wanted), steps)) if *wanted == name && found.is_none() => {
                    found = Some(members.next_value_seed(Descent { steps, ..self })?);
                }
                _ => {
                    self.lookup.skipping(|| members.next_value::<IgnoredAny>())?;
                }
            }
        }
        found.map_or_else(|| self.missing(), Ok)
    }
}

/// Skips up to `most` elements; returns how many.
fn skip_elements<'de, A: SeqAccess<'de>>(elements: &mut A, most: usize) -> Result<usize, A::Error> {
    let mut skipped = 0;
    while skipped < most && elements.next_element::<IgnoredAny>()?.is_some() {
        skipped += 1;
    }
    Ok(skipped)
}

/// Visits elements one by one.
struct Elements<'a> {
    lookup: &'a Lookup<'a>,
    projection: &'a Projection,
}

impl Elements<'_> {
    fn missing<E: serde::de::Error>(&self) -> Result<Found, E> {
        self.lookup.rest(Rcvar::new(Variable::Null))
    }

    /// Passes an element through all stages, then collects or emits the result.
    fn take<E: serde::de::Error>(&self, value: Rcvar, collected: &mut Collected) -> Result<(), E> {
        let mut values = vec![value];
        for stage in &self.projection.stages {
            let mut after = Vec::new();
            for value in &values {
                let parts = match (stage.flatten, &**value) {
                    (true, Variable::Array(parts)) => parts.as_slice(),
                    _ => std::slice::from_ref(value),
                };
                for part in parts {
                    let result = self.lookup.interpret(part, &stage.then)?;
                    after.extend((!result.is_null()).then_some(result));
                }
            }
            values = after;
        }
        if self.lookup.path.plan.rest.is_some() {
            collected.size += values.iter().map(|value| size(value)).sum::<usize>();
            collected.values.extend(values);
            // The element itself is dropped now.
            self.lookup.held.set(collected.size);
            return Ok(());
        }
        for value in values {
            let comma = if std::mem::replace(&mut collected.emitted, true) { "," } else { "" };
            self.lookup.emit(&format!("{comma}{value}"));
        }
        self.lookup.held.set(0);
        Ok(())
    }

    fn collect<E: serde::de::Error>(
        &self,
        mut next: impl FnMut(usize) -> Result<Option<Option<Rcvar>>, E>,
    ) -> Result<Found, E> {
        let mut collected = Collected { values: Vec::new(), size: 0, emitted: false };
        let emits = self.lookup.path.plan.rest.is_none();
        if emits {
            self.lookup.emit("[");
        }
        let mut at = 0;
        while let Some(value) = next(at)? {
            if let Some(value) = value {
                self.take(value, &mut collected)?;
            }
            at += 1;
        }
        if emits {
            self.lookup.emit("]");
            return Ok(Found::Emitted);
        }
        self.lookup.rest(Rcvar::new(Variable::Array(collected.values)))
    }
}

/// The results of the elements so far.
struct Collected {
    values: Vec<Rcvar>,
    /// The memory they take.
    size: usize,
    /// Whether the next one needs a comma before it.
    emitted: bool,
}

/// The memory a value takes, with everything in it.
fn size(value: &Variable) -> usize {
    VALUE_SIZE
        + match value {
            Variable::String(text) => text.len(),
            Variable::Array(values) => values.iter().map(|value| size(value)).sum(),
            Variable::Object(members) => {
                members.iter().map(|(name, value)| VALUE_SIZE + name.len() + size(value)).sum()
            }
            _ => 0,
        }
}

impl<'de> Visitor<'de> for Elements<'_> {
    type Value = Found;

    missing_in_scalars!();

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Found, A::Error> {
        if self.projection.of_values {
            self.lookup.skipping(|| skip_elements(&mut elements, usize::MAX))?;
            return self.missing();
        }
        self.collect(|at| {
            if self.projection.range.contains(&at) {
                return Ok(elements.next_element_seed(WholeValue(self.lookup))?.map(Some));
            }
            let skipped = self.lookup.skipping(|| elements.next_element::<IgnoredAny>())?;
            Ok(skipped.map(|_| None))
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Found, A::Error> {
        if !self.projection.of_values {
            let mut skip = || members.next_entry::<IgnoredAny, IgnoredAny>();
            while self.lookup.skipping(&mut skip)?.is_some() {}
            return self.missing();
        }
        self.collect(|_| {
            if self.lookup.skipping(|| members.next_key::<IgnoredAny>())?.is_none() {
                return Ok(None);
            }
            members.next_value_seed(WholeValue(self.lookup)).map(|value| Some(Some(value)))
        })
    }
}

/// Reads a whole value, if it is not too large.
#[derive(Clone, Copy)]
struct WholeValue<'a>(&'a Lookup<'a>);

impl WholeValue<'_> {
    fn value<E: serde::de::Error>(self, value: Variable, bytes: usize) -> Result<Rcvar, E> {
        self.0.count(bytes)?;
        Ok(Rcvar::new(value))
    }
}

impl<'de> DeserializeSeed<'de> for WholeValue<'_> {
    type Value = Rcvar;

    fn deserialize<D: serde::Deserializer<'de>>(self, value: D) -> Result<Rcvar, D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for WholeValue<'_> {
    type Value = Rcvar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Rcvar, E> {
        self.value(Variable::Bool(value), 0)
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Rcvar, E> {
        self.value(Variable::Number(value.into()), 0)
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Rcvar, E> {
        self.value(Variable::Number(value.into()), 0)
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Rcvar, E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("a number is not finite"))?;
        self.value(Variable::Number(number), 0)
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Rcvar, E> {
        self.value(Variable::String(value.to_owned()), value.len())
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Rcvar, E> {
        self.value(Variable::Null, 0)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Rcvar, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = elements.next_element_seed(self)? {
            values.push(value);
        }
        self.value(Variable::Array(values), 0)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Rcvar, A::Error> {
        let mut values = BTreeMap::new();
        while let Some(name) = members.next_key::<String>()? {
            self.0.count(name.len())?;
            values.insert(name, members.next_value_seed(self)?);
        }
        self.value(Variable::Object(values), 0)
    }
}
