//! Outputs of real tools, as they are kept in `src`: the command, its exit code, and what it printed.
//!
//!     $ pytest -q
//!     exit 1
//!     cut                 only if it did not end by itself
//!     --- stdout
//!     …
//!     --- stderr
//!     …

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

use std::path::{Path, PathBuf};

use mcpz_extract::{Extracted, Hint, Kind, NotFound, extract};
use serde_json::{Value, json};

pub const ROOM: usize = 20_000;

pub struct Recorded {
    pub path: PathBuf,
    pub kind: Kind,
    pub command: String,
    pub exit_code: Option<i32>,
    pub ended: bool,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

impl Recorded {
    pub fn hint(&self) -> Hint<'_> {
        Hint { command: Some(&self.command), exit_code: self.exit_code, ended: self.ended }
    }

    pub fn extract(&self) -> Result<Extracted, NotFound> {
        extract(self.kind, [&self.stdout[..], &self.stderr[..]], &self.hint(), ROOM).unwrap()
    }
}

pub fn shown(result: &Result<Extracted, NotFound>) -> Value {
    match result {
        Ok(found) => serde_json::to_value(found).unwrap(),
        Err(missing) => json!({ "missing": missing }),
    }
}

/// All recorded outputs, or those of one kind.
pub fn all() -> Vec<Recorded> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let kinds =
        [("results", Kind::Tests), ("diagnostics", Kind::Diagnostics), ("table", Kind::Table)];
    let mut all = Vec::new();
    for (name, kind) in kinds {
        for tool in sorted(&source.join(name)).into_iter().filter(|path| path.is_dir()) {
            for path in sorted(&tool)
                .into_iter()
                .filter(|path| path.extension().is_some_and(|end| end == "txt"))
            {
                all.push(read(&path, kind));
            }
        }
    }
    all
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn read(path: &Path, kind: Kind) -> Recorded {
    let bytes = std::fs::read(path).unwrap();
    let (head, rest) = split(&bytes, b"--- stdout\n");
    let (stdout, stderr) = split(rest, b"--- stderr\n");
    let head = String::from_utf8(head.to_vec()).unwrap();
    let of = |prefix: &str| {
        head.lines().find_map(|line| line.strip_prefix(prefix)).unwrap_or_default().to_owned()
    };
    Recorded {
        path: path.to_owned(),
        kind,
        command: of("$ "),
        exit_code: of("exit ").parse().ok().filter(|code| *code >= 0),
        ended: !head.lines().any(|line| line == "cut"),
        stdout: stdout.to_vec(),
        stderr: stderr.to_vec(),
    }
}

/// What is before and after a line.
fn split<'a>(bytes: &'a [u8], line: &[u8]) -> (&'a [u8], &'a [u8]) {
    let at = bytes.windows(line.len()).position(|window| window == line).unwrap();
    (&bytes[..at], &bytes[at + line.len()..])
}
