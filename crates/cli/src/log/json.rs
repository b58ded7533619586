//! Log lines for programs: one JSON object each.

use std::fmt;
use std::io::{self, Write};
use std::time::SystemTime;

use mcpz_audit::{Escaping, rfc3339};
use serde::Serialize;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::layer::Context;

use super::NonBlocking;

/// Writes each event as a line.
pub struct Lines;

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let (message, fields) = read(event);
        let about = event.metadata();
        let line = line(*about.level(), about.target(), &message, fields);
        let _ = NonBlocking(io::stderr()).write_all(&line);
    }
}

/// The message of an event, and its other fields.
pub fn read(fields: &impl RecordFields) -> (String, Map<String, Value>) {
    let mut found = Fields::default();
    fields.record(&mut found);
    (found.message, found.others)
}

#[derive(Serialize)]
struct Line<'a> {
    time: String,
    level: &'static str,
    target: &'a str,
    message: &'a str,
    #[serde(skip_serializing_if = "Map::is_empty")]
    fields: Map<String, Value>,
}

/// An object and the end of its line. Control characters are escaped, so a terminal can show it.
pub fn line(level: Level, target: &str, message: &str, fields: Map<String, Value>) -> Vec<u8> {
    let (time, level) = (rfc3339(SystemTime::now()), level.as_str());
    let mut bytes = Vec::new();
    let mut json = serde_json::Serializer::with_formatter(&mut bytes, Escaping);
    // Cannot fail: there are only strings and numbers.
    let _ = Line { time, level, target, message, fields }.serialize(&mut json);
    bytes.push(b'\n');
    bytes
}

#[derive(Default)]
struct Fields {
    message: String,
    others: Map<String, Value>,
}

impl Fields {
    fn add(&mut self, field: &Field, value: impl Into<Value>) {
        match (field.name(), value.into()) {
            ("message", Value::String(text)) => self.message = text,
            (name, value) => drop(self.others.insert(name.to_owned(), value)),
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value);
    }
}
