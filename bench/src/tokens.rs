//! What a model reads: real outputs in tokens, as they are printed and in every form in which a server can answer.
//!
//! Each sample comes with facts that no short form may lose, such as the names of the tests that fail. They are looked
//! up in each answer that promises to hold them.

mod reading;
mod samples;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use tiktoken_rs::o200k_base_singleton;

use crate::Bench;
use crate::bare;
use crate::client::Client;
use samples::{Sample, samples};

/// What an output can be read as.
const DEFAULT: &str = "default";
const VIEWS: &[&str] = &["full", "folded", "errors"];
const CHANGES: &str = "changes";
const EXTRACTIONS: &[&str] = &["diagnostics", "tests", "table", "json"];

/// The most that the results of tests may take, of what the tests print.
const MOST_OF_TESTS: f64 = 0.05;

/// One line of the table.
pub struct Line {
    name: &'static str,
    /// The tokens of what the command prints, and of each form. `None` if the tool is missing.
    counts: Option<Counts>,
    facts: usize,
    /// Forms and the facts that they lost.
    pub lost: Vec<(&'static str, String)>,
    /// Whether the folded text is not longer than the whole.
    folds: bool,
}

struct Counts {
    raw: usize,
    forms: BTreeMap<&'static str, usize>,
}

/// Measures every sample, and passes each line on as soon as it is known.
pub fn measure(bench: &Bench, mut show: impl FnMut(&Line)) -> Vec<Line> {
    let mut lines = Vec::new();
    for sample in samples(&bench.folder("tokens"), bench.effort.cases) {
        let line = if sample.is_there() { read(bench, &sample) } else { Line::missing(&sample) };
        show(&line);
        lines.push(line);
    }
    lines
}

fn read(bench: &Bench, sample: &Sample) -> Line {
    let raw = printed(&sample.shell_command());
    let mut server = bench.server();
    samples::forget_agents(&mut server);
    server.args(["--timeout", "600"]).current_dir(&sample.folder);
    let mut client = Client::start(server);
    let (default, job) = reading::run(&mut client, &sample.command);
    let mut readings = vec![(DEFAULT, default)];
    for view in VIEWS {
        readings.push((view, job.view(&mut client, view)));
    }
    readings.push((CHANGES, job.changes(&mut client)));
    for kind in sample.extractions {
        readings.push((kind, job.extraction(&mut client, kind)));
    }
    let lost = readings.iter().flat_map(|(form, reading)| {
        let facts = sample.facts_in(form).filter(|fact| !reading.says(fact));
        facts.map(|fact| (*form, fact.to_owned()))
    });
    let lost = lost.collect();
    let text = |wanted| readings.iter().find(|(form, _)| *form == wanted).map(|it| it.1.shown());
    let folds = text("folded").map(|it| it.len()) <= text("full").map(|it| it.len());
    let forms = readings.iter().map(|(form, reading)| (*form, tokens(&reading.answer))).collect();
    let counts = Some(Counts { raw: tokens(&raw), forms });
    Line { name: sample.name, counts, facts: sample.facts(), lost, folds }
}

fn tokens(text: &str) -> usize {
    o200k_base_singleton().count_ordinary(text)
}

/// What a command prints without a server.
fn printed(command: &str) -> String {
    let (mut shell, mut pipe) = bare::spawn(command);
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut pipe, &mut bytes).expect("the pipe is open");
    shell.wait().expect("it is our child");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The forms of an output, as columns.
fn forms() -> impl Iterator<Item = &'static str> {
    let forms = std::iter::once(&DEFAULT).chain(VIEWS).chain([&CHANGES]).chain(EXTRACTIONS);
    forms.copied()
}

pub fn head() -> String {
    let (titles, rules): (Vec<_>, Vec<_>) =
        forms().map(|form| (format!(" {form:>11} |"), format!(" {:>11} |", "---:"))).unzip();
    format!(
        "| {:22} | {:>6} |{} facts kept |\n| {:22} | {:>6} |{} ---        |",
        "tokens of",
        "raw",
        titles.concat(),
        "---",
        "---:",
        rules.concat()
    )
}

impl Line {
    fn missing(sample: &Sample) -> Self {
        Self { name: sample.name, counts: None, facts: 0, lost: Vec::new(), folds: true }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(Counts { raw, forms }) = &self.counts else {
            let empty = " |".repeat(forms().count());
            return write!(formatter, "| {:22} | not installed |{empty} |", self.name);
        };
        write!(formatter, "| {:22} | {raw:>6} |", self.name)?;
        for form in self::forms() {
            let count = forms.get(form).map(usize::to_string).unwrap_or_default();
            write!(formatter, " {count:>11} |")?;
        }
        match &*self.lost {
            [] if self.facts == 0 => write!(formatter, " {:10} |", ""),
            [] => write!(formatter, " {:10} |", format!("all {}", self.facts)),
            lost => write!(formatter, " {} lost |", lost.len()),
        }
    }
}

/// What should hold for all lines together, and whether it does.
pub fn targets(lines: &[Line]) -> String {
    let answer = |met: bool| if met { "yes" } else { "no" };
    let of_tests = lines.iter().filter_map(|line| {
        let counts = line.counts.as_ref()?;
        Some(*counts.forms.get("tests")? as f64 / counts.raw as f64)
    });
    let most = of_tests.fold(0.0, f64::max);
    format!(
        "| target | met |\n| --- | --- |\n\
         | the default answers, and other forms that promise it, have all facts | {} |\n\
         | `folded` is never longer than the whole output | {} |\n\
         | `tests` takes at most {} % of what failing tests print | {}: {:.1} % |",
        answer(lines.iter().all(|line| line.lost.is_empty())),
        answer(lines.iter().all(|line| line.folds)),
        MOST_OF_TESTS * 100.0,
        answer(most <= MOST_OF_TESTS),
        most * 100.0,
    )
}

/// Ends the benchmark if any fact was lost.
pub fn check(lines: &[Line]) {
    let lost = lines.iter().flat_map(|line| {
        line.lost.iter().map(|(form, fact)| format!("{}, {form}: `{fact}`", line.name))
    });
    let lost: Vec<_> = lost.collect();
    assert!(lost.is_empty(), "these facts are missing:\n{}", lost.join("\n"));
}

/// Where a tool is, if it is installed.
fn find(tool: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(tool)).find(|path| Path::is_file(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(lost: Vec<(&'static str, String)>) -> Line {
        let forms = BTreeMap::from([("default", 90), ("tests", 6)]);
        let counts = Some(Counts { raw: 100, forms });
        Line { name: "`x`", counts, facts: 2, lost, folds: true }
    }

    #[test]
    fn a_line_shows_what_each_form_takes_and_whether_all_facts_are_there() {
        let text = line(Vec::new()).to_string();
        let cells: Vec<_> = text.trim_matches('|').split('|').map(str::trim).collect();
        assert_eq!(cells, ["`x`", "100", "90", "", "", "", "", "", "6", "", "", "all 2"]);
        let targets = targets(&[line(Vec::new())]);
        assert!(targets.contains("| no: 6.0 % |") && !targets.contains("facts | no"), "{targets}");
    }

    #[test]
    #[should_panic(expected = "`x`, folded: `test_that_fails`")]
    fn a_missing_fact_ends_the_benchmark() {
        check(&[line(vec![("folded", "test_that_fails".to_owned())])]);
    }
}
