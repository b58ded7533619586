//! What answers say to a model about the rest of an output, in words for a person.
//!
//! A model reads on with other tools and fields of its answer. A call is over when it is read, and its server with it.

/// The beginning of a remark for models, and the remark that a person reads instead.
const WORDS: [(&str, &str); 6] = [
    ("spill_uri has all", "omit `view` to see them"),
    (
        "the view did not fit: read_file_chunk goes on",
        "the view did not fit; pass a larger --max-answer",
    ),
    ("more follows in mcp:", "more changes follow; pass a larger --max-answer"),
    ("select some with json_path", "pass a larger --max-answer"),
    (
        "there is no earlier run of this command",
        "there is no earlier output to compare with, as every `mcpz call` is a server of its own and keeps none for \
         the next, so this is the output as it is; write outputs to files and compare them with `diff`",
    ),
    (
        "pass a larger `timeout`, or run it with `background`",
        "pass a larger `timeout`, or run it with `detach=true`",
    ),
];

/// A remark of an answer, reworded.
pub fn for_person(remark: &str) -> String {
    let parts = remark.split("; ").map(|part| {
        let known = WORDS.iter().find(|(model, _)| part.starts_with(model));
        known.map_or(part, |(_, person)| person)
    });
    parts.collect::<Vec<_>>().join("; ")
}

/// Whether a remark tells that a view leaves lines out, and how to see them.
pub fn is_of_view(remark: &str) -> bool {
    let of_view = |part: &str| part.ends_with(" not shown") || part.starts_with(WORDS[1].0);
    remark.split("; ").any(of_view)
}
