//! The terminal that something is printed to, if it is one.

use std::os::fd::AsFd;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The number of columns.
pub fn width(stream: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    Some(usize::from(size.ws_col)).filter(|width| *width > 1)
}

/// The line as it is shown where there are so many columns, or where nobody counts them.
pub fn fit(line: &str, width: Option<usize>) -> String {
    width.map_or_else(|| line.to_owned(), |width| cut(line, width))
}

/// The start of a line, if it takes more columns than there are.
pub fn cut(line: &str, width: usize) -> String {
    if line.width() <= width {
        return line.to_owned();
    }
    let mut left = width.saturating_sub(1);
    let fits = |c: &char| {
        let rest = left.checked_sub(c.width().unwrap_or(0));
        left = rest.unwrap_or(left);
        rest.is_some()
    };
    line.chars().take_while(fits).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_does_not_fit_is_cut() {
        assert_eq!((cut("grün", 4), cut("grüner", 4)), ("grün".into(), "grü…".into()));
        assert_eq!((cut("漢字", 4), cut("漢字漢", 4)), ("漢字".into(), "漢…".into()));
        assert_eq!((cut("", 0), cut("x", 1), cut("xy", 1)), ("".into(), "x".into(), "…".into()));
    }
}
