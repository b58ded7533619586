//! One pass over JSON, following a path.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufReader, Read};

use jmespath::ast::Ast;
use jmespath::{Rcvar, Variable};
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Deserializer, Number};

use super::{Each, JsonPath, Step};
use crate::error::Error;
use crate::page::{Cutter, Page, PageRequest, Reader, Seen};

/// What a value takes besides its text.
const VALUE: usize = 72;

/// What is known on the way through an output.
pub struct Lookup<'a> {
    path: &'a JsonPath,
    found: RefCell<Cutter>,
    /// How much the values held at once may take.
    limit: usize,
    /// What the values held now take.
    held: Cell<usize>,
    /// How much was read since the last value.
    token: Cell<usize>,
    passing_over: Cell<bool>,
    /// Why we stopped, where that is not the document's fault.
    failure: RefCell<Option<Error>>,
}

impl<'a> Lookup<'a> {
    pub fn new(path: &'a JsonPath, request: PageRequest, limit: usize) -> Self {
        Self {
            path,
            found: RefCell::new(Cutter::new(request)),
            limit,
            held: Cell::new(0),
            token: Cell::new(0),
            passing_over: Cell::new(false),
            failure: RefCell::new(None),
        }
    }

    /// Looks at every document there is.
    pub fn through(self, reader: &Reader) -> Result<Page, Error> {
        let text = Text { seen: reader.seen(), block: Vec::new(), at: 0, lookup: &self };
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
        Ok(self.found.into_inner().page())
    }

    fn document<'de, D: serde::Deserializer<'de>>(&self, document: D) -> Result<(), D::Error> {
        self.held.set(0);
        self.token.set(0);
        let found = Way { lookup: self, steps: &self.path.plan.way }.deserialize(document)?;
        match found {
            Found::Told => self.tell("\n"),
            Found::Value(value) => self.tell(&format!("{value}\n")),
        }
        Ok(())
    }

    fn tell(&self, text: &str) {
        self.found.borrow_mut().pass(text);
    }

    /// Counts a value that is held.
    fn hold<E: serde::de::Error>(&self, bytes: usize) -> Result<(), E> {
        self.token.set(0);
        self.held.set(self.held.get() + VALUE + bytes);
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

    /// What is not on the way is read and dropped, however long it is.
    fn passing_over<T>(&self, pass: impl FnOnce() -> T) -> T {
        self.passing_over.set(true);
        let result = pass();
        self.passing_over.set(false);
        self.token.set(0);
        result
    }

    /// What the rest of the expression makes of a value.
    fn rest<E: serde::de::Error>(&self, value: Rcvar) -> Result<Found, E> {
        match &self.path.plan.rest {
            Some(rest) => self.interpret(&value, rest).map(Found::Value),
            None => Ok(Found::Value(value)),
        }
    }
}

/// What came of a document.
enum Found {
    Value(Rcvar),
    /// It was passed on already, an element at a time.
    Told,
}

/// The text of the output. A single name or string that is too long is not read to its end.
struct Text<'a> {
    seen: Seen<'a>,
    /// What of the newest block was not read yet.
    block: Vec<u8>,
    at: usize,
    lookup: &'a Lookup<'a>,
}

impl Read for Text<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.block.len() {
            let Some(block) = self.seen.next()? else { return Ok(0) };
            self.block.clear();
            self.block.extend_from_slice(block);
            self.at = 0;
        }
        let read = (&self.block[self.at..]).read(buffer)?;
        self.at += read;
        let token = self.lookup.token.get() + read;
        self.lookup.token.set(token);
        if token > self.lookup.limit && !self.lookup.passing_over.get() {
            *self.lookup.failure.borrow_mut() = Some(self.lookup.too_long());
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(read)
    }
}

/// Goes down to where the way ends.
#[derive(Clone, Copy)]
struct Way<'a> {
    lookup: &'a Lookup<'a>,
    steps: &'a [Step],
}

impl Way<'_> {
    /// There is nothing at the end of the way.
    fn nothing<E: serde::de::Error>(self) -> Result<Found, E> {
        self.lookup.rest(Rcvar::new(Variable::Null))
    }
}

impl<'de> DeserializeSeed<'de> for Way<'_> {
    type Value = Found;

    fn deserialize<D: serde::Deserializer<'de>>(self, value: D) -> Result<Found, D::Error> {
        match (self.steps, &self.lookup.path.plan.each) {
            ([], Some(each)) => value.deserialize_any(Elements { lookup: self.lookup, each }),
            ([], None) => self.lookup.rest(Hold(self.lookup).deserialize(value)?),
            _ => value.deserialize_any(self),
        }
    }
}

/// Scalars have nothing in them to go down to.
macro_rules! nothing_in_scalars {
    () => {
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a value")
        }
        fn visit_bool<E: serde::de::Error>(self, _: bool) -> Result<Found, E> {
            self.nothing()
        }
        fn visit_i64<E: serde::de::Error>(self, _: i64) -> Result<Found, E> {
            self.nothing()
        }
        fn visit_u64<E: serde::de::Error>(self, _: u64) -> Result<Found, E> {
            self.nothing()
        }
        fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<Found, E> {
            self.nothing()
        }
        fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<Found, E> {
            self.nothing()
        }
        fn visit_unit<E: serde::de::Error>(self) -> Result<Found, E> {
            self.nothing()
        }
    };
}

impl<'de> Visitor<'de> for Way<'_> {
    type Value = Found;

    nothing_in_scalars!();

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Found, A::Error> {
        let Some((Step::Index(wanted), steps)) = self.steps.split_first() else {
            self.lookup.passing_over(|| pass_elements(&mut elements, usize::MAX))?;
            return self.nothing();
        };
        let skipped = self.lookup.passing_over(|| pass_elements(&mut elements, *wanted))?;
        let found = match skipped == *wanted {
            true => elements.next_element_seed(Way { steps, ..self })?,
            false => None,
        };
        self.lookup.passing_over(|| pass_elements(&mut elements, usize::MAX))?;
        found.map_or_else(|| self.nothing(), Ok)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Found, A::Error> {
        let mut found = None;
        while let Some(name) = members.next_key::<String>()? {
            self.lookup.token.set(0);
            match self.steps.split_first() {
                // Of two members of the same name, what was found in the first may be told already.
                Some((Step::Field(wanted), steps)) if *wanted == name && found.is_none() => {
                    found = Some(members.next_value_seed(Way { steps, ..self })?);
                }
                _ => {
                    self.lookup.passing_over(|| members.next_value::<IgnoredAny>())?;
                }
            }
        }
        found.map_or_else(|| self.nothing(), Ok)
    }
}

/// Passes over so many elements, or as many as there are; returns how many.
fn pass_elements<'de, A: SeqAccess<'de>>(elements: &mut A, most: usize) -> Result<usize, A::Error> {
    let mut passed = 0;
    while passed < most && elements.next_element::<IgnoredAny>()?.is_some() {
        passed += 1;
    }
    Ok(passed)
}

/// Takes the elements one after the other.
struct Elements<'a> {
    lookup: &'a Lookup<'a>,
    each: &'a Each,
}

impl Elements<'_> {
    fn nothing<E: serde::de::Error>(&self) -> Result<Found, E> {
        self.lookup.rest(Rcvar::new(Variable::Null))
    }

    /// Passes an element through all stages; what comes out is kept or told.
    fn take<E: serde::de::Error>(&self, value: Rcvar, kept: &mut Kept) -> Result<(), E> {
        let mut values = vec![value];
        for stage in &self.each.stages {
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
            kept.size += values.iter().map(|value| size(value)).sum::<usize>();
            kept.values.extend(values);
            // Of the element, only that is still there.
            self.lookup.held.set(kept.size);
            return Ok(());
        }
        for value in values {
            let comma = if std::mem::replace(&mut kept.told, true) { "," } else { "" };
            self.lookup.tell(&format!("{comma}{value}"));
        }
        self.lookup.held.set(0);
        Ok(())
    }

    fn all<E: serde::de::Error>(
        &self,
        mut next: impl FnMut(usize) -> Result<Option<Option<Rcvar>>, E>,
    ) -> Result<Found, E> {
        let mut kept = Kept { values: Vec::new(), size: 0, told: false };
        let tells = self.lookup.path.plan.rest.is_none();
        if tells {
            self.lookup.tell("[");
        }
        let mut at = 0;
        while let Some(value) = next(at)? {
            if let Some(value) = value {
                self.take(value, &mut kept)?;
            }
            at += 1;
        }
        if tells {
            self.lookup.tell("]");
            return Ok(Found::Told);
        }
        self.lookup.rest(Rcvar::new(Variable::Array(kept.values)))
    }
}

/// What came of the elements so far.
struct Kept {
    values: Vec<Rcvar>,
    /// What they take.
    size: usize,
    /// Whether there is something before the next comma.
    told: bool,
}

/// What a value takes, with all in it.
fn size(value: &Variable) -> usize {
    VALUE
        + match value {
            Variable::String(text) => text.len(),
            Variable::Array(values) => values.iter().map(|value| size(value)).sum(),
            Variable::Object(members) => {
                members.iter().map(|(name, value)| VALUE + name.len() + size(value)).sum()
            }
            _ => 0,
        }
}

impl<'de> Visitor<'de> for Elements<'_> {
    type Value = Found;

    nothing_in_scalars!();

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Found, A::Error> {
        if self.each.values {
            self.lookup.passing_over(|| pass_elements(&mut elements, usize::MAX))?;
            return self.nothing();
        }
        self.all(|at| {
            if self.each.range.contains(&at) {
                return Ok(elements.next_element_seed(Hold(self.lookup))?.map(Some));
            }
            let passed = self.lookup.passing_over(|| elements.next_element::<IgnoredAny>())?;
            Ok(passed.map(|_| None))
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Found, A::Error> {
        if !self.each.values {
            let mut pass = || members.next_entry::<IgnoredAny, IgnoredAny>();
            while self.lookup.passing_over(&mut pass)?.is_some() {}
            return self.nothing();
        }
        self.all(|_| {
            if self.lookup.passing_over(|| members.next_key::<IgnoredAny>())?.is_none() {
                return Ok(None);
            }
            members.next_value_seed(Hold(self.lookup)).map(|value| Some(Some(value)))
        })
    }
}

/// Holds a value as a whole, if it is not too large.
#[derive(Clone, Copy)]
struct Hold<'a>(&'a Lookup<'a>);

impl Hold<'_> {
    fn value<E: serde::de::Error>(self, value: Variable, bytes: usize) -> Result<Rcvar, E> {
        self.0.hold(bytes)?;
        Ok(Rcvar::new(value))
    }
}

impl<'de> DeserializeSeed<'de> for Hold<'_> {
    type Value = Rcvar;

    fn deserialize<D: serde::Deserializer<'de>>(self, value: D) -> Result<Rcvar, D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Hold<'_> {
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
            self.0.hold(name.len())?;
            values.insert(name, members.next_value_seed(self)?);
        }
        self.value(Variable::Object(values), 0)
    }
}
