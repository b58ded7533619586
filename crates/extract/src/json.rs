//! JSON: one value, or JSON lines as an array, perhaps with other lines before. [`shrink`] leaves elements out until
//! a value fits, and says how many.

mod exact;

use std::io::{self, Read};

use serde_json::{Deserializer, Value};

use crate::answer::{Extracted, Hint, NotFound};
use crate::input::{Input, clean};
use crate::room;
use exact::Exact;

/// Larger outputs are refused: a parsed value takes several times the room of its text.
const LARGEST: usize = 32 << 20;
/// How many places are tried where JSON may begin after other lines.
const TRIES: usize = 16;

/// All of the JSON that was printed, and what has to be said about it.
#[derive(Debug)]
pub struct Parsed {
    pub value: Value,
    pub note: Option<String>,
}

/// Parses all of it, for those who look for something inside before they shrink it.
pub fn parse<R: Read>(
    outputs: impl IntoIterator<Item = R>,
) -> io::Result<Result<Parsed, NotFound>> {
    let mut tail = String::new();
    let mut reason = None;
    for output in outputs {
        let mut bytes = Vec::new();
        output.take(LARGEST as u64 + 1).read_to_end(&mut bytes)?;
        let end = Input::read([&bytes[bytes.len().saturating_sub(1 << 16)..]], |_, _| ())?.tail;
        if bytes.len() > LARGEST {
            let message = format!(
                "more than {} MB were printed, which is too much to parse as JSON",
                LARGEST >> 20
            );
            return Ok(Err(NotFound { message, tail: String::new() }));
        }
        let text = clean(&bytes);
        match values(text.trim_start_matches('\u{feff}')) {
            Ok(parsed) => return Ok(Ok(parsed)),
            Err(error) => reason = reason.or(error),
        }
        if !tail.is_empty() && !end.is_empty() {
            tail.push('\n');
        }
        tail.push_str(&end);
    }
    let message = match reason {
        Some(reason) => format!("the JSON that was printed is broken or cut: {reason}"),
        None => "no JSON was printed".to_owned(),
    };
    Ok(Err(NotFound { message, tail }))
}

/// The values in a text, or why there are none.
fn values(text: &str) -> Result<Parsed, Option<String>> {
    if text.trim().is_empty() {
        return Err(None);
    }
    let mut reason = None;
    let mut from = 0;
    for _ in 0..TRIES {
        let mut stream = Deserializer::from_str(&text[from..]).into_iter::<Value>();
        let mut all = Vec::new();
        let broken = loop {
            match stream.next() {
                Some(Ok(value)) => all.push(value),
                Some(Err(error)) => break Some(error),
                None => break None,
            }
        };
        let (read, rest) = text[from..].split_at(stream.byte_offset());
        let rest = rest.trim();
        // A log line may begin with a number, so that only what is nothing but JSON may be a bare value.
        let structured = all.iter().all(|value| value.is_object() || value.is_array());
        if !all.is_empty() && (structured || broken.is_none() && from == 0) {
            let exact = Exact::of(read);
            if let Some(quoted) = &exact.quoted {
                let again = Deserializer::from_str(quoted).into_iter::<Value>();
                all = again.map_while(Result::ok).collect();
            }
            let notes = exact.notes();
            return Ok(parsed(all, text[..from].trim(), broken.map(|_| rest), notes));
        }
        reason = reason
            .or_else(|| broken.filter(|_| begins(&text[from..])).map(|error| error.to_string()));
        let next = text[from..]
            .match_indices('\n')
            .map(|(at, _)| from + at + 1)
            .find(|&at| begins(&text[at..]));
        let Some(next) = next else { break };
        from = next;
    }
    Err(reason)
}

fn begins(text: &str) -> bool {
    text.trim_start_matches([' ', '\t']).starts_with(['{', '['])
}

fn parsed(mut all: Vec<Value>, before: &str, rest: Option<&str>, mut notes: Vec<String>) -> Parsed {
    let lines = before.lines().filter(|line| !line.trim().is_empty()).count();
    if lines > 0 {
        notes.push(format!("{} not JSON came before", lines_of(lines)));
    }
    if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
        let first = room::cut(rest.lines().next().unwrap_or_default(), 80);
        let lines = lines_of(rest.lines().count());
        notes.push(format!("{lines} not JSON, or cut, came after: {first}"));
    }
    let value = if all.len() == 1 { all.remove(0) } else { Value::Array(all) };
    Parsed { value, note: (!notes.is_empty()).then(|| notes.join("; ")) }
}

fn lines_of(count: usize) -> String {
    if count == 1 { "1 line that is".to_owned() } else { format!("{count} lines that are") }
}

pub(crate) fn extract<R: Read>(
    outputs: impl IntoIterator<Item = R>,
    hint: &Hint<'_>,
    room: usize,
) -> io::Result<Result<Extracted, NotFound>> {
    Ok(parse(outputs)?.map(|Parsed { value, note }| {
        let (value, omitted) = shrink(value, room);
        let cut = (!hint.ended)
            .then(|| "the command did not end by itself, or its output is cut".to_owned());
        let notes: Vec<String> = note.into_iter().chain(cut).collect();
        Extracted {
            value,
            note: (!notes.is_empty()).then(|| notes.join("; ")),
            tail: None,
            omitted,
        }
    }))
}

/// A value of at most `room` bytes, and how many elements of arrays, entries of objects and long texts it lacks.
/// Arrays end with a text that counts what they lack; the rest stays as it is for as long as possible.
pub fn shrink(value: Value, room: usize) -> (Value, u64) {
    if room::size(&value) <= room + 1 {
        return (value, 0);
    }
    // An object's entries are its shape, so they go after elements and long texts.
    for (text, whole_objects) in
        [(1 << 16, true), (1 << 10, true), (256, true), (64, true), (256, false), (16, false)]
    {
        let (mut least, mut most) = (0, room / 2 + 1);
        let mut best = None;
        // The same number of elements everywhere: the largest that fits.
        while least < most {
            let keep = least + (most - least).div_ceil(2);
            let mut limits = Limits { keep, text, whole_objects, omitted: 0, left: room };
            match limits.apply(&value).filter(|smaller| room::size(smaller) <= room + 1) {
                Some(smaller) => {
                    best = Some((smaller, limits.omitted));
                    least = keep;
                }
                None => most = keep - 1,
            }
        }
        if let Some(best) = best {
            return best;
        }
    }
    (Value::Null, 1)
}

/// How much of a value is copied.
struct Limits {
    /// Elements of each array, and entries of each object.
    keep: usize,
    text: usize,
    whole_objects: bool,
    omitted: u64,
    /// Bytes that may still be copied: no more than that is worth the time.
    left: usize,
}

impl Limits {
    /// A smaller value, or nothing if it does not fit.
    fn apply(&mut self, value: &Value) -> Option<Value> {
        self.left = self.left.checked_sub(1)?;
        Some(match value {
            Value::Array(items) => {
                let kept: Option<Vec<Value>> =
                    items.iter().take(self.keep).map(|item| self.apply(item)).collect();
                let mut kept = kept?;
                if let Some(more) = self.more(items.len(), self.keep) {
                    kept.push(Value::String(format!("… {more} more")));
                }
                Value::Array(kept)
            }
            Value::Object(entries) => {
                let most = if self.whole_objects { entries.len() } else { self.keep };
                let mut kept = serde_json::Map::new();
                for (name, item) in entries.iter().take(most) {
                    self.left = self.left.checked_sub(name.len())?;
                    kept.insert(name.clone(), self.apply(item)?);
                }
                if let Some(more) = self.more(entries.len(), most) {
                    kept.insert("…".to_owned(), Value::String(format!("{more} more")));
                }
                Value::Object(kept)
            }
            Value::String(long) if long.len() > self.text => {
                self.omitted += 1;
                self.left = self.left.checked_sub(self.text)?;
                Value::String(room::cut(long, self.text))
            }
            Value::String(short) => {
                self.left = self.left.checked_sub(short.len())?;
                value.clone()
            }
            other => other.clone(),
        })
    }

    /// Counts what a list of `count` lacks.
    fn more(&mut self, count: usize, most: usize) -> Option<usize> {
        let more = count.checked_sub(most).filter(|more| *more > 0)?;
        self.omitted += more as u64;
        Some(more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(text: &str) -> Result<Parsed, NotFound> {
        parse([text.as_bytes()]).unwrap()
    }

    #[test]
    fn one_value_lines_of_values_and_values_after_a_log_are_read() {
        assert_eq!(read("{\"a\": 1}\n").unwrap().value, json!({"a": 1}));
        assert_eq!(read("{\"a\": 1}\n{\"a\": 2}\n").unwrap().value, json!([{"a": 1}, {"a": 2}]));
        let logged = read("[info] 3 files\n> run\n[1, 2]\n").unwrap();
        assert_eq!(logged.value, json!([1, 2]));
        assert_eq!(logged.note.unwrap(), "2 lines that are not JSON came before");
        assert_eq!(read("3\n").unwrap().value, json!(3));
    }

    #[test]
    fn digits_are_kept_and_keys_that_come_again_are_told() {
        let found = read(
            "start\n{\"id\": 123456789012345678901234, \"n\": 18446744073709551615, \"n\": 1}\n",
        )
        .unwrap();
        assert_eq!(found.value, json!({"id": "123456789012345678901234", "n": 1}));
        let said = "repeated keys: `n` (the last value counts); 1 integer is a string, to keep its digits; \
                    1 line that is not JSON came before";
        assert_eq!(found.note.unwrap(), said);
    }

    #[test]
    fn what_is_cut_is_told() {
        assert!(read("{\"a\": [1, 2").unwrap_err().message.contains("broken or cut"));
        assert_eq!(read("3 files were found\n").unwrap_err().message, "no JSON was printed");
        let lines = read("{\"a\": 1}\n{\"a\": ").unwrap();
        assert_eq!(lines.value, json!({"a": 1}));
        assert!(lines.note.unwrap().contains("came after"));
    }

    #[test]
    fn a_large_value_shrinks_to_its_room_and_counts_what_it_lacks() {
        let all: Vec<Value> = (0..1000).map(|at| json!({"id": at, "tags": ["a", "b"]})).collect();
        let (value, omitted) = shrink(json!({"items": all}), 2000);
        assert!(value.to_string().len() <= 2000 && value.to_string().len() > 1500, "{value}");
        let items = value["items"].as_array().unwrap();
        assert_eq!(items.len() as u64 - 1 + omitted, 1000);
        assert_eq!(items.last().unwrap(), &json!(format!("… {omitted} more")));
    }

    #[test]
    fn an_object_of_many_entries_keeps_as_many_as_fit() {
        let all: serde_json::Map<String, Value> =
            (0..1000).map(|at| (format!("key {at}"), json!(at))).collect();
        let (value, omitted) = shrink(Value::Object(all), 2000);
        assert!((1500..=2000).contains(&value.to_string().len()), "{value}");
        assert_eq!(value.as_object().unwrap().len() as u64 - 1 + omitted, 1000);
    }

    #[test]
    fn any_room_is_enough() {
        let value = json!({"a": {"b": ["x".repeat(5000), 2, 3]}, "c": "y".repeat(100)});
        for room in (4..120).chain((120..6000).step_by(117)) {
            let (smaller, omitted) = shrink(value.clone(), room);
            assert!(smaller.to_string().len() <= room, "{room}: {smaller}");
            assert_eq!(omitted == 0, smaller == value);
        }
    }
}
