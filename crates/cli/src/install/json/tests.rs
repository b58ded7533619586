//! Whatever a file looks like: what is put in comes out again, and nothing else changes.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::document::{Format, Location};

const LOCATION: Location<'_> =
    Location { format: Format::Json, table: "mcpServers", name: "shell" };

/// What may stand between any two things.
fn gap() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        4 => Just(""), 3 => Just(" "), 2 => Just("\n  "), 1 => Just("\r\n\t"), 1 => Just("\n"),
        1 => Just(" // a, \"b\": }\n"), 1 => Just("/* c, */"), 1 => Just("/* d\n { */ "),
    ];
    proptest::collection::vec(part, 0..3).prop_map(|parts| parts.concat())
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{1,3}", Just("mcpServers".to_owned()), Just("é\\n\\\"".to_owned())]
}

fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("1".to_owned()),
        Just("-2.5e3".to_owned()),
        Just("null".to_owned()),
        Just("\"x // y, /* \\\" }\"".to_owned()),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        let list = (proptest::collection::vec((gap(), inner.clone(), gap()), 0..3), gap());
        let list = list.prop_map(|(items, end)| {
            let items: Vec<_> = items.iter().map(|(a, b, c)| format!("{a}{b}{c}")).collect();
            format!("[{}{end}]", items.join(","))
        });
        prop_oneof![list, members(inner)]
    })
}

fn members(inner: impl Strategy<Value = String> + 'static) -> impl Strategy<Value = String> {
    let member = (gap(), key(), gap(), gap(), inner, gap());
    let members = proptest::collection::btree_map(key(), member, 0..4);
    (members, any::<bool>(), gap()).prop_map(|(members, trailing, end)| {
        let some = !members.is_empty();
        let members: Vec<_> = members
            .iter()
            .map(|(name, (a, _, b, c, value, d))| format!("{a}\"{name}\"{b}:{c}{value}{d}"))
            .collect();
        format!("{{{}{}{end}}}", members.join(","), if trailing && some { "," } else { "" })
    })
}

/// A document whose table is not there, or a table, with servers or without.
fn document() -> impl Strategy<Value = String> {
    let table = prop_oneof![Just(None), members(value()).prop_map(Some)];
    (gap(), members(value()), table, gap(), gap()).prop_map(
        |(before, rest, table, inner, after)| {
            let rest = rest.replace("\"mcpServers\"", "\"others\"");
            let table = table.map(|table| {
                let comma = if rest[1..].trim_start().starts_with('"') { "," } else { "" };
                // Remarks may come first; then there is no telling, and no table.
                match rest[1..].trim_start().starts_with(['"', '}']) {
                    true => format!("{{{inner}\"mcpServers\":{table}{comma}{}", &rest[1..]),
                    false => rest.clone(),
                }
            });
            format!("{before}{}{after}", table.unwrap_or(rest))
        },
    )
}

fn is_hollow(text: &str) -> bool {
    matches!(super::read(text).unwrap().get("mcpServers"), Some(Value::Object(all)) if all.is_empty())
}

fn squeezed(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_put_in_comes_out_again(text in document()) {
        prop_assume!(super::read(&text).is_ok());
        let had_table = super::read(&text).unwrap().get("mcpServers").is_some();
        let entry = json!({"command": "/bin/mcpz", "args": ["server", "shell"]});
        let with = match LOCATION.add(&text, &entry) {
            Ok(with) => with,
            Err(error) => panic!("{error}: {text:?}"),
        };
        let read = super::read(&with).unwrap();
        prop_assert_eq!(&read["mcpServers"]["shell"], &entry);
        let without = LOCATION.remove(&with, had_table).unwrap();
        // An empty table does not tell what space it had in it.
        if super::read(&text).unwrap() == json!({}) || is_hollow(&text) {
            prop_assert_eq!(squeezed(&without), squeezed(&text));
        } else {
            prop_assert_eq!(without, text);
        }
    }

    #[test]
    fn every_remark_stays(text in document()) {
        prop_assume!(super::read(&text).is_ok());
        let with = LOCATION.add(&text, &json!({"command": "x"})).unwrap();
        for remark in ["// a, \"b\": }", "/* c, */", "/* d\n { */"] {
            prop_assert_eq!(with.matches(remark).count(), text.matches(remark).count());
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in "[{}\\[\\]\":,/* \n\\\\a1]{0,40}") {
        if let Ok(with) = LOCATION.add(&text, &json!({"command": "x"})) {
            prop_assert!(LOCATION.remove(&with, false).is_ok());
        }
    }
}

#[test]
fn a_comment_stays_with_what_it_is_about() {
    let text = "{\n  \"a\": 1 // of a\n  // of the end\n}\n";
    let with = LOCATION.add(text, &json!({"command": "x"})).unwrap();
    assert_eq!(
        with,
        "{\n  \"a\": 1, // of a\n  \"mcpServers\": {\n    \"shell\": {\n      \"command\": \"x\"\n    }\n  \
         }\n  // of the end\n}\n"
    );
}

#[test]
fn line_ends_and_indentation_are_those_of_the_file() {
    for (end, indent) in [("\n", "\t"), ("\r\n", "    "), ("\r", " ")] {
        let write = |text: &str| text.replace('\n', end).replace('\t', indent);
        for (before, after) in [
            (
                "{\n\t\"a\": 1\n}\n",
                "{\n\t\"a\": 1,\n\t\"mcpServers\": {\n\t\t\"shell\": {}\n\t}\n}\n",
            ),
            (
                "{\n\t/* of it */ \"mcpServers\": {}\n}\n",
                "{\n\t/* of it */ \"mcpServers\": {\n\t\t\"shell\": {}\n\t}\n}\n",
            ),
        ] {
            let with = LOCATION.add(&write(before), &json!({})).unwrap();
            assert_eq!(with, write(after));
        }
    }
}

#[test]
fn what_would_be_a_guess_is_refused() {
    let refused = [
        "{\"mcpServers\": {}, \"mcpServers\": {}}",
        "{\"mcpServers\": {\"shell\": 1, \"shell\": 2}}",
        "{\"mcpServers\": {\"shell\": 1, \"\\u0073hell\": 2}}",
        "{\"mcpServers\": null}",
        "[]",
        "// alone",
    ];
    for text in refused {
        assert!(LOCATION.add(text, &json!({})).is_err(), "{text}");
    }
}
