//! Spans as OTLP has them in Protocol Buffers.
//!
//! A message is a list of fields, each a number with a kind and a value. Those we need are few, and
//! never change: a library for all that can be said that way would be longer than this.

use std::time::{SystemTime, UNIX_EPOCH};

use mcpz_server::{Attribute, Kind, Span};

/// The status of a span that failed.
const ERROR: u64 = 2;

pub fn encode(resource: &[(String, String)], spans: &[Span]) -> Vec<u8> {
    let all = Message::default().inner(1, |group| {
        let group = group.inner(1, |about| {
            resource.iter().fold(about, |about, (key, value)| {
                about.inner(1, |pair| pair.text(1, key).inner(2, |inner| inner.text(1, value)))
            })
        });
        group.inner(2, |scope| {
            let scope =
                scope.inner(1, |scope| scope.text(1, "mcpz").text(2, env!("CARGO_PKG_VERSION")));
            spans.iter().fold(scope, |scope, span| scope.inner(2, |message| fill(message, span)))
        })
    });
    all.0
}

fn fill(message: Message, span: &Span) -> Message {
    let message = message
        .bytes(1, &span.place.trace.to_be_bytes())
        .bytes(2, &span.place.span.to_be_bytes())
        .text(3, &span.place.state);
    let message = match span.parent {
        Some(parent) => message.bytes(4, &parent.to_be_bytes()),
        None => message,
    };
    let message = message
        .text(5, &span.name)
        .number(6, kind(span.kind))
        .fixed(7, nanoseconds(span.start))
        .fixed(8, nanoseconds(span.end));
    let message = span.attributes.iter().fold(message, |message, (key, value)| {
        message.inner(9, |pair| pair.text(1, key).inner(2, |inner| attribute(inner, value)))
    });
    match &span.failure {
        Some(words) => message.inner(15, |status| status.text(2, words).number(3, ERROR)),
        None => message,
    }
}

fn attribute(message: Message, value: &Attribute) -> Message {
    match value {
        Attribute::Text(text) => message.text(1, text),
        Attribute::Yes => message.number(2, 1),
        Attribute::Number(number) => message.number(3, *number as u64),
        Attribute::Seconds(time) => message.fixed(4, time.as_secs_f64().to_bits()),
    }
}

fn kind(kind: Kind) -> u64 {
    match kind {
        Kind::Server => 2,
        Kind::Client => 3,
    }
}

fn nanoseconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}

/// How the value of a field is written.
const VARIABLE: u64 = 0;
const FIXED: u64 = 1;
const COUNTED: u64 = 2;

#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    /// Seven bits a byte, the lowest first.
    fn variable(mut self, mut number: u64) -> Self {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
        self
    }

    fn number(self, field: u64, number: u64) -> Self {
        self.variable(field << 3 | VARIABLE).variable(number)
    }

    fn fixed(self, field: u64, number: u64) -> Self {
        let mut message = self.variable(field << 3 | FIXED);
        message.0.extend(number.to_le_bytes());
        message
    }

    fn bytes(self, field: u64, bytes: &[u8]) -> Self {
        let mut message = self.variable(field << 3 | COUNTED).variable(bytes.len() as u64);
        message.0.extend(bytes);
        message
    }

    fn text(self, field: u64, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    fn inner(self, field: u64, fill: impl FnOnce(Self) -> Self) -> Self {
        self.bytes(field, &fill(Self::default()).0)
    }
}
