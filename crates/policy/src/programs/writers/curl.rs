//! What `curl` writes besides the files that its options name: an upload to a `file:` URL, and a download under a name
//! that it makes of its URL.

use super::rest;
use crate::action::{Action, Actions};
use crate::call::Call;
use crate::names::Names;
use crate::script::Word;

/// Why an upload is refused whose URL is not known.
const NOT_KNOWN: &str = "an upload to a URL that may be a file of this machine";

/// Why a download is refused whose name only curl will know.
const MADE: &str = "a name that curl makes of parts of its URL";

/// Letters whose value follows them.
const VALUED: &str = "AbcCdDeEFhHKmoPQrtTuUwxXyYz";

/// Letters and names of options whose value is neither a URL nor a file that is written.
const TEXTS: Names = Names(
    "A b d e F H u w X data data-ascii data-binary data-raw data-urlencode json form form-string header user-agent \
     referer cookie user request write-out",
);

pub fn inspect(actions: &mut Actions<'_>, call: &Call<'_>) {
    uploaded(actions, call);
    let words = call.arguments();
    // `curl -o '/tmp/#1' 'https://h/{a,b}'`
    let has_parts = places(words).any(|word| word.prefix().contains(['{', '[']));
    for word in places(words).filter(|_| has_parts) {
        let text = word.prefix();
        if text.split('#').skip(1).any(|behind| behind.starts_with(|it: char| it.is_ascii_digit()))
        {
            actions.push(Action::UnclearWrite { span: word.span.clone(), what: MADE });
        }
    }
    let elsewhere = words.iter().any(|word| word.prefix().starts_with("--output-d"));
    let here = words.iter().find(|word| names_by_url(word)).filter(|_| !elsewhere);
    if let Some(word) = here {
        actions.push(Action::Write(Word::known(".", word.span.clone())));
    }
}

/// The words that may have to do with where curl writes: all but texts that it sends.
fn places(words: &[Word]) -> impl Iterator<Item = &Word> {
    // Whether the next word is the value of an option, and if so, whether that is a text.
    let mut next: Option<bool> = None;
    words.iter().filter(move |word| {
        if let Some(is_text) = next.take() {
            return !is_text;
        }
        let text = word.text().unwrap_or_default();
        let Some(option) = text.strip_prefix('-') else { return true };
        if let Some(long) = option.strip_prefix('-') {
            next = TEXTS.has(long).then_some(true);
            return true;
        }
        let Some(at) = option.find(|it| VALUED.contains(it)) else { return true };
        let (is_text, is_last) = (TEXTS.has(&option[at..=at]), at + 1 == option.len());
        next = is_last.then_some(is_text);
        is_last || !is_text
    })
}

/// Whether it is `-O`, also behind other letters, or one of the long options with that meaning.
fn names_by_url(word: &Word) -> bool {
    let prefix = word.prefix();
    match prefix.strip_prefix("--") {
        Some(long) => long.starts_with("remote-n"),
        None => prefix.strip_prefix('-').is_some_and(|letters| {
            letters.split(|it| VALUED.contains(it)).next().is_some_and(|it| it.contains('O'))
        }),
    }
}

/// `curl -T page.html file:///srv/www/`: every such URL is written to, wherever it stands.
fn uploaded(actions: &mut Actions<'_>, call: &Call<'_>) {
    let words = call.arguments();
    if !places(words).any(uploads) {
        return;
    }
    for word in places(words) {
        let prefix = word.prefix();
        let (scheme, behind) = prefix.split_once(':').unwrap_or((&prefix, ""));
        let scheme = scheme.to_ascii_lowercase();
        let changes_scheme = scheme.starts_with("--proto-d") || scheme.starts_with("--expand-");
        // Curl itself expands braces, brackets and escapes.
        let is_made = scheme.contains(['{', '[']);
        let is_file = scheme == "file";
        if is_file && !behind.contains(['{', '[', '%', '?', '#']) {
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
        None => prefix
            .strip_prefix('-')
            .is_some_and(|letters| letters.chars().find(|it| VALUED.contains(*it)) == Some('T')),
    }
}

/// The path in what follows `file:`, behind two slashes and a host.
fn path(url: &str) -> &str {
    match url.strip_prefix("//") {
        Some(rest) => rest.find('/').map_or(rest, |slash| &rest[slash..]),
        None => url,
    }
}
