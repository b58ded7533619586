//! What changed in an output since an earlier one, one page at a time.
//!
//! A page stands for a part of both outputs, and the next one goes on in both. Changes that would take more room than
//! the output itself are not shown: then the page is the output as it is.

use std::io::{self, Read};

use mcpz_view::{Changes, Shown, changes, changes_so_far};

use crate::page::{Data, LeftOut, Page, Reader};
use crate::room::Room;
use crate::view::Text;

/// More room than a comparison leaves unused at its end.
const SPARE: usize = 256;

/// A place in an output, and the one in the earlier output that corresponds to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BothPlaces {
    pub now: u64,
    pub before: u64,
}

/// A part of an output compared with an earlier one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compared {
    pub page: Page,
    /// Where the next page begins in the earlier output.
    pub before: u64,
    /// Whether this is all there is to compare.
    pub is_all: bool,
    /// Whether the page shows the changes, and not the output as it is.
    pub is_diff: bool,
    /// Whether anything changed.
    pub any: bool,
}

impl Reader {
    /// What changed since an earlier output, from a place in both on. Fails if one of them is not text.
    pub fn compare(&self, earlier: &Reader, from: BothPlaces, room: Room) -> io::Result<Compared> {
        let (total, total_before) = (self.length()?, earlier.length()?);
        let running = self.is_running();
        let whole = match from == BothPlaces::default() {
            true => self.whole(total, room)?,
            false => None,
        };
        let mut size = whole.as_ref().map_or(room.size, |whole| whole.len() + SPARE);
        let found = loop {
            let before = Text::new(earlier, from.before);
            let now = Text::new(self, from.now).take(total.saturating_sub(from.now));
            let found = match running {
                true => changes_so_far(before, now, size)?,
                false => changes(before, now, size)?,
            };
            // Characters that are escaped take more room.
            let needed = room.measure.of(&found.shown.text);
            if whole.is_some() || needed <= room.size || size <= 1 {
                break found;
            }
            size = (size * room.size / needed).min(size - 1).max(1);
        };
        let Changes { shown, consumed_before, any } = found;
        let Shown { text, consumed, lines, omitted, omitted_bytes } = shown;
        let (end, before) = (from.now + consumed, from.before + consumed_before);
        let is_all = end >= total && (running || before >= total_before);
        let page = |text: String, end, left_out| Page {
            data: Data::Text(text),
            start: from.now,
            end,
            total,
            running,
            in_parts: false,
            left_out,
        };
        let is_shorter =
            |whole: &String| is_all && room.measure.of(&text) <= room.measure.of(whole);
        if let Some(whole) = whole.filter(|whole| !is_shorter(whole)) {
            let page = page(whole, total, None);
            return Ok(Compared { page, before: total_before, is_all: true, is_diff: false, any });
        }
        let left_out = LeftOut { lines, omitted, bytes: omitted_bytes };
        let page = page(text, end, Some(left_out));
        Ok(Compared { page, before, is_all, is_diff: true, any })
    }

    /// All of the text, if it fits.
    fn whole(&self, total: u64, room: Room) -> io::Result<Option<String>> {
        if total > room.size as u64 {
            return Ok(None);
        }
        let mut text = String::new();
        Text::new(self, 0).take(total).read_to_string(&mut text)?;
        Ok(Some(text).filter(|text| room.fits(text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::room::Measure;
    use crate::view::tests::reader;

    fn text(compared: &Compared) -> &str {
        match &compared.page.data {
            Data::Text(text) => text,
            Data::Binary(_) => panic!("it is text"),
        }
    }

    fn numbered(lines: u32) -> String {
        (0..lines).map(|n| format!("line \"{n}\"\n")).collect()
    }

    #[test]
    fn changes_are_shown_unless_the_output_itself_is_shorter() {
        let room = Room { size: 3000, measure: Measure::QuotedTwice };
        let compare = |before: &str, now: &str| {
            reader(now).compare(&reader(before), BothPlaces::default(), room).unwrap()
        };
        let many = numbered(60);
        let changed = compare(&many, &many.replace("\"30\"", "thirty"));
        assert!(changed.is_diff && changed.is_all && changed.any, "{changed:?}");
        assert!(text(&changed).contains("\n-line \"30\"\n+line thirty\n"), "{changed:?}");
        for (before, now, any) in
            [("a\n", "a\nb\n", true), (&many, "ok\n", true), ("a\n", "a\n", false)]
        {
            let shown = compare(before, now);
            assert_eq!((text(&shown), shown.is_diff, shown.any), (now, false, any));
            assert_eq!(shown.page.next(), None);
        }
    }

    #[test]
    fn pages_of_changes_follow_each_other_in_both_outputs() {
        let (before, now) = (numbered(3000), numbered(3000).replace("5\"\n", "five\"\n"));
        let (earlier, later) = (reader(&before), reader(&now));
        let room = Room { size: 900, measure: Measure::QuotedTwice };
        let (mut from, mut new, mut lines) = (BothPlaces::default(), 0, 0);
        loop {
            let compared = later.compare(&earlier, from, room).unwrap();
            assert!(room.fits(text(&compared)), "{compared:?}");
            new += text(&compared).lines().filter(|line| line.starts_with('+')).count();
            lines += compared.page.left_out.unwrap().lines;
            from = BothPlaces { now: compared.page.end, before: compared.before };
            if compared.is_all {
                break;
            }
        }
        assert_eq!((new, lines), (300, 3000));
        assert_eq!(from, BothPlaces { now: now.len() as u64, before: before.len() as u64 });
    }
}
