//! Finds what looks like a token or a private key, whether or not a variable holds it.
//!
//! Most services begin their tokens with letters that occur nowhere else, so that programs like this one find them. The
//! rest of a token is checked as far as needed to tell it from ordinary text; then it is replaced, and what still
//! belongs to it is skipped, however long it is. So little is held back.

use std::sync::Arc;

use aho_corasick::packed::{Config, MatchKind, Searcher};
use aho_corasick::{AhoCorasick, Input, Match, MatchKind as SlowMatchKind, Span};

use super::private_key::KeyBody;
use super::stage::{End, Mask, Text};

/// How much of a token is looked at.
const MAX_CHECKED: usize = 64;

/// The longest header of a JSON Web Token.
const MAX_HEADER: usize = 2048;

/// How many letters and digits in a row are random.
const LONG_RUN: usize = 24;

/// A form of token.
struct Form {
    prefix: &'static str,
    /// What replaces it.
    name: &'static str,
    rest: Rest,
}

/// What follows the prefix.
#[derive(Clone, Copy)]
enum Rest {
    /// At least so many characters.
    Least(usize, Alphabet),
    /// So many characters, and then something else.
    Exactly(usize, Alphabet),
    /// Characters that nobody would choose, at least so many.
    Random(usize, Alphabet),
    /// The rest of a JSON Web Token.
    Jwt,
    /// The rest of the line before a private key.
    PrivateKey,
}

type Alphabet = fn(u8) -> bool;

const fn form(prefix: &'static str, name: &'static str, rest: Rest) -> Form {
    Form { prefix, name, rest }
}

const FORMS: &[Form] = &[
    form("AIza", "[Google API key]", Rest::Exactly(35, is_base64url)),
    form("AKIA", "[AWS access key]", Rest::Exactly(16, is_base32)),
    form("ASIA", "[AWS access key]", Rest::Exactly(16, is_base32)),
    form("eyJ", "[JSON Web Token]", Rest::Jwt),
    form("gho_", "[GitHub token]", Rest::Least(36, is_alphanumeric)),
    form("ghp_", "[GitHub token]", Rest::Least(36, is_alphanumeric)),
    form("ghr_", "[GitHub token]", Rest::Least(36, is_alphanumeric)),
    form("ghs_", "[GitHub token]", Rest::Least(36, is_alphanumeric)),
    form("ghu_", "[GitHub token]", Rest::Least(36, is_alphanumeric)),
    form("github_pat_", "[GitHub token]", Rest::Least(40, is_base64url)),
    form("glpat-", "[GitLab token]", Rest::Least(20, is_base64url)),
    form("npm_", "[npm token]", Rest::Exactly(36, is_alphanumeric)),
    form("PRIVATE KEY", "[private key]", Rest::PrivateKey),
    form("sk-", "[API key]", Rest::Random(20, is_base64url)),
    form("sk-ant-", "[Anthropic API key]", Rest::Random(20, is_base64url)),
    form("xoxb-", "[Slack token]", Rest::Least(20, is_base64url)),
    form("xoxp-", "[Slack token]", Rest::Least(20, is_base64url)),
];

fn is_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn is_base32(byte: u8) -> bool {
    matches!(byte, b'A'..=b'Z' | b'2'..=b'7')
}

fn is_base64url(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

fn is_in_jwt(byte: u8) -> bool {
    is_base64url(byte) || byte == b'.'
}

/// Finds the beginnings of tokens.
pub struct TokenFinder {
    /// Compares many bytes at once, where the processor can.
    fast: Option<Searcher>,
    slow: Option<AhoCorasick>,
}

impl TokenFinder {
    pub fn new() -> Self {
        let prefixes = || FORMS.iter().map(|form| form.prefix);
        let mut fast = Config::new().match_kind(MatchKind::LeftmostLongest).builder();
        let mut slow = AhoCorasick::builder();
        let slow = slow.match_kind(SlowMatchKind::LeftmostLongest);
        match fast.extend(prefixes()).build() {
            None => Self { fast: None, slow: slow.build(prefixes()).ok() },
            fast => Self { fast, slow: None },
        }
    }

    /// The next beginning of something that may be a token, from a place on, and what it is.
    fn find(
        &self,
        text: &Text<'_>,
        from: usize,
        end: End,
    ) -> Option<(usize, &'static Form, Verdict)> {
        let mut from = from;
        loop {
            let found = self.find_prefix(text.bytes, from)?;
            let form = &FORMS[found.pattern().as_usize()];
            match form.check(text, found.start(), end) {
                Verdict::Text => from = found.start() + 1,
                verdict => return Some((found.start(), form, verdict)),
            }
        }
    }

    fn find_prefix(&self, bytes: &[u8], from: usize) -> Option<Match> {
        let span = Span::from(from..bytes.len());
        match &self.fast {
            Some(fast) => fast.find_in(bytes, span),
            None => self.slow.as_ref()?.find(Input::new(bytes).span(span)),
        }
    }

    /// The first place, at or after `from`, where `bytes` may end in the middle of a prefix.
    fn beginning(&self, text: &Text<'_>, from: usize) -> usize {
        let bytes = text.bytes;
        let longest = FORMS.iter().map(|form| form.prefix.len()).max().unwrap_or(0);
        let from = from.max((bytes.len() + 1).saturating_sub(longest));
        let begins = |at: &usize| {
            let is_cut = |form: &&Form| form.prefix.as_bytes().starts_with(&bytes[*at..]);
            FORMS.iter().filter(is_cut).any(|form| form.can_begin(text, *at))
        };
        (from..bytes.len()).find(begins).unwrap_or(bytes.len())
    }
}

/// What stands at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Text,
    /// More bytes are needed to tell.
    Unknown,
    /// A token, of which so many bytes are known.
    Token(usize),
    /// The first line of a private key, up to its end.
    PrivateKey(usize),
}

impl Form {
    /// Whether its prefix makes sense at a place: no other word ends with it, as in `task-1`.
    fn can_begin(&self, text: &Text<'_>, at: usize) -> bool {
        match self.rest {
            Rest::PrivateKey => {
                let is_label =
                    |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b' ';
                let mut label: Vec<u8> = text.back_from(at).take_while(is_label).collect();
                label.reverse();
                label.starts_with(b"BEGIN ")
            }
            _ => text.can_begin_word(at),
        }
    }

    fn check(&self, text: &Text<'_>, at: usize, end: End) -> Verdict {
        if !self.can_begin(text, at) {
            return Verdict::Text;
        }
        let begin = at + self.prefix.len();
        let rest = &text.bytes[begin..];
        // Whether a run of characters may go on after the bytes that are there.
        let is_open = |run: usize| run == rest.len() && end == End::Unknown;
        let token = |run: usize| Verdict::Token(self.prefix.len() + run);
        match self.rest {
            Rest::Least(least, alphabet) => match run_of(rest, alphabet, least) {
                run if run >= least => token(run),
                run if is_open(run) => Verdict::Unknown,
                _ => Verdict::Text,
            },
            Rest::Exactly(length, alphabet) => match run_of(rest, alphabet, length + 1) {
                run if run > length => Verdict::Text,
                run if is_open(run) => Verdict::Unknown,
                run if run < length => Verdict::Text,
                run if rest.get(run).is_some_and(u8::is_ascii_alphanumeric) => Verdict::Text,
                run => token(run),
            },
            Rest::Random(least, alphabet) => match run_of(rest, alphabet, MAX_CHECKED) {
                run if run < MAX_CHECKED && is_open(run) => Verdict::Unknown,
                run if run >= least && is_random(&rest[..run]) => token(run),
                _ => Verdict::Text,
            },
            Rest::Jwt => check_jwt(rest, end, token),
            Rest::PrivateKey => check_private_key(self.prefix.len(), rest, end),
        }
    }

    /// The characters that belong to a token however long it is.
    fn tail(&self) -> Option<Alphabet> {
        match self.rest {
            Rest::Least(_, alphabet) | Rest::Random(_, alphabet) => Some(alphabet),
            Rest::Jwt => Some(is_in_jwt),
            Rest::Exactly(..) | Rest::PrivateKey => None,
        }
    }
}

/// How many characters of an alphabet come first, counted to `limit`.
fn run_of(bytes: &[u8], alphabet: Alphabet, limit: usize) -> usize {
    bytes.iter().take(limit).take_while(|byte| alphabet(**byte)).count()
}

/// Whether nobody chose this as a name: it has digits, and either both cases or many characters without a break.
fn is_random(text: &[u8]) -> bool {
    let mixed = text.iter().any(u8::is_ascii_lowercase) && text.iter().any(u8::is_ascii_uppercase);
    let mut runs = text.split(|byte| !byte.is_ascii_alphanumeric());
    let has_digit = |part: &[u8]| part.iter().any(u8::is_ascii_digit);
    has_digit(text) && (mixed || runs.any(|run| run.len() >= LONG_RUN && has_digit(run)))
}

/// A header, a dot, and the beginning of another JSON object.
fn check_jwt(rest: &[u8], end: End, token: impl Fn(usize) -> Verdict) -> Verdict {
    const LEAST: usize = 8;
    let header = run_of(rest, is_base64url, MAX_HEADER);
    let more = match end {
        End::Here => Verdict::Text,
        End::Unknown => Verdict::Unknown,
    };
    if header == MAX_HEADER {
        return Verdict::Text;
    }
    let after = &rest[header..];
    let expected = b".eyJ";
    let same = after.iter().zip(expected).take_while(|(one, other)| one == other).count();
    if header < LEAST && !after.is_empty() || same < after.len().min(expected.len()) {
        return Verdict::Text;
    }
    let payload = run_of(&after[same..], is_base64url, LEAST);
    match (same == expected.len(), payload) {
        (true, LEAST) => token(header + same + payload),
        (true, _) if payload < after.len() - same => Verdict::Text,
        _ => more,
    }
}

/// The end of a line such as `-----BEGIN RSA PRIVATE KEY-----`.
fn check_private_key(prefix: usize, rest: &[u8], end: End) -> Verdict {
    let endings: [&[u8]; 2] = [b"-----", b" BLOCK-----"];
    let is_cut = |ending: &&[u8]| end == End::Unknown && ending.starts_with(rest);
    match endings.iter().find(|ending| rest.starts_with(ending)) {
        Some(ending) => Verdict::PrivateKey(prefix + ending.len()),
        None if endings.iter().any(is_cut) => Verdict::Unknown,
        None => Verdict::Text,
    }
}

/// Replaces tokens in a stream.
pub struct TokenMask {
    finder: Arc<TokenFinder>,
    state: State,
}

/// What the next byte belongs to.
enum State {
    Text,
    /// A token that was replaced, for as long as there are characters of its alphabet.
    Token(Alphabet),
    PrivateKey(KeyBody),
}

impl TokenMask {
    pub fn new(finder: Arc<TokenFinder>) -> Self {
        Self { finder, state: State::Text }
    }

    /// Copies text up to the next token. Returns where that begins or where it has to wait, and whether to go on.
    fn copy_text(
        &mut self,
        text: &Text<'_>,
        from: usize,
        end: End,
        out: &mut Vec<u8>,
    ) -> (usize, bool) {
        let bytes = text.bytes;
        let Some((at, form, verdict)) = self.finder.find(text, from, end) else {
            let open = match end {
                End::Here => bytes.len(),
                End::Unknown => self.finder.beginning(text, from),
            };
            out.extend_from_slice(&bytes[from..open]);
            return (open, false);
        };
        out.extend_from_slice(&bytes[from..at]);
        match verdict {
            Verdict::Text | Verdict::Unknown => (at, false),
            Verdict::Token(length) => {
                out.extend_from_slice(form.name.as_bytes());
                self.state = form.tail().map_or(State::Text, State::Token);
                (at + length, true)
            }
            Verdict::PrivateKey(length) => {
                out.extend_from_slice(&bytes[at..at + length]);
                self.state = State::PrivateKey(KeyBody::new(form.name));
                (at + length, true)
            }
        }
    }
}

impl Mask for TokenMask {
    fn is_clean(&self, text: &Text<'_>) -> bool {
        matches!(self.state, State::Text)
            && self.finder.find(text, 0, End::Unknown).is_none()
            && self.finder.beginning(text, 0) == text.bytes.len()
    }

    fn replace(&mut self, text: &Text<'_>, end: End, out: &mut Vec<u8>) -> usize {
        let (mut done, mut goes_on) = (0, true);
        while goes_on {
            let rest = &text.bytes[done..];
            match &mut self.state {
                State::Text => (done, goes_on) = self.copy_text(text, done, end, out),
                State::Token(alphabet) => {
                    done += run_of(rest, *alphabet, usize::MAX);
                    goes_on = done < text.bytes.len();
                    if goes_on {
                        self.state = State::Text;
                    }
                }
                State::PrivateKey(body) => {
                    let (taken, ended) = body.skip(rest, end, out);
                    done += taken;
                    goes_on = ended;
                    if ended {
                        self.state = State::Text;
                    }
                }
            }
        }
        done
    }
}
