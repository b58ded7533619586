//! Whether what is printed may have colours: on a terminal that has them, unless somebody said no.

use std::io::IsTerminal;

use clap::ColorChoice;

use crate::config::variable;

/// Whether what goes there may have colours.
pub fn suit(stream: &impl IsTerminal) -> bool {
    !are_unwanted() && (are_forced() || stream.is_terminal())
}

/// The same for help and complaints about flags, whose printer looks for the terminal itself.
pub fn choice() -> ColorChoice {
    match (are_unwanted(), are_forced()) {
        (true, _) => ColorChoice::Never,
        (false, true) => ColorChoice::Always,
        (false, false) => ColorChoice::Auto,
    }
}

/// Whether a terminal can be told to put the cursor elsewhere.
pub fn is_dumb() -> bool {
    variable("TERM").is_none_or(|terminal| terminal == "dumb")
}

fn are_unwanted() -> bool {
    variable("NO_COLOR").is_some() || is_dumb()
}

fn are_forced() -> bool {
    variable("CLICOLOR_FORCE").is_some()
}
