//! A script as the shell would understand it: every command in it, wherever it hides.
//!
//!     text ─▶ Reader (bytes, line continuations) ─▶ words ─▶ grammar ─▶ Script { commands, … }
//!
//! Closed world: what is not known for sure is [`Trouble`], never skipped. Commands come out flat, in
//! the order they are read, because a judge has to look at each of them no matter whether it will run.

mod compounds;
mod documents;
mod expansion;
mod grammar;
mod listing;
mod reader;
mod redirects;
mod words;

use std::borrow::Cow;
use std::ops::Range;

pub use reader::Reader;

/// Bytes of the text that was sent; for text inside of text (a backquoted part, the argument of
/// `eval`) the place of the whole.
pub type Span = Range<usize>;

/// The longest text that is read.
pub const MAX_TEXT: usize = 64 * 1024;
/// The most commands in a text, those inside of others included.
pub const MAX_COMMANDS: usize = 256;
/// How deep things may stand in one another.
pub const MAX_DEPTH: u32 = 32;
/// How many bytes are looked at in all before we give up. Some constructs have to be read twice; a
/// text made of nothing else would take for ever. It is what can be looked at in well under 50 ms.
const MAX_STEPS: u32 = 1024 * 1024;

/// The language a text is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shell {
    /// What POSIX has, as `dash` reads it.
    Sh,
    Bash,
}

/// Why a text is not understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    pub span: Span,
    pub what: &'static str,
}

/// All that was found in a text.
#[derive(Debug, Default)]
pub struct Script {
    pub commands: Vec<Simple>,
    /// Functions that are defined for sure, with the number of commands read before each.
    pub functions: Vec<(String, usize)>,
    /// Variables that get a value otherwise than by an assignment: `for x`, `${x:=…}`.
    pub set: Vec<(String, Span)>,
    /// Variables in arithmetic, where they can only become numbers.
    pub counted: Vec<(String, Span)>,
    /// Variables that hold the number of a descriptor.
    pub descriptors: Vec<String>,
    /// The variables of loops, each with the words it takes.
    loops: Vec<(String, Vec<Word>)>,
    /// Texts that are code if something evaluates them: `'a[$(rm x)]'`.
    pub suspects: Vec<(String, Span)>,
    /// Whether something evaluates text: arithmetic, subscripts, `[[ -v`.
    pub evaluates: bool,
    /// The bodies of here-documents, by the number their redirection has.
    documents: Vec<Option<Word>>,
    pipelines: usize,
    steps: u32,
}

/// A command without the shell's own words around it.
#[derive(Debug, Default, Clone)]
pub struct Simple {
    pub assignments: Vec<Assignment>,
    pub words: Vec<Word>,
    pub redirects: Vec<Redirect>,
    /// Whether its standard input is another command's output.
    pub piped: bool,
    /// The same for all commands of a pipeline.
    pub pipeline: usize,
    /// Whether it may run more than once or later: in a loop or a function.
    pub repeats: bool,
    pub span: Span,
}

#[derive(Debug, Clone)]
pub struct Assignment {
    pub name: String,
    pub value: Word,
    /// `+=`
    pub appends: bool,
}

/// What the shell makes one argument of, or several, or none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Word {
    pub pieces: Vec<Piece>,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    Text {
        text: String,
        quoted: bool,
    },
    /// What only the run will know.
    Unknown {
        /// Whether it can become several words, or none.
        splits: bool,
        origin: Origin,
    },
}

/// Where something comes from that only the run will know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A variable's value as it is.
    Variable(String),
    /// What commands print, by their numbers in the script.
    Commands(Range<usize>),
    /// A name the shell makes for a pipe.
    Pipe,
    /// A file's name, which something lists.
    Listed,
    Number,
    Other,
}

impl Origin {
    /// What stands in `${…}` or behind `$`.
    fn of_name(text: &str) -> Self {
        match reader::is_name(text) {
            true => Self::Variable(text.to_owned()),
            false if text.starts_with('#') => Self::Number,
            false => Self::Other,
        }
    }
}

#[derive(Debug, Clone)]
pub struct Redirect {
    /// The descriptor; `None` for the operator's own, or one that a variable holds.
    pub descriptor: Option<u32>,
    pub way: Way,
    pub span: Span,
}

#[derive(Debug, Clone)]
pub enum Way {
    Read(Word),
    /// `>`, `>>`, `>|`, `<>`, `&>`, `&>>`.
    Write(Word),
    /// `>&` and `<&`: another descriptor, or a file if it is no number.
    Copy(Word),
    /// Text that stands in the script: `<<<`.
    Text(Word),
    /// The number of a here-document.
    Document(usize),
}

impl Script {
    /// Reads a text. `within` is where it stands if it is part of another.
    pub fn read(text: &str, shell: Shell, within: Option<Span>) -> Result<Self, Trouble> {
        let mut script = Self::default();
        let mut reader = Reader::new(text, shell, within, &mut script);
        if text.len() > MAX_TEXT {
            return Err(reader.trouble("it is longer than 64 KiB"));
        }
        reader.script()?;
        Ok(script)
    }

    /// The variables that get a value, each with what it is unless only the run will know.
    pub fn values(&self) -> impl Iterator<Item = (&str, Option<&Word>)> {
        let assigned = self.commands.iter().flat_map(|command| &command.assignments);
        let assigned = assigned.map(|assignment| {
            let whole = Some(&assignment.value).filter(|_| !assignment.appends);
            (assignment.name.as_str(), whole)
        });
        let looped = self
            .loops
            .iter()
            .flat_map(|(name, words)| words.iter().map(move |word| (name.as_str(), Some(word))));
        let is_loop = |name: &str| {
            self.loops.iter().any(|(looped, words)| looped == name && !words.is_empty())
        };
        let set = self.set.iter().filter(move |(name, _)| !is_loop(name));
        assigned.chain(looped).chain(set.map(|(name, _)| (name.as_str(), None)))
    }

    /// The text a command finds on its standard input, or the word for a file only the run will know.
    pub fn input<'a>(&'a self, command: &'a Simple) -> Option<&'a Word> {
        let to_stdin = |redirect: &&Redirect| match redirect.descriptor {
            Some(number) => number == 0,
            None => !matches!(redirect.way, Way::Write(_)),
        };
        match &command.redirects.iter().rev().find(to_stdin)?.way {
            Way::Text(word) => Some(word),
            Way::Document(number) => self.documents.get(*number)?.as_ref(),
            Way::Read(word) => Some(word).filter(|word| word.data().is_none()),
            _ => None,
        }
    }

    /// Reads a text as something that evaluates it would: what is in it to be replaced.
    pub fn evaluated(text: &str, shell: Shell, span: Span) -> Result<Self, Trouble> {
        let mut script = Self::default();
        Reader::new(text, shell, Some(span), &mut script).expanded_text()?;
        Ok(script)
    }
}

impl Word {
    /// A word whose text is known.
    pub fn known(text: impl Into<String>, span: Span) -> Self {
        Self { pieces: vec![Piece::Text { text: text.into(), quoted: true }], span }
    }

    /// A word nobody knows, or any number of them.
    pub fn unknown(splits: bool, span: Span) -> Self {
        Self { pieces: vec![Piece::Unknown { splits, origin: Origin::Other }], span }
    }

    /// What the word is, if the shell makes nothing else of it.
    pub fn literal(&self) -> Option<Cow<'_, str>> {
        let plain = !self.is_pattern() && !self.begins_with_tilde();
        self.data().filter(|_| plain)
    }

    /// What the word is but for the names of files that a pattern in it, or a tilde, may become.
    pub fn data(&self) -> Option<Cow<'_, str>> {
        if self.has_braces() {
            return None;
        }
        if let [Piece::Text { text, .. }] = self.pieces.as_slice() {
            return Some(text.into());
        }
        let text = self.pieces.iter().map(|piece| match piece {
            Piece::Text { text, .. } => Some(text.as_str()),
            Piece::Unknown { .. } => None,
        });
        text.collect::<Option<String>>().map(Cow::from)
    }

    /// Whether it is exactly one word when the command runs.
    pub fn is_one(&self) -> bool {
        let splits = |piece: &Piece| matches!(piece, Piece::Unknown { splits: true, .. });
        !self.pieces.iter().any(splits) && !self.is_pattern() && !self.has_braces()
    }

    /// Whether it is a pipe the shell makes a name for, and nothing else.
    pub fn is_pipe(&self) -> bool {
        matches!(self.pieces.as_slice(), [Piece::Unknown { origin: Origin::Pipe, .. }])
    }

    pub fn begins_with_tilde(&self) -> bool {
        matches!(self.pieces.first(), Some(Piece::Text { text, quoted: false }) if text.starts_with('~'))
    }

    /// The text before the first part that only the run will know.
    pub fn beginning(&self) -> String {
        if self.has_braces() {
            return String::new();
        }
        let known = self.pieces.iter().map_while(|piece| match piece {
            Piece::Text { text, .. } => Some(text.as_str()),
            Piece::Unknown { .. } => None,
        });
        known.collect()
    }

    /// The text after the last part that only the run will know.
    pub fn end(&self) -> String {
        if self.has_braces() {
            return String::new();
        }
        let known = self.pieces.iter().rev().map_while(|piece| match piece {
            Piece::Text { text, .. } => Some(text.as_str()),
            Piece::Unknown { .. } => None,
        });
        known.collect::<Vec<_>>().into_iter().rev().collect()
    }

    /// The words that braces in it make of it: `a{b,c}` is `ab` and `ac`. The word itself if there are
    /// none, or if they are more than a list.
    pub fn alternatives(&self) -> Vec<Self> {
        const MOST: usize = 64;
        let mut found = vec![self.clone()];
        while let Some(at) = found.iter().position(Self::has_braces) {
            let Some(parts) = found[at].split_braces() else { return vec![self.clone()] };
            found.splice(at..=at, parts);
            if found.len() > MOST {
                return vec![self.clone()];
            }
        }
        found
    }

    /// The words the first list in braces stands for.
    fn split_braces(&self) -> Option<Vec<Self>> {
        let (at, text) = self.pieces.iter().enumerate().find_map(|(at, piece)| match piece {
            Piece::Text { text, quoted: false } if text.contains('{') => Some((at, text)),
            _ => None,
        })?;
        let (head, rest) = text.split_once('{')?;
        let (list, tail) = rest.split_once('}')?;
        if list.contains('{') || list.contains("..") || !list.contains(',') {
            return None;
        }
        let words = list.split(',').map(|part| {
            let mut word = self.clone();
            word.pieces[at] = Piece::Text { text: [head, part, tail].concat(), quoted: false };
            word
        });
        Some(words.collect())
    }

    /// Whether the shell may replace it by names of files.
    fn is_pattern(&self) -> bool {
        let brackets = |text: &str| text.find('[').is_some_and(|at| text[at..].contains(']'));
        let mixed = self.pieces.len() > 1 && self.unquoted().any(|text| text.contains('['));
        mixed || self.unquoted().any(|text| text.contains(['*', '?']) || brackets(text))
    }

    fn unquoted(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Text { text, quoted: false } => Some(text.as_str()),
            _ => None,
        })
    }

    /// Whether it has `{a,b}` or `{1..3}` that are not quoted.
    pub fn has_braces(&self) -> bool {
        let mut open = 0;
        let mut parts = false;
        let mut last = ' ';
        for character in self.unquoted().flat_map(str::chars) {
            match character {
                '{' => open += 1,
                ',' if open > 0 => parts = true,
                '.' if open > 0 && last == '.' => parts = true,
                '}' if open > 0 && parts => return true,
                '}' if open > 0 => open -= 1,
                _ => {}
            }
            last = character;
        }
        false
    }
}
