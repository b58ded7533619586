//! The history as lines for people.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;

use mcpz_audit::visible;
use mcpz_output::Grep;

use super::entry::Entry;
use crate::colours::paint;
use crate::{colours, environment, terminal};

/// How much of a directory is shown on a terminal.
const MAX_DIRECTORY: usize = 28;

/// Red, green, and less bright than the rest.
const FAILED: &str = "31";
const RUNNING: &str = "32";
const DIM: &str = "2";
const MATCH: &str = "1;31";

struct Table<'a> {
    pattern: Option<&'a Grep>,
    /// The columns of the terminal, if it is one.
    width: Option<usize>,
    coloured: bool,
    /// The width of the columns before the command, but for the first two.
    owner: Option<usize>,
    ending: usize,
    directory: usize,
}

pub fn print(entries: &[Entry], pattern: Option<&Grep>) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    let width = terminal::width(&stdout);
    let longest = |texts: &mut dyn Iterator<Item = String>| {
        texts.map(|text| text.chars().count()).max().unwrap_or(0)
    };
    let owners: BTreeSet<_> = entries.iter().map(|entry| &entry.owner).collect();
    let table = Table {
        pattern,
        width,
        coloured: colours::enabled(&stdout),
        owner: (owners.len() > 1)
            .then(|| longest(&mut owners.iter().map(|it| visible(it))).max("OWNER".len())),
        ending: longest(&mut entries.iter().map(|it| it.ending.words())).max("RESULT".len()),
        directory: longest(&mut entries.iter().map(|it| directory(it, width.is_some())))
            .max("DIRECTORY".len()),
    };
    let head = table.columns(["RUN", "TIME (UTC)", "OWNER", "RESULT", "TOOK", "DIRECTORY"]);
    writeln!(stdout, "{}", table.fit(&(head + "COMMAND")))?;
    for entry in entries {
        table.entry(&mut stdout, entry)?;
    }
    Ok(())
}

impl Table<'_> {
    /// The columns before the command.
    fn columns(&self, [run, time, owner, ending, took, directory]: [&str; 6]) -> String {
        let (endings, directories) = (self.ending, self.directory);
        let owner = self.owner.map(|width| format!("{owner:<width$}  ")).unwrap_or_default();
        format!(
            "{run:<8}  {time:<19}  {owner}{ending:<endings$}  {took:>7}  {directory:<directories$}  "
        )
    }

    fn entry(&self, to: &mut impl Write, entry: &Entry) -> io::Result<()> {
        let words = visible(&entry.ending.words());
        let time = entry.time.get(..19).unwrap_or(&entry.time).replace('T', " ");
        let took = entry.ending.duration_ms.map(duration).unwrap_or_default();
        let directory = directory(entry, self.width.is_some());
        let run = visible(entry.run.get(..8).unwrap_or(&entry.run));
        let columns = self.columns([
            &run,
            &visible(&time),
            &visible(&entry.owner),
            &words,
            &took,
            &directory,
        ]);
        let command = match &entry.ending.reason {
            Some(reason) => format!("{} ({})", visible(&entry.command), visible(reason)),
            None => visible(&entry.command),
        };
        let line = self.fit(&(columns.clone() + &command));
        writeln!(to, "{}", self.colour(entry, &line, columns.chars().count()))?;
        for line in &entry.matches {
            let line = self.fit(&format!("    {}", visible(line)));
            // Without the indent, a pattern may match the beginning of a line.
            writeln!(to, "    {}", self.mark(line.get(4..).unwrap_or_default()))?;
        }
        if let Some(how) = entry.read_output.as_ref().filter(|_| !entry.matches.is_empty()) {
            let more = if entry.more_matches { "more lines match" } else { "all of its output" };
            let line = self.fit(&format!("    … {more}: {how}"));
            writeln!(to, "{}", if self.coloured { paint(DIM, &line) } else { line })?;
        }
        Ok(())
    }

    fn fit(&self, line: &str) -> String {
        terminal::fit(line, self.width)
    }

    /// The line with its end in colour, and everything else before the command less bright.
    fn colour(&self, entry: &Entry, line: &str, command_at: usize) -> String {
        if !self.coloured {
            return line.to_owned();
        }
        let ending_at = 8 + 2 + 19 + 2 + self.owner.map_or(0, |width| width + 2);
        let (before, rest) = split(line, ending_at);
        let (ending, rest) = split(rest, self.ending);
        let (after, command) = split(rest, command_at.saturating_sub(ending_at + self.ending));
        let ending = match entry.ending.result.as_str() {
            _ if entry.ending.is_failure() => paint(FAILED, ending),
            "running" => paint(RUNNING, ending),
            _ => paint(DIM, ending),
        };
        format!("{}{ending}{}{}", paint(DIM, before), paint(DIM, after), self.mark(command))
    }

    /// The text with its match in colour.
    fn mark(&self, text: &str) -> String {
        let found = self.pattern.filter(|_| self.coloured).and_then(|it| it.find(text));
        let parts = found.and_then(|at| {
            Some((text.get(..at.start)?, text.get(at.clone())?, text.get(at.end..)?))
        });
        match parts {
            Some((before, found, after)) if !found.is_empty() => {
                format!("{before}{}{after}", paint(MATCH, found))
            }
            _ => text.to_owned(),
        }
    }
}

/// The first characters of a text, and the rest.
fn split(text: &str, characters: usize) -> (&str, &str) {
    let at = text.char_indices().nth(characters).map_or(text.len(), |(at, _)| at);
    text.split_at(at)
}

/// Where a command ran. On a terminal, the end of a long path.
fn directory(entry: &Entry, short: bool) -> String {
    let home = environment::home().filter(|home| home.components().count() > 1);
    let path = Path::new(&entry.directory);
    let below = home.and_then(|home| path.strip_prefix(home).ok().map(Path::to_owned));
    let path = match (&entry.place, below) {
        (None, Some(below)) if below.as_os_str().is_empty() => "~".to_owned(),
        (None, Some(below)) => format!("~/{}", below.display()),
        (None, None) => entry.directory.clone(),
        (Some(place), _) => format!("{place}:{}", entry.directory),
    };
    let path = visible(&path);
    let length = path.chars().count();
    match short && length > MAX_DIRECTORY {
        true => ['…'].into_iter().chain(path.chars().skip(length - MAX_DIRECTORY + 1)).collect(),
        false => path,
    }
}

/// A duration in a few characters.
fn duration(milliseconds: u64) -> String {
    match milliseconds {
        0..1000 => format!("{milliseconds}ms"),
        1000..60_000 => format!("{}.{}s", milliseconds / 1000, milliseconds / 100 % 10),
        _ => crate::jobs::time(std::time::Duration::from_millis(milliseconds)),
    }
}
