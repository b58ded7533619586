//! How much of what was found fits: long texts are cut and say so, long lists count what they leave out.

use serde::Serialize;

/// At most `most` bytes of `text`, cut at a character, and then with a mark.
pub(crate) fn cut(text: &str, most: usize) -> String {
    cut_of(text, most, 0)
}

/// The same of a text after which `more` bytes came that are not here.
pub(crate) fn cut_of(text: &str, most: usize, more: usize) -> String {
    if text.len() <= most {
        return match more {
            0 => text.to_owned(),
            more => format!("{text}\n… ({more} more bytes)"),
        };
    }
    let end = text.floor_char_boundary(most);
    format!("{}… ({} more bytes)", &text[..end], text.len() - end + more)
}

/// How many bytes `item` takes in a list.
pub(crate) fn size(item: &impl Serialize) -> usize {
    serde_json::to_string(item).map_or(usize::MAX, |text| text.len() + 1)
}

/// The first items that fit into `room` bytes of JSON, and how many there were besides.
#[derive(Debug)]
pub(crate) struct Kept<T> {
    pub items: Vec<T>,
    pub omitted: u64,
    room: usize,
}

impl<T: Serialize> Kept<T> {
    pub fn new(room: usize) -> Self {
        Kept { items: Vec::new(), omitted: 0, room }
    }

    pub fn push(&mut self, item: T) {
        let size = size(&item);
        if self.omitted == 0 && size <= self.room {
            self.room -= size;
            self.items.push(item);
        } else {
            self.omitted += 1;
        }
    }

    pub fn len(&self) -> u64 {
        self.items.len() as u64 + self.omitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_counted() {
        let mut kept = Kept::new(9);
        for item in ["ab", "cd", "e"] {
            kept.push(item);
        }
        assert_eq!((kept.items.as_slice(), kept.omitted, kept.len()), (&["ab"][..], 2, 3));
    }

    #[test]
    fn a_cut_text_says_so() {
        assert_eq!(cut("grün", 3), "gr… (3 more bytes)");
        assert_eq!(cut("grün", 5), "grün");
        assert_eq!(cut_of("grün", 3, 10), "gr… (13 more bytes)");
        assert_eq!(cut_of("grün", 5, 10), "grün\n… (10 more bytes)");
    }
}
