//! Whether what is printed may have colours: on a terminal that has them, unless somebody said no.

use std::io::{self, IsTerminal};

use clap::ColorChoice;

use crate::environment::variable;

/// Whether what goes there may have colours.
pub fn suit(stream: &impl IsTerminal) -> bool {
    choice() == ColorChoice::Always || (choice() == ColorChoice::Auto && stream.is_terminal())
}

/// The same for help and complaints about flags, whose printer looks for the terminal itself.
pub fn choice() -> ColorChoice {
    match () {
        () if variable("NO_COLOR").is_some() => ColorChoice::Never,
        () if variable("CLICOLOR_FORCE").is_some_and(|wanted| wanted != "0") => ColorChoice::Always,
        () if is_dumb() => ColorChoice::Never,
        // Whoever prints help would take it for a yes.
        () if variable("CLICOLOR_FORCE").is_some() && !io::stdout().is_terminal() => {
            ColorChoice::Never
        }
        () => ColorChoice::Auto,
    }
}

/// Whether a terminal can be told to put the cursor elsewhere.
pub fn is_dumb() -> bool {
    variable("TERM").is_none_or(|terminal| terminal == "dumb")
}
