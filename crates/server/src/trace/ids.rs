//! The ids of spans, which callers pass on in the form of W3C Trace Context.

use http::HeaderMap;

/// The longest `tracestate` that is passed on.
const MAX_STATE: usize = 512;

/// What identifies a span for the spans below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpanIds {
    pub trace: u128,
    pub span: u64,
    pub state: String,
    /// Whether the caller wants the trace recorded.
    pub sampled: bool,
}

impl SpanIds {
    /// Reads a `traceparent` and its `tracestate`.
    pub fn read(parent: &str, state: &str) -> Option<Self> {
        let mut parts = parent.split('-');
        let version = hexadecimal(parts.next()?, 2)?;
        let trace = hexadecimal(parts.next()?, 32)?;
        let span = hexadecimal(parts.next()?, 16)?;
        let flags = hexadecimal(parts.next()?, 2)?;
        // Later versions may have more parts.
        if version == 0xff || version == 0 && parts.next().is_some() || trace == 0 || span == 0 {
            return None;
        }
        let plain = |state: &str| state.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        let state = Some(state).filter(|state| state.len() <= MAX_STATE && plain(state));
        Some(Self {
            trace,
            span: span as u64,
            state: state.unwrap_or_default().to_owned(),
            sampled: flags & 1 == 1,
        })
    }
}

fn hexadecimal(text: &str, digits: usize) -> Option<u128> {
    let lower = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let fits = text.len() == digits && text.bytes().all(lower);
    fits.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

/// What a message knows of the HTTP request it came in.
#[derive(Debug, Clone, Default)]
pub struct HttpOrigin {
    pub session: Option<String>,
    pub caller: Option<SpanIds>,
}

impl HttpOrigin {
    pub fn read(headers: &HeaderMap, session: Option<&str>) -> Self {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let state = text("tracestate").unwrap_or_default();
        let caller = text("traceparent").and_then(|parent| SpanIds::read(parent, state));
        Self { session: session.map(str::to_owned), caller }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_is_read_as_the_standard_has_it() {
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let ids = SpanIds::read(parent, "a=b").unwrap();
        assert_eq!(ids.trace, 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
        assert_eq!((ids.span, ids.state.as_str(), ids.sampled), (0xf0_67aa_0ba9_02b7, "a=b", true));
        let later = format!("cc-{}-more", &parent[3..]);
        assert_eq!(SpanIds::read(&later, "\n"), Some(SpanIds { state: String::new(), ..ids }));
        assert!(!SpanIds::read(&parent.replace("-01", "-02"), "").unwrap().sampled);
    }

    #[test]
    fn other_texts_are_not_a_caller() {
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        for text in [
            "",
            "00",
            &parent.to_uppercase(),
            &parent.replace("00-4", "ff-4"),
            &parent.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            &parent.replace("00f067aa0ba902b7", &"0".repeat(16)),
            &format!("{parent}-more"),
            &parent[1..],
            &parent.replace('b', "+"),
        ] {
            assert_eq!(SpanIds::read(text, ""), None, "{text}");
        }
    }
}
