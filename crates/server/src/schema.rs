//! JSON schemas in a form that every client understands.
//!
//! The derived schemas are correct, but some clients fail on unions with `null` and on number formats they do not know,
//! and a model reads every byte.

use std::sync::Arc;

use rmcp::model::JsonObject;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::Value;

/// The schema of `T` as one object, without references.
pub fn schema<T: JsonSchema>() -> Arc<JsonObject> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    schema.remove("description");
    schemars::transform::transform_subschemas(&mut simplify, &mut schema);
    match schema.to_value() {
        Value::Object(object) => Arc::new(object),
        _ => unreachable!("a struct has an object for a schema"),
    }
}

fn simplify(schema: &mut Schema) {
    schema.remove("format");
    if schema.get("minimum").and_then(Value::as_f64) == Some(0.0) {
        schema.remove("minimum");
    }
    // A flag is false unless it is set: nothing new.
    if schema.get("default") == Some(&Value::Bool(false)) {
        schema.remove("default");
    }
    // The most a type can hold is not a limit that makes sense.
    if schema.get("maximum").and_then(Value::as_u64) == Some(u64::from(u16::MAX)) {
        schema.remove("maximum");
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    schemars::transform::transform_subschemas(&mut simplify, schema);
}
