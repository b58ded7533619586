//! Encodes spans as OTLP's `ExportTraceServiceRequest`, in Protocol Buffers.
//!
//! The numbers are those of the fields in `opentelemetry/proto/trace/v1/trace.proto` and the files it imports.
//! They never change and we need few of them, so this is shorter than generated code and a library for it.

use std::time::{SystemTime, UNIX_EPOCH};

use mcpz_server::{Attribute, Kind, Span};

/// The status code of a span that failed.
const STATUS_ERROR: u64 = 2;

pub fn encode(resource: &[(String, String)], spans: &[Span]) -> Vec<u8> {
    let request = Message::default().message(1, |resource_spans| {
        let resource_spans = resource_spans.message(1, |attributes| {
            resource.iter().fold(attributes, |attributes, (key, value)| {
                attributes.message(1, |pair| pair.text(1, key).message(2, |any| any.text(1, value)))
            })
        });
        resource_spans.message(2, |scope_spans| {
            let scope_spans = scope_spans
                .message(1, |scope| scope.text(1, "mcpz").text(2, env!("CARGO_PKG_VERSION")));
            spans.iter().fold(scope_spans, |scope_spans, span| {
                scope_spans.message(2, |message| write_span(message, span))
            })
        })
    });
    request.0
}

fn write_span(message: Message, span: &Span) -> Message {
    let message = message
        .bytes(1, &span.ids.trace.to_be_bytes())
        .bytes(2, &span.ids.span.to_be_bytes())
        .text(3, &span.ids.state);
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
        message.message(9, |pair| pair.text(1, key).message(2, |any| write_value(any, value)))
    });
    match &span.failure {
        Some(text) => message.message(15, |status| status.text(2, text).number(3, STATUS_ERROR)),
        None => message,
    }
}

fn write_value(message: Message, value: &Attribute) -> Message {
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

/// The wire types: how the value of a field is encoded.
const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const LENGTH_DELIMITED: u64 = 2;

#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    /// Seven bits per byte, the lowest first.
    fn varint(mut self, mut number: u64) -> Self {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
        self
    }

    fn number(self, field: u64, number: u64) -> Self {
        self.varint(field << 3 | VARINT).varint(number)
    }

    fn fixed(self, field: u64, number: u64) -> Self {
        let mut message = self.varint(field << 3 | FIXED64);
        message.0.extend(number.to_le_bytes());
        message
    }

    fn bytes(self, field: u64, bytes: &[u8]) -> Self {
        let mut message = self.varint(field << 3 | LENGTH_DELIMITED).varint(bytes.len() as u64);
        message.0.extend(bytes);
        message
    }

    fn text(self, field: u64, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    fn message(self, field: u64, fill: impl FnOnce(Self) -> Self) -> Self {
        self.bytes(field, &fill(Self::default()).0)
    }
}
