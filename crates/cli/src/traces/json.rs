//! Spans as OTLP has them in JSON.

use std::time::{SystemTime, UNIX_EPOCH};

use mcpz_server::{Attribute, Kind, Span};
use serde_json::{Value, json};

pub fn encode(resource: &[(String, String)], spans: &[Span]) -> Vec<u8> {
    let about: Vec<_> = resource.iter().map(|(key, value)| pair(key, text(value))).collect();
    let spans: Vec<_> = spans.iter().map(span).collect();
    let scope = json!({"name": "mcpz", "version": env!("CARGO_PKG_VERSION")});
    let all = json!({"resourceSpans": [{
        "resource": {"attributes": about},
        "scopeSpans": [{"scope": scope, "spans": spans}],
    }]});
    all.to_string().into_bytes()
}

fn span(span: &Span) -> Value {
    let attributes = span.attributes.iter().map(|(key, value)| pair(key, attribute(value)));
    let mut json = json!({
        "traceId": format!("{:032x}", span.place.trace),
        "spanId": format!("{:016x}", span.place.span),
        "name": span.name,
        "kind": kind(span.kind),
        "startTimeUnixNano": nanoseconds(span.start).to_string(),
        "endTimeUnixNano": nanoseconds(span.end).to_string(),
        "attributes": attributes.collect::<Vec<_>>(),
    });
    if let Some(parent) = span.parent {
        json["parentSpanId"] = format!("{parent:016x}").into();
    }
    if !span.place.state.is_empty() {
        json["traceState"] = span.place.state.as_str().into();
    }
    if let Some(message) = &span.failure {
        json["status"] = json!({"code": ERROR, "message": message});
    }
    json
}

fn pair(key: &str, value: Value) -> Value {
    json!({"key": key, "value": value})
}

fn text(text: &str) -> Value {
    json!({"stringValue": text})
}

fn attribute(value: &Attribute) -> Value {
    match value {
        Attribute::Text(said) => text(said),
        // Numbers of 64 bits are texts in this form.
        Attribute::Number(number) => json!({"intValue": number.to_string()}),
        Attribute::Seconds(time) => json!({"doubleValue": time.as_secs_f64()}),
        Attribute::Yes => json!({"boolValue": true}),
    }
}

/// The status of a span that failed.
pub const ERROR: u8 = 2;

pub fn kind(kind: Kind) -> u8 {
    match kind {
        Kind::Server => 2,
        Kind::Client => 3,
    }
}

pub fn nanoseconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}
