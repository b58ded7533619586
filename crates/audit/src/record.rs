//! The records of runs, and of repairs of the trail itself.
//!
//! The values of variables and what a command reads are never recorded. Secrets are masked, and command texts are
//! left out if the settings say so ([`Redaction`]).

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::time::Duration;

use mcpz_output::Secrets;
use serde::{Deserialize, Serialize};

use crate::line::MAX_LINE;
use crate::mac::sha256;

/// The limit for a command, and for the names of its variables.
pub const MAX_TEXT: usize = 16 << 10;

/// The limit for any other text that comes from outside.
pub const MAX_NAME: usize = 4 << 10;

/// A run that somebody requests.
pub struct RequestedRun<'a> {
    pub source: Source<'a>,
    pub command: Command<'a>,
    pub directory: &'a Path,
    pub timeout: Option<Duration>,
    /// What the caller says it is for.
    pub description: Option<&'a str>,
    /// The place it runs in, if that is not this machine.
    pub place: Option<&'a str>,
    /// The names of the variables it sets.
    pub environment: Vec<&'a str>,
    /// How much input it gets.
    pub stdin_bytes: Option<u64>,
}

#[derive(Clone, Copy)]
pub enum Command<'a> {
    Script { text: &'a str, shell: &'a Path },
    Argv(&'a [String]),
}

/// Who requested it, and with which tool.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    pub tool: &'a str,
    pub client: Option<&'a str>,
    pub owner: &'a str,
}

/// Why something may run.
pub struct Permit {
    /// The rules of the allow list that it needed.
    pub rules: Vec<String>,
    /// Why it looks dangerous, if it does.
    pub warnings: Vec<&'static str>,
}

/// Why something does not happen.
pub struct Reason {
    /// The rule that decided, if one did.
    pub rule: Option<String>,
    pub text: String,
    /// The text without any part of the command, if `text` quotes some.
    pub redacted: Option<String>,
}

impl Reason {
    /// A reason that does not quote the command.
    pub fn new(text: impl Into<String>) -> Self {
        Self { rule: None, text: text.into(), redacted: None }
    }
}

/// How a run ended.
#[derive(Default)]
pub struct RunEnd {
    pub result: &'static str,
    pub exit_code: Option<i32>,
    pub signal: Option<String>,
    pub limit: Option<&'static str>,
    pub took: Duration,
    pub cpu: Duration,
    pub max_rss_bytes: u64,
    pub stdout_bytes: u64,
    pub stderr_bytes: u64,
    pub lost_bytes: u64,
    pub background: Vec<i32>,
    /// What the sandbox refused.
    pub refused: Vec<String>,
}

/// What is left out of records.
pub struct Redaction {
    /// Whether command texts may be recorded.
    pub log_commands: bool,
    pub secrets: Secrets,
}

impl Redaction {
    /// Masks secrets. Every text of a command, and every text that quotes one, must pass through here.
    pub fn mask<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.secrets.mask(text)
    }

    /// Masks secrets in a path.
    fn path<'a>(&self, path: &'a Path) -> Cow<'a, str> {
        match path.to_string_lossy() {
            Cow::Borrowed(path) => self.mask(path),
            Cow::Owned(path) => self.mask(&path).into_owned().into(),
        }
    }

    /// Keeps the secrets, and leaves out command texts if `hidden`.
    pub fn hiding(&self, hidden: bool) -> Self {
        Self { log_commands: self.log_commands && !hidden, secrets: self.secrets.clone() }
    }

    /// The text of a reason, as it may be recorded.
    pub fn reason(&self, reason: &Reason) -> Cow<'static, str> {
        let text = match (&reason.redacted, self.log_commands) {
            (Some(redacted), false) => redacted,
            _ => &reason.text,
        };
        cut(self.mask(text).into_owned().into(), MAX_NAME)
    }
}

/// The line before a run, or instead of one.
#[derive(Serialize)]
pub struct RequestRecord<'a> {
    id: &'a str,
    #[serde(flatten)]
    decision: DecisionFields<'a>,
    /// Why it looked dangerous, although it was allowed.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    warnings: &'a [&'static str],
    #[serde(flatten)]
    source: SourceFields<'a>,
    /// Who will record the end, if there is one ([`crate::writer`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    writer: Option<&'a str>,
    /// Where it runs, if not on this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<Cow<'a, str>>,
    directory: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u64>,
    /// What the caller says it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<Cow<'a, str>>,
    #[serde(flatten)]
    command: CommandFields<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    environment: Vec<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stdin_bytes: Option<u64>,
}

/// What was decided, and why.
#[derive(Serialize)]
pub struct DecisionFields<'a> {
    event: &'static str,
    decision: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Cow<'a, str>>,
}

impl<'a> DecisionFields<'a> {
    /// The decision to allow something, recorded as this event.
    pub fn allow(event: &'static str) -> Self {
        Self { event, decision: "allow", rule: None, reason: None }
    }

    pub fn deny_for(reason: &'a str) -> Self {
        let reason = Some(cut(reason.into(), MAX_NAME));
        Self { event: "refused", decision: "deny", rule: None, reason }
    }

    pub fn deny(reason: &'a Reason, redaction: &Redaction) -> Self {
        let rule = reason.rule.as_deref().map(|rule| cut(rule.into(), MAX_NAME));
        let reason = Some(redaction.reason(reason));
        Self { event: "refused", decision: "deny", rule, reason }
    }
}

/// Who requested it, and from which server.
#[derive(Serialize)]
pub struct SourceFields<'a> {
    tool: &'a str,
    owner: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<Cow<'a, str>>,
    server_pid: u32,
}

impl<'a> From<Source<'a>> for SourceFields<'a> {
    fn from(source: Source<'a>) -> Self {
        Self {
            tool: source.tool,
            owner: cut(source.owner.into(), MAX_NAME),
            client: source.client.map(|client| cut(client.into(), MAX_NAME)),
            server_pid: std::process::id(),
        }
    }
}

/// The command itself.
#[derive(Default, Serialize)]
struct CommandFields<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    shell: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    argv: Option<Vec<Cow<'a, str>>>,
    /// Size and hash, if the text is not recorded completely.
    #[serde(skip_serializing_if = "Option::is_none")]
    command_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command_sha256: Option<String>,
}

impl<'a> RequestRecord<'a> {
    pub fn start(
        (id, writer): (&'a str, &'a str),
        requested: &RequestedRun<'a>,
        permit: &'a Permit,
        redaction: &Redaction,
    ) -> Self {
        let rule = (!permit.rules.is_empty()).then(|| permit.rules.join(", "));
        let rule = rule.map(|rule| cut(rule.into(), MAX_NAME));
        let warnings = &permit.warnings;
        let decision = DecisionFields { rule, ..DecisionFields::allow("start") };
        Self { warnings, writer: Some(writer), ..Self::new(id, decision, requested, redaction) }
    }

    /// The record of a request that was refused.
    pub fn refused(
        id: &'a str,
        requested: &RequestedRun<'a>,
        reason: &'a Reason,
        redaction: &Redaction,
    ) -> Self {
        Self::new(id, DecisionFields::deny(reason, redaction), requested, redaction)
    }

    fn new(
        id: &'a str,
        decision: DecisionFields<'a>,
        requested: &RequestedRun<'a>,
        redaction: &Redaction,
    ) -> Self {
        Self {
            id,
            decision,
            warnings: &[],
            source: requested.source.into(),
            writer: None,
            place: requested.place.map(|place| cut(place.into(), MAX_NAME)),
            directory: cut(redaction.path(requested.directory), MAX_NAME),
            timeout_ms: requested.timeout.map(|timeout| timeout.as_millis() as u64),
            description: described(requested, redaction),
            command: CommandFields::new(requested, redaction),
            environment: cut_list(requested.environment.iter().map(|name| Cow::from(*name))),
            stdin_bytes: requested.stdin_bytes,
        }
    }
}

fn described<'a>(requested: &RequestedRun<'a>, redaction: &Redaction) -> Option<Cow<'a, str>> {
    let text = requested.description.filter(|_| redaction.log_commands)?;
    Some(cut(redaction.mask(text), MAX_NAME))
}

impl<'a> CommandFields<'a> {
    fn new(requested: &RequestedRun<'a>, redaction: &Redaction) -> Self {
        match requested.command {
            Command::Script { text, shell } => {
                let shell = redaction.path(shell);
                let command = redaction.log_commands.then(|| redaction.mask(text));
                let all = command.as_ref().is_some_and(|command| command.len() <= MAX_TEXT);
                Self {
                    shell: Some(cut(shell, MAX_NAME)),
                    command: command.map(|command| cut(command, MAX_TEXT)),
                    command_bytes: (!all).then_some(text.len() as u64),
                    command_sha256: (!all).then(|| sha256(text.as_bytes())),
                    argv: None,
                }
            }
            Command::Argv(words) => {
                // As the program gets them: each word ends with a NUL.
                let joined: String = words.iter().flat_map(|word| [word.as_str(), "\0"]).collect();
                let written = words.iter().map(|word| redaction.mask(word));
                let argv = redaction.log_commands.then(|| cut_list(written));
                let all = argv.as_ref().is_some_and(|argv| argv.len() == words.len())
                    && joined.len() <= MAX_TEXT;
                Self {
                    argv,
                    command_bytes: (!all).then_some(joined.len() as u64),
                    command_sha256: (!all).then(|| sha256(joined.as_bytes())),
                    ..Self::default()
                }
            }
        }
    }
}

/// The start of a text.
pub fn cut(text: Cow<'_, str>, limit: usize) -> Cow<'_, str> {
    if text.len() <= limit {
        return text;
    }
    let end = text.floor_char_boundary(limit);
    match text {
        Cow::Borrowed(text) => text[..end].into(),
        Cow::Owned(text) => text[..end].to_owned().into(),
    }
}

/// As many words as fit, and the start of the next.
pub fn cut_list<'a>(words: impl Iterator<Item = Cow<'a, str>>) -> Vec<Cow<'a, str>> {
    let mut room = MAX_TEXT;
    let mut list = Vec::new();
    for word in words {
        if room == 0 {
            break;
        }
        let length = word.len() + 1;
        list.push(cut(word, room));
        room = room.saturating_sub(length);
    }
    list
}

/// The line after a run.
#[derive(Default, Serialize)]
pub struct EndRecord<'a> {
    id: &'a str,
    event: &'static str,
    result: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Cow<'a, str>>,
    duration_ms: u64,
    cpu_ms: u64,
    max_rss_bytes: u64,
    stdout_bytes: u64,
    stderr_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lost_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    background_pids: Vec<i32>,
    /// What the sandbox refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    refused: Vec<Cow<'a, str>>,
}

impl<'a> EndRecord<'a> {
    pub fn new(id: &'a str, end: Result<RunEnd, Reason>, redaction: &Redaction) -> Self {
        let record = Self { id, event: "end", ..Self::default() };
        match end {
            Ok(ended) => record.ran(ended, redaction),
            Err(reason) => {
                let reason = Some(redaction.reason(&reason));
                Self { result: "not_started", reason, ..record }
            }
        }
    }

    /// The end of a run whose process was gone before it recorded one.
    pub fn lost(id: &'a str) -> Self {
        let reason = "its process was gone before the end was recorded";
        let (event, result, reason) = ("end", "lost", Some(reason.into()));
        Self { id, event, result, reason, ..Self::default() }
    }

    fn ran(self, ended: RunEnd, redaction: &Redaction) -> Self {
        let refused = ended.refused.iter().filter(|_| redaction.log_commands);
        Self {
            result: ended.result,
            exit_code: ended.exit_code,
            signal: ended.signal,
            limit: ended.limit,
            duration_ms: ended.took.as_millis() as u64,
            cpu_ms: ended.cpu.as_millis() as u64,
            max_rss_bytes: ended.max_rss_bytes,
            stdout_bytes: ended.stdout_bytes,
            stderr_bytes: ended.stderr_bytes,
            lost_bytes: Some(ended.lost_bytes).filter(|lost| *lost > 0),
            refused: refused.map(|it| redaction.mask(it).into_owned().into()).collect(),
            background_pids: ended.background,
            ..self
        }
    }
}

/// The first line of every file except the first.
#[derive(Serialize, Deserialize)]
pub struct RotationRecord {
    event: Cow<'static, str>,
    /// The number of the file before, or 0 if there is none.
    pub previous: u64,
    /// The number of the oldest file that is kept.
    pub oldest: u64,
}

impl RotationRecord {
    pub const EVENT: &'static str = "rotated";

    pub fn new(previous: u64, oldest: u64) -> Self {
        Self { event: Self::EVENT.into(), previous, oldest }
    }

    /// Reads the first line of a file.
    pub fn read(path: &Path) -> Option<Self> {
        let mut line = Vec::new();
        let file = File::open(path).ok()?.take(MAX_LINE as u64);
        BufReader::new(file).read_until(b'\n', &mut line).ok()?;
        Self::parse(&line)
    }

    pub fn parse(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(line).ok().filter(|found: &Self| found.event == Self::EVENT)
    }
}

/// The trail was not as its last writer left it.
#[derive(Serialize)]
pub struct RepairRecord<'a> {
    event: &'static str,
    what: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Cow<'a, str>>,
}

impl<'a> RepairRecord<'a> {
    pub const EVENT: &'static str = "repaired";
    pub const HEAD: &'static str = "head";
    pub const JOINED: &'static str = "joined";
    pub const TRAIL: &'static str = "trail";

    /// An incomplete line was removed.
    pub fn torn(bytes: u64, sha256: String, text: &'a str) -> Self {
        let (bytes, sha256) = (Some(bytes), Some(sha256));
        let text = Some(cut(text.into(), MAX_NAME));
        Self { event: Self::EVENT, what: "torn", bytes, sha256, text }
    }

    /// A line was changed while it waited to join the trail.
    pub fn joined(bytes: u64, sha256: String, text: &'a str) -> Self {
        Self { what: Self::JOINED, ..Self::torn(bytes, sha256, text) }
    }

    /// Everything but the key was missing. Nobody knows which lines there were.
    pub fn trail() -> Self {
        Self { what: Self::TRAIL, ..Self::head() }
    }

    /// The head was missing or not genuine. Nobody knows whether lines are missing before this record.
    pub fn head() -> Self {
        Self { event: Self::EVENT, what: Self::HEAD, bytes: None, sha256: None, text: None }
    }
}
