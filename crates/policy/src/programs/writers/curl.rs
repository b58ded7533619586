//! Uploads of `curl`: to a `file:` URL, they are written here.

use super::rest;
use crate::action::{Action, Actions};
use crate::call::Call;
use crate::script::Word;

/// Why an upload is refused whose URL is not known.
const NOT_KNOWN: &str = "an upload to a URL that may be a file of this machine";

/// `curl -T page.html file:///srv/www/`: every such URL is written to, wherever it stands.
pub fn inspect(actions: &mut Actions<'_>, call: &Call<'_>) {
    let words = call.arguments();
    if !words.iter().any(uploads) {
        return;
    }
    for word in words {
        let prefix = word.prefix();
        let (scheme, behind) = prefix.split_once(':').unwrap_or((&prefix, ""));
        let scheme = scheme.to_ascii_lowercase();
        let changes_scheme = scheme.starts_with("--proto-d") || scheme.starts_with("--expand-");
        // Curl itself expands braces, brackets and escapes.
        let is_made = scheme.contains(['{', '[']);
        let is_file = scheme == "file";
        if is_file && !behind.contains(['{', '[', '%']) {
            actions.push(Action::Write(rest(word, path(behind))));
        } else if is_file || is_made || changes_scheme || word.text().is_none() && behind.is_empty()
        {
            actions.push(Action::UnclearWrite { span: word.span.clone(), what: NOT_KNOWN });
        }
    }
}

/// Whether it is `-T`, also behind other letters, or the long option.
fn uploads(word: &Word) -> bool {
    let prefix = word.prefix();
    match prefix.strip_prefix("--") {
        Some(long) => long.starts_with("up"),
        None => prefix.starts_with('-') && prefix.contains('T'),
    }
}

/// The path in what follows `file:`, behind two slashes and a host.
fn path(url: &str) -> &str {
    match url.strip_prefix("//") {
        Some(rest) => rest.find('/').map_or(rest, |slash| &rest[slash..]),
        None => url,
    }
}
