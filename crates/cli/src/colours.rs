//! Whether to print colours: on a terminal that has them, unless a variable says otherwise.

use std::io::{self, IsTerminal};

use clap::ColorChoice;

use crate::environment::variable;

/// Whether to print colours to this stream.
pub fn enabled(stream: &impl IsTerminal) -> bool {
    choice() == ColorChoice::Always || (choice() == ColorChoice::Auto && stream.is_terminal())
}

/// The same for clap, which prints help and errors about flags and looks for the terminal itself.
pub fn choice() -> ColorChoice {
    match () {
        () if variable("NO_COLOR").is_some() => ColorChoice::Never,
        () if variable("CLICOLOR_FORCE").is_some_and(|wanted| wanted != "0") => ColorChoice::Always,
        () if is_dumb() => ColorChoice::Never,
        // clap reads the variable as well, and takes any value for a yes.
        () if variable("CLICOLOR_FORCE").is_some() && !io::stdout().is_terminal() => {
            ColorChoice::Never
        }
        () => ColorChoice::Auto,
    }
}

/// Whether the terminal cannot move its cursor.
pub fn is_dumb() -> bool {
    variable("TERM").is_none_or(|terminal| terminal == "dumb")
}

/// A text in a colour: a number of a colour, or of a style, as terminals know it.
pub fn paint(code: &str, text: &str) -> String {
    format!("\x1b[{code}m{text}\x1b[0m")
}
