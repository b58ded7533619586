//! Which values of variables and settings are secret.
//!
//! Commands get secret variables, because many could not work without them; their values are masked in what
//! commands print. A variable counts as secret by its name.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use mcpz_output::Secrets;

use crate::traces::pairs;

/// Parts of names of secrets.
const PARTS: &[&str] =
    &["TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "API_KEY", "APIKEY"];

/// Endings of names of secrets.
const ENDINGS: &[&str] = &["_KEY", "_PASS", "_PWD"];

/// The name shown in place of a token from the configuration file. Its own name would tell who has it.
const TOKENS: &str = "http.tokens";

/// The values of all variables that sound secret or are listed in `others`, and of `tokens`.
pub fn find(variables: &[(OsString, OsString)], others: &[String], tokens: &[String]) -> Secrets {
    let mut named: Vec<_> = variables
        .iter()
        .filter_map(|(name, value)| Some((name.to_str()?, value)))
        .filter(|(name, value)| others.iter().any(|other| other == name) || is_secret(name, value))
        .collect();
    named.sort();
    let headers: Vec<_> =
        variables.iter().filter_map(|(name, value)| headers(name, value)).collect();
    let headers = headers
        .iter()
        .flat_map(|(name, values)| values.iter().map(move |value| (*name, value.as_bytes())));
    let named = named.into_iter().map(|(name, value)| (name, value.as_bytes()));
    let tokens = tokens.iter().map(|token| (TOKENS, token.as_bytes()));
    Secrets::new(named.chain(headers).chain(tokens))
}

/// Whether a variable holds headers for a telemetry collector, which may authenticate us there.
pub fn is_headers(name: &str) -> bool {
    name.starts_with("OTEL_EXPORTER_OTLP_") && name.ends_with("HEADERS")
}

/// The secrets in such headers: the whole list, and the value of each header that authenticates, with and
/// without its scheme, as in `Bearer abc`.
fn headers<'a>(name: &'a OsStr, list: &OsStr) -> Option<(&'a str, Vec<String>)> {
    let name = name.to_str().filter(|name| is_headers(name))?;
    let list = list.to_str()?;
    let authenticates = |header: &str| {
        let header = header.trim().to_ascii_lowercase();
        header.ends_with("authorization") || sounds_secret(&header.replace('-', "_"))
    };
    let known = pairs(list).into_iter().flatten();
    let known = known.filter(|(header, _)| authenticates(header)).map(|(_, value)| value);
    let raw = list.split(',').filter_map(|pair| pair.split_once('='));
    let raw = raw.filter(|(header, _)| authenticates(header)).map(|(_, value)| value.to_owned());
    let values: Vec<_> = known.chain(raw).collect();
    let bare: Vec<_> =
        values.iter().filter_map(|value| Some(value.split_once(' ')?.1.to_owned())).collect();
    Some((name, [vec![list.to_owned()], values, bare].concat()))
}

fn is_secret(name: &str, value: &OsStr) -> bool {
    let counted = name.to_ascii_uppercase();
    sounds_secret(name) && !is_path(value) && !is_count(&counted, value)
}

fn sounds_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    name == "KEY"
        || PARTS.iter().any(|part| name.contains(part))
        || ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Whether a value is the path of a secret, not the secret: `GOOGLE_APPLICATION_CREDENTIALS=/home/me/key.json`.
fn is_path(value: &OsStr) -> bool {
    Path::new(value).is_absolute() && Path::new(value).exists()
}

/// Whether a value is a number of tokens: `MAX_OUTPUT_TOKENS=128000`.
fn is_count(name: &str, value: &OsStr) -> bool {
    name.contains("TOKENS") && value.as_bytes().iter().all(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_told_by_their_names() {
        for name in [
            "GITHUB_TOKEN",
            "MCP_HTTP_TOKEN",
            "aws_secret_access_key",
            "PGPASSWORD",
            "Db_Passwd",
            "SSH_PASSPHRASE",
            "AZURE_CREDENTIALS",
            "OPENAI_API_KEY",
            "APIKEYS",
            "KEY",
            "MYSQL_PWD",
            "SMTP_PASS",
        ] {
            assert!(is_secret(name, "something".as_ref()), "{name}");
        }
        for name in ["PATH", "PWD", "OLDPWD", "SSH_AUTH_SOCK", "KEYBOARD", "MONKEY", "COMPASS"] {
            assert!(!is_secret(name, "something".as_ref()), "{name}");
        }
    }

    #[test]
    fn of_headers_only_those_are_secret_that_let_us_in() {
        let list = "x-scope=frontend,Authorization=Bearer%20letmein,x-api-key=opensesame";
        let (name, values) = headers("OTEL_EXPORTER_OTLP_HEADERS".as_ref(), list.as_ref()).unwrap();
        assert_eq!(name, "OTEL_EXPORTER_OTLP_HEADERS");
        for secret in [list, "Bearer letmein", "Bearer%20letmein", "letmein", "opensesame"] {
            assert!(values.iter().any(|value| value == secret), "{secret}: {values:?}");
        }
        assert!(!values.iter().any(|value| value == "frontend"), "{values:?}");
    }

    #[test]
    fn places_and_counts_are_no_secrets() {
        assert!(!is_secret("GOOGLE_APPLICATION_CREDENTIALS", "/etc/passwd".as_ref()));
        assert!(is_secret("DB_PASSWORD", "/not/a/place".as_ref()));
        assert!(!is_secret("MAX_OUTPUT_TOKENS", "128000".as_ref()));
        assert!(is_secret("FOO_TOKEN", "128000".as_ref()));
    }
}
