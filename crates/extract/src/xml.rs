//! Just enough XML to read reports: elements, attributes, text. No namespaces, no entities of a document's own.

/// What comes next in a document.
#[derive(Debug, PartialEq)]
pub(crate) enum Event<'a> {
    /// `<name …>`; `empty` if it ends itself.
    Start {
        name: &'a str,
        attributes: &'a str,
        empty: bool,
    },
    End(&'a str),
    Text(String),
}

pub(crate) struct Events<'a> {
    rest: &'a str,
}

impl<'a> Events<'a> {
    pub fn new(text: &'a str) -> Self {
        Events { rest: text }
    }
}

/// Ends early where the document is broken or cut.
impl<'a> Iterator for Events<'a> {
    type Item = Event<'a>;

    fn next(&mut self) -> Option<Event<'a>> {
        loop {
            let rest = self.rest;
            if rest.is_empty() {
                return None;
            }
            if let Some(inner) = rest.strip_prefix("<![CDATA[") {
                let (text, after) = inner.split_once("]]>")?;
                self.rest = after;
                return Some(Event::Text(text.to_owned()));
            }
            if let Some(inner) = rest.strip_prefix("<!--") {
                self.rest = inner.split_once("-->")?.1;
                continue;
            }
            if rest.starts_with("<?") || rest.starts_with("<!") {
                self.rest = rest.split_once('>')?.1;
                continue;
            }
            if let Some(inner) = rest.strip_prefix("</") {
                let (name, after) = inner.split_once('>')?;
                self.rest = after;
                return Some(Event::End(name.trim()));
            }
            if let Some(inner) = rest.strip_prefix('<') {
                let end = tag_end(inner)?;
                self.rest = &inner[end + 1..];
                let tag = &inner[..end];
                let (tag, empty) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
                let (name, attributes) = tag.split_once(char::is_whitespace).unwrap_or((tag, ""));
                return Some(Event::Start { name, attributes, empty });
            }
            let (text, after) = rest.split_at(rest.find('<').unwrap_or(rest.len()));
            self.rest = after;
            return Some(Event::Text(unescape(text)));
        }
    }
}

/// Where a tag ends; a `>` in a value does not end it.
fn tag_end(tag: &str) -> Option<usize> {
    let mut quote = None;
    for (at, byte) in tag.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return Some(at),
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            _ => {}
        }
    }
    None
}

/// The value of one attribute.
pub(crate) fn attribute(attributes: &str, wanted: &str) -> Option<String> {
    let mut rest = attributes.trim_start();
    while let Some((name, after)) = rest.split_once('=') {
        let after = after.trim_start();
        let quote = after.chars().next().filter(|&c| c == '"' || c == '\'')?;
        let (value, after) = after[1..].split_once(quote)?;
        if name.trim() == wanted {
            return Some(unescape(value));
        }
        rest = after.trim_start();
    }
    None
}

fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        plain.push_str(before);
        let known = after.split_once(';').and_then(|(name, after)| Some((entity(name)?, after)));
        if let Some((c, after)) = known {
            plain.push(c);
            rest = after;
        } else {
            plain.push('&');
            rest = after;
        }
    }
    plain.push_str(rest);
    plain
}

fn entity(name: &str) -> Option<char> {
    match name {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let digits = name.strip_prefix('#')?;
            let code = match digits.strip_prefix(['x', 'X']) {
                Some(hexadecimal) => u32::from_str_radix(hexadecimal, 16).ok()?,
                None => digits.parse().ok()?,
            };
            char::from_u32(code)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_text_and_attributes_are_read() {
        let events: Vec<_> = Events::new(
            "<?xml?><!-- <x> --><a b='1>2' c=\"&lt;&#65;\"/>x &amp; y<![CDATA[<z>]]></t>",
        )
        .collect();
        assert_eq!(
            events[0],
            Event::Start { name: "a", attributes: "b='1>2' c=\"&lt;&#65;\"", empty: true }
        );
        assert_eq!(events[1..3], [Event::Text("x & y".to_owned()), Event::Text("<z>".to_owned())]);
        assert_eq!(events[3], Event::End("t"));
        assert_eq!(attribute("b='1>2' c=\"&lt;&#65;\"", "c").as_deref(), Some("<A"));
    }

    #[test]
    fn a_cut_document_ends_early() {
        assert_eq!(Events::new("<a b=\"1").next(), None);
        assert_eq!(Events::new("<![CDATA[x").next(), None);
    }
}
