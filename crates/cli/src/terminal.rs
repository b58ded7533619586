//! The terminal that something is printed to, if it is one.

use std::os::fd::AsFd;

/// The number of columns.
pub fn width(stream: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    Some(usize::from(size.ws_col)).filter(|width| *width > 1)
}

/// The start of a line, if it has more characters than fit.
pub fn cut(line: &str, width: usize) -> String {
    match line.chars().count() > width {
        true => line.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
        false => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_does_not_fit_is_cut() {
        assert_eq!((cut("grün", 4), cut("grüner", 4)), ("grün".into(), "grü…".into()));
        assert_eq!((cut("", 0), cut("x", 1), cut("xy", 1)), ("".into(), "x".into(), "…".into()));
    }
}
