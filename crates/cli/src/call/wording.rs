//! What answers say to a model about the rest of an output, in words for a person.
//!
//! A model reads on with other tools and fields of its answer. A call is over when it is read, and its server with it.

/// How a remark begins if a view does not fit.
const CUT_VIEW: &str = "the view did not fit: read_file_chunk goes on";

/// The beginning of a remark for models, and the remark that a person reads instead.
const WORDS: [(&str, &str); 6] = [
    ("read them at spill_uri", "omit `view` to see them"),
    (CUT_VIEW, "the view did not fit; pass a larger --max-answer"),
    ("more follows in mcp:", "more changes follow; pass a larger --max-answer"),
    ("select some with json_path", "pass a larger --max-answer"),
    (
        "there is no earlier run of this command",
        "nothing to compare with: each `mcpz call` starts a server of its own, which keeps no earlier output. This is \
         the whole output; to compare two runs, save them to files and use `diff`",
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

/// Whether a remark says that a view leaves lines out.
pub fn is_of_view(remark: &str) -> bool {
    let of_view = |part: &str| part.ends_with(" not shown") || part.starts_with(CUT_VIEW);
    remark.split("; ").any(of_view)
}
