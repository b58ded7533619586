//! The settings of traces, from OpenTelemetry's environment variables.
//!
//! Error messages never show headers: they contain secrets.

use std::time::Duration;

use hyper::Uri;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
const DEFAULT_DELAY: Duration = Duration::from_secs(5);
const DEFAULT_NAME: &str = "mcpz";

const DELAY: &str = "OTEL_BSP_SCHEDULE_DELAY";

/// The path of traces below an endpoint for all signals.
const PATH: &str = "v1/traces";

#[derive(Debug)]
pub struct Settings {
    pub endpoint: Uri,
    /// The variable that asks for `http/json`, which mcpz does not send.
    pub json_variable: Option<&'static str>,
    pub headers: HeaderMap,
    /// How long a collector may take to answer.
    pub timeout: Duration,
    /// How long a span waits for others to fill the batch.
    pub delay: Duration,
    /// The attributes of this server.
    pub resource: Vec<(String, String)>,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    #[error("{name} is `{value}`, but must be a URL such as http://localhost:4318")]
    Endpoint { name: &'static str, value: String },
    #[error(
        "{name} is `{value}`, but must be http/protobuf; change it, and set the endpoint to the collector's \
         HTTP port, usually 4318"
    )]
    Protocol { name: &'static str, value: String },
    #[error("{name} is `{value}`, but must be a number of milliseconds")]
    Time { name: &'static str, value: String },
    #[error("{name} must look like api-key=…,other=…, but item {number} is not a header")]
    Header { name: &'static str, number: usize },
}

impl Settings {
    /// Returns nothing if the environment does not ask for traces.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, SettingsError> {
        let is = |name, expected: &str| {
            variable(name).is_some_and(|value| value.eq_ignore_ascii_case(expected))
        };
        if is("OTEL_SDK_DISABLED", "true") || is("OTEL_TRACES_EXPORTER", "none") {
            return Ok(None);
        }
        // A variable for traces has precedence over one for all signals.
        let first = |names: [&'static str; 2]| {
            names.into_iter().find_map(|name| Some((name, variable(name)?)))
        };
        let endpoints = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];
        let Some((name, value)) = first(endpoints) else { return Ok(None) };
        let url = match name == endpoints[0] {
            true => value.clone(),
            false => format!("{}/{PATH}", value.trim_end_matches('/')),
        };
        let is_http = |uri: &Uri| matches!(uri.scheme_str(), Some("http" | "https"));
        let endpoint =
            url.parse().ok().filter(is_http).ok_or(SettingsError::Endpoint { name, value })?;
        let protocols = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"];
        let json_variable = match first(protocols) {
            None => None,
            Some((_, value)) if value == "http/protobuf" => None,
            Some((name, value)) if value == "http/json" => Some(name),
            Some((name, value)) => return Err(SettingsError::Protocol { name, value }),
        };
        let headers = first(["OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"]);
        let timeout = first(["OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"]);
        let delay = variable(DELAY).map(|value| (DELAY, value));
        Ok(Some(Self {
            endpoint,
            json_variable,
            headers: headers.map_or_else(|| Ok(HeaderMap::new()), read_headers)?,
            timeout: milliseconds(timeout, DEFAULT_TIMEOUT)?,
            delay: milliseconds(delay, DEFAULT_DELAY)?,
            resource: resource(variable("OTEL_SERVICE_NAME"), variable("OTEL_RESOURCE_ATTRIBUTES")),
        }))
    }
}

fn milliseconds(
    given: Option<(&'static str, String)>,
    default: Duration,
) -> Result<Duration, SettingsError> {
    let Some((name, value)) = given else { return Ok(default) };
    let number = value.parse().map_err(|_| SettingsError::Time { name, value })?;
    Ok(Duration::from_millis(number))
}

fn read_headers((name, list): (&'static str, String)) -> Result<HeaderMap, SettingsError> {
    let mut headers = HeaderMap::new();
    for (number, pair) in pairs(&list).into_iter().enumerate() {
        let header = pair.and_then(|(key, value)| {
            let mut value = HeaderValue::from_str(&value).ok()?;
            value.set_sensitive(true);
            Some((key.parse::<HeaderName>().ok()?, value))
        });
        let (key, value) = header.ok_or(SettingsError::Header { name, number: number + 1 })?;
        headers.append(key, value);
    }
    Ok(headers)
}

/// The names and values of a list with commas, or nothing for an item that is not such a pair.
pub fn pairs(list: &str) -> Vec<Option<(String, String)>> {
    let parts = list.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let (name, value) = part.split_once('=')?;
            Some((decoded(name.trim())?, decoded(value.trim())?))
        })
        .collect()
}

/// Decodes escapes such as `%2C`.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, others @ ..] = rest {
        let code = others.get(..2).and_then(|code| std::str::from_utf8(code).ok());
        match code.filter(|_| *first == b'%').and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &others[2..];
            }
            None => {
                bytes.push(*first);
                rest = others;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

fn resource(name: Option<String>, attributes: Option<String>) -> Vec<(String, String)> {
    let mut all: Vec<_> = pairs(&attributes.unwrap_or_default()).into_iter().flatten().collect();
    let mut add = |key: &str, value: String| {
        if !all.iter().any(|(known, _)| known == key) {
            all.push((key.to_owned(), value));
        }
    };
    add("service.name", DEFAULT_NAME.to_owned());
    add("service.version", env!("CARGO_PKG_VERSION").to_owned());
    add("process.pid", std::process::id().to_string());
    add("telemetry.sdk.name", "mcpz".to_owned());
    add("telemetry.sdk.language", "rust".to_owned());
    add("telemetry.sdk.version", env!("CARGO_PKG_VERSION").to_owned());
    for (key, value) in &mut all {
        if let (Some(name), "service.name") = (&name, key.as_str()) {
            value.clone_from(name);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Option<Settings>, SettingsError> {
        Settings::read(|name| {
            let (_, value) = variables.iter().find(|(known, _)| *known == name)?;
            Some(value.to_string())
        })
    }

    const HERE: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318/");

    #[test]
    fn without_an_endpoint_or_where_it_is_turned_off_there_is_nothing() {
        for variables in [
            &[][..],
            &[("OTEL_SERVICE_NAME", "x")],
            &[HERE, ("OTEL_SDK_DISABLED", "TRUE")],
            &[HERE, ("OTEL_TRACES_EXPORTER", "none")],
        ] {
            assert!(read(variables).unwrap().is_none(), "{variables:?}");
        }
    }

    #[test]
    fn an_endpoint_for_everything_has_a_path_for_traces_and_one_for_traces_is_taken_as_it_is() {
        let settings = read(&[HERE]).unwrap().unwrap();
        assert_eq!(settings.endpoint, "http://localhost:4318/v1/traces");
        assert_eq!((settings.json_variable, settings.timeout.as_secs()), (None, 10));
        let traces = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://example.org/x?y");
        assert_eq!(read(&[HERE, traces]).unwrap().unwrap().endpoint, traces.1);
    }

    #[test]
    fn the_variable_that_asks_for_json_is_named() {
        let all = ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json");
        let traces = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json");
        let named = |variables: &[_]| read(variables).unwrap().unwrap().json_variable;
        assert_eq!(named(&[HERE, all]), Some(all.0));
        assert_eq!(named(&[HERE, all, traces]), Some(traces.0));
        assert_eq!(named(&[HERE, all, (traces.0, "http/protobuf")]), None);
    }

    #[test]
    fn headers_and_attributes_are_lists_with_escapes() {
        let headers = ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%2Cb, authorization=Basic%20eA==,");
        let about = ("OTEL_RESOURCE_ATTRIBUTES", "a.b=c%20d,service.name=x");
        let settings = read(&[HERE, headers, about]).unwrap().unwrap();
        assert_eq!(settings.headers["api-key"], "a,b");
        assert_eq!(settings.headers["authorization"], "Basic eA==");
        let says = |settings: &Settings, key: &str| {
            let found = settings.resource.iter().filter(|(known, _)| known == key);
            found.map(|(_, value)| value.clone()).collect::<Vec<_>>()
        };
        assert_eq!(says(&settings, "a.b"), ["c d"]);
        assert_eq!(says(&settings, "service.name"), ["x"]);
        let named = read(&[HERE, about, ("OTEL_SERVICE_NAME", "y")]).unwrap().unwrap();
        assert_eq!(says(&named, "service.name"), ["y"]);
        assert_eq!(says(&read(&[HERE]).unwrap().unwrap(), "service.name"), ["mcpz"]);
    }

    #[test]
    fn what_cannot_be_used_is_said_without_secrets() {
        for (variable, expected) in [
            (
                ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "localhost:4317"),
                "such as http://localhost:4318",
            ),
            (("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"), "`grpc`, but must be http/protobuf"),
            (("OTEL_EXPORTER_OTLP_TIMEOUT", "10s"), "`10s`, but must be a number of milliseconds"),
            (("OTEL_EXPORTER_OTLP_HEADERS", "a=b,hunter22"), "item 2 is not a header"),
        ] {
            let said = read(&[HERE, variable]).unwrap_err().to_string();
            assert!(said.contains(variable.0) && said.contains(expected), "{said}");
            assert!(!said.contains("hunter22"), "{said}");
        }
    }
}
