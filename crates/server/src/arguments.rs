//! Which argument of a call is wrong, and what it should be.
//!
//! Deserializing only says that some type was expected somewhere. The schema that the client has says where.

use mcpz_output::{Room, shorten};
use rmcp::model::JsonObject;
use serde_json::{Number, Value};

/// How much of a wrong value a message repeats.
const REPEATED: Room = Room::bytes(60);

/// Makes integers of numbers without a fraction: some models write `30.0` for an integer.
pub fn make_whole(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(whole) = number.as_f64().filter(|_| number.is_f64()).and_then(whole) {
                *number = whole;
            }
        }
        Value::Array(values) => values.iter_mut().for_each(make_whole),
        Value::Object(fields) => fields.values_mut().for_each(make_whole),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

fn whole(number: f64) -> Option<Number> {
    let exact = number.fract() == 0.0 && number.abs() < 9e15;
    exact.then(|| Number::from(number as i64))
}

/// An argument that does not fit the schema.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mistake {
    #[error("`{path}` must be {wanted}, not {value}")]
    Wrong { path: String, wanted: String, value: String },
    #[error("unknown field `{name}`, expected one of {known}")]
    Unknown { name: String, known: String },
}

/// The first argument that does not fit the schema.
pub fn find_mistake(arguments: &JsonObject, schema: &JsonObject) -> Option<Mistake> {
    let properties = schema.get("properties")?.as_object()?;
    let wrong = |(name, value): (&String, &Value)| find(name, value, properties.get(name)?);
    arguments.iter().find_map(wrong).or_else(|| {
        let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
        let unknown = arguments.keys().find(|name| closed && !properties.contains_key(*name))?;
        let known: Vec<_> = properties.keys().map(|name| format!("`{name}`")).collect();
        if known.is_empty() {
            return None;
        }
        let name = shorten(unknown, REPEATED).into_owned();
        Some(Mistake::Unknown { name, known: known.join(", ") })
    })
}

fn find(path: &str, value: &Value, schema: &Value) -> Option<Mistake> {
    let wanted = schema.get("type").and_then(Value::as_str).unwrap_or_default();
    let wrong = |wanted: &str| {
        let (path, wanted) = (path.to_owned(), wanted.to_owned());
        Some(Mistake::Wrong { path, wanted, value: shorten(&value.to_string(), REPEATED).into() })
    };
    if let Some(Value::Array(known)) = schema.get("enum")
        && !known.contains(value)
    {
        let known: Vec<_> = known.iter().map(ToString::to_string).collect();
        return wrong(&format!("one of {}", known.join(", ")));
    }
    match (wanted, value) {
        ("string", Value::String(_))
        | ("boolean", Value::Bool(_))
        | ("number", Value::Number(_)) => None,
        ("integer", Value::Number(number)) if number.is_u64() => None,
        ("integer", Value::Number(number)) if number.is_i64() => {
            let least = schema.get("minimum").and_then(Value::as_u64).unwrap_or(0);
            wrong(&format!("{least} or more"))
        }
        ("array", Value::Array(values)) => values
            .iter()
            .enumerate()
            .find_map(|(at, value)| find(&format!("{path}[{at}]"), value, schema.get("items")?)),
        ("object", Value::Object(fields)) => fields.iter().find_map(|(name, value)| {
            let known = schema.get("properties").and_then(|known| known.get(name));
            find(&format!("{path}.{name}"), value, known.or(schema.get("additionalProperties"))?)
        }),
        ("string", _) => wrong("a string"),
        ("boolean", _) => wrong("true or false"),
        ("number", _) => wrong("a number"),
        ("integer", _) => wrong("a whole number"),
        ("array", _) => wrong("a list"),
        ("object", _) => wrong("an object"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> JsonObject {
        match value {
            Value::Object(object) => object,
            _ => panic!("an object"),
        }
    }

    #[test]
    fn a_number_without_a_fraction_is_whole() {
        let mut value = json!({"a": 30.0, "b": [1.5, 2.0], "c": {"d": -3.0}, "e": 1e300});
        make_whole(&mut value);
        assert_eq!(value, json!({"a": 30, "b": [1.5, 2], "c": {"d": -3}, "e": 1e300}));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_path_and_what_it_should_be() {
        let schema = object(json!({"additionalProperties": false, "properties": {
            "timeout": {"type": "integer"}, "size": {"type": "integer", "minimum": 1},
            "args": {"type": "array", "items": {"type": "string"}},
            "env": {"type": "object", "additionalProperties": {"type": "string"}},
            "mode": {"type": "string", "enum": ["a", "b"]}, "on": {"type": "boolean"},
        }}));
        for (arguments, expected) in [
            (json!({"timeout": "5"}), Some("`timeout` must be a whole number, not \"5\"")),
            (json!({"timeout": -5}), Some("`timeout` must be 0 or more, not -5")),
            (json!({"size": -1}), Some("`size` must be 1 or more, not -1")),
            (json!({"timeout": 1.5}), Some("`timeout` must be a whole number, not 1.5")),
            (json!({"args": ["x", 2]}), Some("`args[1]` must be a string, not 2")),
            (json!({"env": {"A": 1}}), Some("`env.A` must be a string, not 1")),
            (json!({"mode": "c"}), Some("`mode` must be one of \"a\", \"b\", not \"c\"")),
            (json!({"on": "yes"}), Some("`on` must be true or false, not \"yes\"")),
            (
                json!({"timeout": 5, "mod": "a"}),
                Some(
                    "unknown field `mod`, expected one of `timeout`, `size`, `args`, `env`, `mode`, `on`",
                ),
            ),
            (json!({"timeout": 5, "args": ["x"], "env": {}, "mode": "a", "on": true}), None),
        ] {
            let found = find_mistake(&object(arguments), &schema).map(|found| found.to_string());
            assert_eq!(found.as_deref(), expected);
        }
    }
}
