//! Flags of settings: what a row says about its flag, and the argument clap is given for it.

use std::path::PathBuf;

use clap::builder::ValueParser;
use clap::{Arg, ArgAction, ArgMatches, value_parser};

/// The flag of a setting.
///
/// The help of a command fits one screen, 40 lines of 100 characters (`tests/help.rs`). Every flag therefore has one
/// line, which includes the default, and no list of possible values; most settings have no flag.
#[derive(Debug, Clone, Copy)]
pub struct Flag {
    pub name: &'static str,
    pub place: HelpPosition,
    /// What help says. A default that has a value is added to it.
    pub help: &'static str,
    pub short: Option<char>,
    /// What help calls the value; a switch has none.
    pub value: Option<&'static str>,
    pub scope: Scope,
    /// Another flag that must be given as well.
    pub requires: Option<&'static str>,
    /// Whether only the manual shows it, because the screen has no line left.
    pub hidden: bool,
}

/// A flag with what the type of its setting means to clap.
#[derive(Debug, Clone, Copy)]
pub struct TypedFlag {
    pub flag: Flag,
    parser: fn() -> ValueParser,
    action: fn() -> ArgAction,
}

/// Where help shows a flag: under which heading, and at which place there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HelpPosition {
    Options(u8),
    Running(u8),
    Bounds(u8),
    Http(u8),
}

impl HelpPosition {
    fn heading(self) -> Option<&'static str> {
        match self {
            Self::Options(_) => None,
            Self::Running(_) => Some("Running commands"),
            Self::Bounds(_) => Some("What commands may do"),
            Self::Http(_) => Some("HTTP"),
        }
    }
}

/// Which commands have a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Every command that runs or judges commands.
    Shell,
    /// `mcpz server shell` and `mcpz install`, which writes its command line. They have the flags above as well.
    Stdio,
    /// `mcpz server shell` alone, which has all flags.
    Server,
}

impl Flag {
    pub const fn new(name: &'static str, place: HelpPosition, help: &'static str) -> Self {
        let (short, value, requires) = (None, None, None);
        Self { name, place, help, short, value, scope: Scope::Shell, requires, hidden: false }
    }

    /// A flag that is for HTTP alone.
    pub const fn http(name: &'static str, place: u8, help: &'static str) -> Self {
        let requires = Some("http");
        Self { scope: Scope::Server, requires, ..Self::new(name, HelpPosition::Http(place), help) }
    }

    /// The flag of a setting of this type.
    pub fn typed<T: FromFlag>(self) -> TypedFlag {
        TypedFlag { flag: self, parser: T::parser, action: T::action }
    }

    /// The value that was given, to a command of this scope.
    pub fn read<T: FromFlag>(&self, flags: &ArgMatches, scope: Scope) -> Option<T> {
        if self.scope <= scope { T::read(flags, self.name) } else { None }
    }
}

impl TypedFlag {
    /// The flag of a setting with this default, as a file writes it, and this variable.
    pub fn argument(self, default: Option<String>, variable: Option<&str>) -> Arg {
        let Self { flag, parser, action } = self;
        let default = default.filter(|_| action().takes_values());
        let argument = Arg::new(flag.name)
            .long(flag.name)
            .short(flag.short)
            .help(flag.help.to_owned() + &shown_default(default, variable))
            .value_parser(parser())
            .value_name(flag.value)
            .action(action())
            .hide(flag.hidden)
            .hide_possible_values(action().takes_values());
        let argument = flag.requires.into_iter().fold(argument, Arg::requires);
        // Without a heading, it goes where the command puts flags of this kind.
        match flag.place.heading() {
            Some(heading) => argument.help_heading(heading),
            None => argument,
        }
    }
}

/// A default as help shows it: without the quotes and brackets of a file.
fn shown_default(default: Option<String>, variable: Option<&str>) -> String {
    let plain = default.map(|text| text.trim_matches(['"', '[', ']']).to_owned());
    match (plain, variable) {
        (None, _) => String::new(),
        (Some(default), None) => format!(" [default: {default}]"),
        (Some(default), Some(variable)) => format!(" [default: ${variable}, or {default}]"),
    }
}

/// A type that a flag can have.
pub trait FromFlag: Clone + Send + Sync + 'static {
    fn parser() -> ValueParser;

    fn action() -> ArgAction {
        ArgAction::Set
    }

    fn read(flags: &ArgMatches, name: &str) -> Option<Self> {
        flags.get_one::<Self>(name).cloned()
    }
}

impl<T: FromFlag> FromFlag for Option<T> {
    fn parser() -> ValueParser {
        T::parser()
    }

    fn action() -> ArgAction {
        T::action()
    }

    fn read(flags: &ArgMatches, name: &str) -> Option<Self> {
        T::read(flags, name).map(Some)
    }
}

/// A switch, which can only turn something on.
impl FromFlag for bool {
    fn parser() -> ValueParser {
        value_parser!(bool)
    }

    fn action() -> ArgAction {
        ArgAction::SetTrue
    }

    fn read(flags: &ArgMatches, name: &str) -> Option<Self> {
        flags.get_flag(name).then_some(true)
    }
}

/// A flag that can be given again.
impl FromFlag for Vec<String> {
    fn parser() -> ValueParser {
        String::parser()
    }

    fn action() -> ArgAction {
        ArgAction::Append
    }

    fn read(flags: &ArgMatches, name: &str) -> Option<Self> {
        Some(flags.get_many::<String>(name)?.cloned().collect())
    }
}

impl FromFlag for String {
    fn parser() -> ValueParser {
        value_parser!(String)
    }
}

impl FromFlag for PathBuf {
    fn parser() -> ValueParser {
        value_parser!(PathBuf)
    }
}

#[derive(Debug, thiserror::Error)]
#[error("it must be a whole number")]
pub struct NotWholeNumber;

pub fn whole_number(text: &str) -> Result<usize, NotWholeNumber> {
    text.parse().map_err(|_| NotWholeNumber)
}

impl FromFlag for usize {
    fn parser() -> ValueParser {
        ValueParser::new(whole_number)
    }
}
