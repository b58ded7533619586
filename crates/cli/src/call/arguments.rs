//! The arguments of a tool, typed as `key=value` and converted to the types in the tool's schema.

use serde_json::{Map, Value};

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentError {
    #[error("`{0}` is not an argument; write it as KEY=VALUE")]
    NoValue(String),
    #[error("`{value}` is not a valid `{key}`; expected type {kind}")]
    WrongKind { key: String, value: String, kind: String },
}

/// Parses `words` by the tool's input schema. An argument that the schema does not have is passed on as text,
/// so that the tool reports it.
pub fn parse(
    words: &[String],
    schema: &Map<String, Value>,
) -> Result<Map<String, Value>, ArgumentError> {
    let mut arguments = Map::new();
    for word in words {
        let Some((key, value)) = word.split_once('=') else {
            return Err(ArgumentError::NoValue(word.clone()));
        };
        match key.split_once('.') {
            Some((object, name)) if kind_of(object, schema) == "object" => {
                let object = arguments.entry(object).or_insert_with(|| Map::new().into());
                if let Value::Object(object) = object {
                    object.insert(name.to_owned(), value.into());
                }
            }
            _ => {
                arguments.insert(key.to_owned(), value_of(key, value, schema)?);
            }
        }
    }
    Ok(arguments)
}

fn value_of(key: &str, text: &str, schema: &Map<String, Value>) -> Result<Value, ArgumentError> {
    let kind = kind_of(key, schema);
    if kind == "string" {
        return Ok(text.into());
    }
    match serde_json::from_str::<Value>(text) {
        Ok(value) if fits(&value, kind) => Ok(value),
        _ => Err(ArgumentError::WrongKind {
            key: key.to_owned(),
            value: text.to_owned(),
            kind: kind.to_owned(),
        }),
    }
}

fn kind_of<'a>(key: &str, schema: &'a Map<String, Value>) -> &'a str {
    let property = schema.get("properties").and_then(|properties| properties.get(key));
    property.and_then(|property| property.get("type")).and_then(Value::as_str).unwrap_or("string")
}

fn fits(value: &Value, kind: &str) -> bool {
    match kind {
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse_words(words: &[&str]) -> Result<Value, ArgumentError> {
        let schema = json!({"properties": {
            "command": {"type": "string"},
            "timeout": {"type": "number"},
            "environment": {"type": "object"},
            "background": {"type": "boolean"},
        }});
        let words: Vec<_> = words.iter().map(ToString::to_string).collect();
        parse(&words, schema.as_object().unwrap()).map(Value::from)
    }

    #[test]
    fn the_schema_says_what_a_value_is() {
        let words = ["command=echo 1=1", "timeout=2.5", "background=true", "other=5"];
        let expected =
            json!({"command": "echo 1=1", "timeout": 2.5, "background": true, "other": "5"});
        assert_eq!(parse_words(&words), Ok(expected));
    }

    #[test]
    fn a_variable_is_set_with_a_dot() {
        let words = ["environment.A=1", "environment.B=x=y"];
        assert_eq!(parse_words(&words), Ok(json!({"environment": {"A": "1", "B": "x=y"}})));
        assert_eq!(
            parse_words(&[r#"environment={"A":"1"}"#]),
            Ok(json!({"environment": {"A": "1"}}))
        );
    }

    #[test]
    fn what_does_not_fit_is_said() {
        let wrong = parse_words(&["timeout=soon"]).unwrap_err();
        assert_eq!(wrong.to_string(), "`soon` is not a valid `timeout`; expected type number");
        assert_eq!(parse_words(&["ls"]), Err(ArgumentError::NoValue("ls".into())));
    }
}
