//! `mcpz audit`: shows and verifies the records of what was run and refused.

use std::collections::HashMap;
use std::error::Error;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use mcpz_audit::{AuditTail, Verified, audit_lines, verify, visible};
use serde_json::{Map, Value};

use crate::args::{Audit, AuditFlags};
use crate::{settings, setup, terminal};

/// How many faults are listed one by one.
const MAX_FAULTS: usize = 20;

/// How many earlier records to search for the start of a run, to say which command has ended.
const LOOK_BACK: usize = 1000;

/// How often to look for new records.
const INTERVAL: Duration = Duration::from_millis(200);

#[derive(Debug, thiserror::Error)]
enum AuditError {
    #[error("there is no record of `{0}`")]
    UnknownRun(String),
    #[error(
        "`{id}` matches {} runs, such as {} and {}; use a longer prefix", runs.len(), runs[0], runs[1]
    )]
    Ambiguous { id: String, runs: Vec<String> },
    #[error("cannot read the records in {}; choose others with --folder or --config", folder.display())]
    Unreadable { folder: PathBuf, source: mcpz_audit::Error },
}

pub fn run(audit: Audit) -> Result<ExitCode, Box<dyn Error>> {
    match audit {
        Audit::Verify(flags) => return check(flags),
        Audit::Tail { lines, follow, audit } => tail(audit, lines, follow)?,
        Audit::Show { id, audit } => show(audit, &id)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The folder of the records.
pub fn folder(flags: AuditFlags) -> Result<PathBuf, Box<dyn Error>> {
    Ok(match flags.folder {
        Some(folder) => folder,
        None => setup::audit_folder(&settings::load_file(flags.config)?.audit)?,
    })
}

/// Reads from the folder of the records.
fn read<T>(
    flags: AuditFlags,
    read: impl FnOnce(&Path) -> Result<T, mcpz_audit::Error>,
) -> Result<T, Box<dyn Error>> {
    let folder = folder(flags)?;
    Ok(read(&folder).map_err(|source| AuditError::Unreadable { folder, source })?)
}

fn check(flags: AuditFlags) -> Result<ExitCode, Box<dyn Error>> {
    let Verified { records, files, first, torn, waiting, unended, faults } = read(flags, verify)?;
    let all =
        format!("{} in {}", count(records, "record", "records"), count(files, "file", "files"));
    let mut stdout = io::stdout().lock();
    if torn > 0 {
        let lines = count(torn, "line was", "lines were");
        writeln!(stdout, "{lines} cut off while being written")?;
    }
    if waiting > 0 {
        let records = count(waiting, "record is", "records are");
        writeln!(stdout, "{records} waiting to join the trail")?;
    }
    if unended > 0 {
        let runs = count(unended, "run has no end: its", "runs have no end: their");
        writeln!(stdout, "{runs} server is gone")?;
    }
    if first > 1 {
        writeln!(stdout, "records before {first} were deleted by rotation (see `keep`)")?;
    }
    if faults.is_empty() {
        writeln!(stdout, "{all}, none missing")?;
        return Ok(ExitCode::SUCCESS);
    }
    for fault in faults.iter().take(MAX_FAULTS) {
        writeln!(stdout, "{fault}")?;
    }
    if let Some(more) = faults.len().checked_sub(MAX_FAULTS).filter(|more| *more > 0) {
        writeln!(stdout, "and {more} more")?;
    }
    writeln!(stdout, "{all}; the trail is not intact")?;
    Ok(ExitCode::FAILURE)
}

fn count(number: u64, one: &str, many: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {many}"),
    }
}

fn tail(flags: AuditFlags, count: usize, follow: bool) -> Result<(), Box<dyn Error>> {
    let (mut tail, lines) =
        read(flags, |folder| AuditTail::last(folder, count.saturating_add(LOOK_BACK)))?;
    let mut printer = Printer { runs: HashMap::new() };
    let earlier = lines.len().saturating_sub(count);
    for line in &lines[..earlier] {
        printer.line(line);
    }
    let mut stdout = io::stdout().lock();
    for line in &lines[earlier..] {
        writeln!(stdout, "{}", printer.line(line))?;
    }
    if !follow {
        return Ok(());
    }
    loop {
        stdout.flush()?;
        std::thread::sleep(INTERVAL);
        for line in tail.more()? {
            writeln!(stdout, "{}", printer.line(&line))?;
        }
    }
}

/// Formats each record as a line.
struct Printer {
    /// The tools and commands of runs that have not ended.
    runs: HashMap<String, (String, String)>,
}

impl Printer {
    fn line(&mut self, line: &str) -> String {
        let Ok(Value::Object(record)) = serde_json::from_str(line) else {
            return shorten(&format!("not a record: {}", visible(line)));
        };
        let (event, id) = (text(&record, "event"), text(&record, "id"));
        let (tool, subject) = match event {
            "end" => self.runs.remove(id).unwrap_or_default(),
            _ => (text(&record, "tool").to_owned(), subject(&record)),
        };
        let line = format!(
            "{} {:8} {tool:17} {:12} {subject}",
            text(&record, "time"),
            id.get(..8).unwrap_or(id),
            happened(&record),
        );
        if event == "start" {
            self.runs.insert(id.to_owned(), (tool, subject));
        }
        shorten(visible(&line).trim_end())
    }
}

fn text<'a>(record: &'a Map<String, Value>, field: &str) -> &'a str {
    record.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// The event of a record, in a word or two.
fn happened(record: &Map<String, Value>) -> String {
    let milliseconds = record.get("duration_ms").and_then(Value::as_u64).unwrap_or_default();
    let end = match text(record, "result") {
        "exited" => format!("exit {}", record.get("exit_code").unwrap_or(&Value::Null)),
        "signalled" => text(record, "signal").to_owned(),
        result => result.replace('_', " "),
    };
    match text(record, "event") {
        "start" => "run".to_owned(),
        "end" => format!("{end} {milliseconds} ms"),
        event => event.to_owned(),
    }
}

/// The command of a record, or what was typed.
fn subject(record: &Map<String, Value>) -> String {
    let words = record.get("argv").and_then(Value::as_array);
    let words = words.map(|words| words.iter().filter_map(Value::as_str).collect::<Vec<_>>());
    let command = match (record.get("command").and_then(Value::as_str), words) {
        (Some(command), _) => command.to_owned(),
        (None, Some(words)) => words.join(" "),
        (None, None) => match (record.get("command_bytes"), record.get("input_bytes")) {
            (Some(bytes), _) => format!("({bytes} bytes)"),
            (None, Some(bytes)) => typed(record, bytes),
            (None, None) => text(record, "what").to_owned(),
        },
    };
    match text(record, "reason") {
        "" => command,
        reason => format!("{command} ({reason})"),
    }
}

/// What was typed into a job: the text, then the keys.
fn typed(record: &Map<String, Value>, bytes: &Value) -> String {
    let keys = record.get("keys").and_then(Value::as_array);
    let keys = keys.into_iter().flatten().filter_map(Value::as_str);
    let eof = record.contains_key("eof").then_some("eof");
    let keys: Vec<_> = keys.chain(eof).map(|key| format!("<{key}>")).collect();
    let input = match text(record, "input") {
        "" if !record.contains_key("keys") && bytes != 0 => format!("({bytes} bytes)"),
        input => input.to_owned(),
    };
    [&[input], &keys[..]].concat().join(" ").trim_start().to_owned()
}

/// Cuts a line to the width of the terminal, if stdout is one.
fn shorten(line: &str) -> String {
    terminal::fit(line, terminal::width(io::stdout()))
}

fn show(flags: AuditFlags, id: &str) -> Result<(), Box<dyn Error>> {
    let mut records: Vec<Map<String, Value>> = Vec::new();
    // Skips lines that cannot have the id, without parsing them.
    for line in read(flags, audit_lines)?.filter(|line| line.contains(id)) {
        match serde_json::from_str(&line) {
            Ok(Value::Object(record)) if text(&record, "id").starts_with(id) => {
                records.push(record);
            }
            _ => {}
        }
    }
    let mut runs: Vec<_> = records.iter().map(|record| text(record, "id").to_owned()).collect();
    runs.sort_unstable();
    runs.dedup();
    match runs.len() {
        0 => return Err(AuditError::UnknownRun(id.to_owned()).into()),
        1 => {}
        _ => return Err(AuditError::Ambiguous { id: id.to_owned(), runs }.into()),
    }
    let mut stdout = io::stdout().lock();
    for record in &records {
        writeln!(stdout, "{} {}", text(record, "time"), visible(text(record, "event")))?;
        for (name, value) in record {
            // Shown above, or only of use to `mcpz audit verify`.
            if ["time", "event", "prev", "mac"].contains(&name.as_str()) {
                continue;
            }
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            writeln!(stdout, "  {name:16} {}", visible(&value))?;
        }
    }
    Ok(())
}
