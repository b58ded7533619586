//! Whether what a page shows is what there was, where `…` stands for anything.

use serde_json::Value;

const ANY: &str = "…";

/// Whether a text is as it is shown. Alone on a line, `…` stands for any number of lines.
pub fn shows(shown: &str, text: &str) -> bool {
    let lines =
        |text: &'_ str| text.trim_end().lines().map(|it| it.trim_end().to_owned()).collect();
    let (shown, text): (Vec<String>, Vec<String>) = (lines(shown), lines(text));
    lines_fit(&shown, &text)
}

fn lines_fit(shown: &[String], text: &[String]) -> bool {
    match shown.split_first() {
        None => text.is_empty(),
        Some((first, rest)) if first.trim() == ANY => {
            (0..=text.len()).any(|skipped| lines_fit(rest, &text[skipped..]))
        }
        Some((first, rest)) => text
            .split_first()
            .is_some_and(|(line, others)| fits(first, line) && lines_fit(rest, others)),
    }
}

/// Whether a text fits a pattern in which `…` stands for any text.
pub fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split(ANY);
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    true
}

/// A value as a page writes it: JSON in which `…` can stand for any value, and for other fields.
pub fn written(text: &str) -> Value {
    let (mut json, mut quoted, mut escaped) = (String::new(), false, false);
    for letter in text.chars() {
        match letter {
            '…' if !quoted && json.trim_end().ends_with([':', '[']) => json += "\"…\"",
            '…' if !quoted => json += "\"…\": \"…\"",
            letter => json.push(letter),
        }
        quoted ^= letter == '"' && !escaped;
        escaped = letter == '\\' && !escaped;
    }
    serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error} in {text}"))
}

/// Whether a value is as it is written.
pub fn agrees(written: &Value, value: &Value) -> bool {
    match (written, value) {
        (Value::String(any), _) if any == ANY => true,
        (Value::String(pattern), Value::String(text)) => fits(pattern, text),
        (Value::Array(written), Value::Array(_)) if *written == [ANY] => true,
        (Value::Array(written), Value::Array(values)) => {
            written.len() == values.len() && written.iter().zip(values).all(|(a, b)| agrees(a, b))
        }
        (Value::Object(written), Value::Object(values)) => {
            let named = |(name, one): (&String, &Value)| {
                name == ANY || values.get(name).is_some_and(|value| agrees(one, value))
            };
            let all =
                written.contains_key(ANY) || values.keys().all(|name| written.contains_key(name));
            all && written.iter().all(named)
        }
        (written, value) => written == value,
    }
}
