//! What is written of a command, and what never is: the values of variables, and what it reads.

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::time::Duration;

use mcpz_output::Secrets;
use serde::{Deserialize, Serialize};

use crate::line::MAX_LINE;
use crate::seal::sha256;

/// The most that is written of a command, and of the names of its variables.
pub const MAX_TEXT: usize = 16 << 10;

/// The most that is written of anything else somebody else has named.
pub const MAX_NAME: usize = 4 << 10;

/// What somebody wants to have run.
pub struct Asked<'a> {
    pub source: Source<'a>,
    pub command: Command<'a>,
    pub directory: &'a Path,
    pub timeout: Option<Duration>,
    /// What the caller says it is for.
    pub description: Option<&'a str>,
    /// The names of the variables it sets.
    pub environment: Vec<&'a str>,
    /// How much it is given to read.
    pub stdin_bytes: Option<u64>,
}

#[derive(Clone, Copy)]
pub enum Command<'a> {
    Script { text: &'a str, shell: &'a Path },
    Argv(&'a [String]),
}

/// Who asked, and by what.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    pub tool: &'a str,
    pub client: Option<&'a str>,
    pub owner: &'a str,
}

/// Why something may run.
pub struct Permit {
    /// The rules of the allow list that were needed.
    pub rules: Vec<String>,
    /// What it looks like, if that is a reason to be careful.
    pub warnings: Vec<&'static str>,
}

/// Why something does not happen.
pub struct Reason {
    /// The rule that decided, if one did.
    pub rule: Option<String>,
    pub text: String,
    /// The same without a word of the command, if the text has some.
    pub discreet: Option<String>,
}

impl Reason {
    /// One that quotes no command.
    pub fn new(text: impl Into<String>) -> Self {
        Self { rule: None, text: text.into(), discreet: None }
    }
}

/// What became of a run.
#[derive(Default)]
pub struct Ended {
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
    /// What the sandbox has refused.
    pub refused: Vec<String>,
}

/// What must not be written.
pub struct Discretion {
    /// Whether the text of commands may be.
    pub commands: bool,
    pub secrets: Secrets,
}

impl Discretion {
    /// What is written of a command's text, or of what quotes it: all of that comes through here.
    pub fn written<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.secrets.mask(text)
    }

    /// The same for what may not be written in any case.
    pub fn unless(&self, hidden: bool) -> Self {
        Self { commands: self.commands && !hidden, secrets: self.secrets.clone() }
    }

    /// Why a command did not run.
    pub fn reason(&self, reason: &Reason) -> Cow<'static, str> {
        let text = match (&reason.discreet, self.commands) {
            (Some(discreet), false) => discreet,
            _ => &reason.text,
        };
        cut(self.written(text).into_owned().into(), MAX_NAME)
    }
}

/// One line before a run, or in place of one.
#[derive(Serialize)]
pub struct Opening<'a> {
    id: &'a str,
    #[serde(flatten)]
    verdict: Verdict<'a>,
    /// What looked dangerous and was let through.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    warnings: &'a [&'static str],
    #[serde(flatten)]
    source: Asking<'a>,
    /// Who will record the end, if there is one ([`crate::writer`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    writer: Option<&'a str>,
    directory: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u64>,
    /// What the caller says it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<Cow<'a, str>>,
    #[serde(flatten)]
    what: What<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    environment: Vec<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stdin_bytes: Option<u64>,
}

/// What was decided, and why.
#[derive(Serialize)]
pub struct Verdict<'a> {
    event: &'static str,
    decision: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Cow<'a, str>>,
}

impl<'a> Verdict<'a> {
    /// Something is let through, and recorded as this.
    pub fn allow(event: &'static str) -> Self {
        Self { event, decision: "allow", rule: None, reason: None }
    }

    pub fn deny_for(reason: &'a str) -> Self {
        let reason = Some(cut(reason.into(), MAX_NAME));
        Self { event: "refused", decision: "deny", rule: None, reason }
    }

    pub fn deny(reason: &'a Reason, discretion: &Discretion) -> Self {
        let rule = reason.rule.as_deref().map(|rule| cut(rule.into(), MAX_NAME));
        let reason = Some(discretion.reason(reason));
        Self { event: "refused", decision: "deny", rule, reason }
    }
}

/// Who asked, and whom.
#[derive(Serialize)]
pub struct Asking<'a> {
    tool: &'a str,
    owner: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<Cow<'a, str>>,
    server_pid: u32,
}

impl<'a> From<Source<'a>> for Asking<'a> {
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
struct What<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    shell: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    argv: Option<Vec<Cow<'a, str>>>,
    /// These two where not all of it is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    command_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command_sha256: Option<String>,
}

impl<'a> Opening<'a> {
    pub fn start(
        (id, writer): (&'a str, &'a str),
        asked: &Asked<'a>,
        permit: &'a Permit,
        discretion: &Discretion,
    ) -> Self {
        let rule = (!permit.rules.is_empty()).then(|| permit.rules.join(", "));
        let rule = rule.map(|rule| cut(rule.into(), MAX_NAME));
        let warnings = &permit.warnings;
        let verdict = Verdict { rule, ..Verdict::allow("start") };
        Self { warnings, writer: Some(writer), ..Self::new(id, verdict, asked, discretion) }
    }

    /// A request that was refused, and why.
    pub fn refused(
        id: &'a str,
        asked: &Asked<'a>,
        reason: &'a Reason,
        discretion: &Discretion,
    ) -> Self {
        Self::new(id, Verdict::deny(reason, discretion), asked, discretion)
    }

    fn new(id: &'a str, verdict: Verdict<'a>, asked: &Asked<'a>, discretion: &Discretion) -> Self {
        Self {
            id,
            verdict,
            warnings: &[],
            source: asked.source.into(),
            writer: None,
            directory: cut(asked.directory.to_string_lossy(), MAX_NAME),
            timeout_ms: asked.timeout.map(|timeout| timeout.as_millis() as u64),
            description: described(asked, discretion),
            what: What::new(asked, discretion),
            environment: cut_list(asked.environment.iter().map(|name| Cow::from(*name))),
            stdin_bytes: asked.stdin_bytes,
        }
    }
}

fn described<'a>(asked: &Asked<'a>, discretion: &Discretion) -> Option<Cow<'a, str>> {
    let text = asked.description.filter(|_| discretion.commands)?;
    Some(cut(discretion.written(text), MAX_NAME))
}

impl<'a> What<'a> {
    fn new(asked: &Asked<'a>, discretion: &Discretion) -> Self {
        match asked.command {
            Command::Script { text, shell } => {
                let shell = shell.to_string_lossy();
                let command = discretion.commands.then(|| discretion.written(text));
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
                // As the program gets them: each with a NUL at its end.
                let joined: String = words.iter().flat_map(|word| [word.as_str(), "\0"]).collect();
                let written = words.iter().map(|word| discretion.written(word));
                let argv = discretion.commands.then(|| cut_list(written));
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

/// The beginning of a text.
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

/// The first of some words, as many as there is room for, and the beginning of the next.
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

/// One line after a run.
#[derive(Default, Serialize)]
pub struct Closing<'a> {
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
    /// What the sandbox has refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    refused: Vec<Cow<'a, str>>,
}

impl<'a> Closing<'a> {
    pub fn new(id: &'a str, end: Result<Ended, Reason>, discretion: &Discretion) -> Self {
        let closing = Self { id, event: "end", ..Self::default() };
        match end {
            Ok(ended) => closing.ran(ended, discretion),
            Err(reason) => {
                let reason = Some(discretion.reason(&reason));
                Self { result: "not_started", reason, ..closing }
            }
        }
    }

    /// That of a run whose process was gone before it had recorded the end.
    pub fn lost(id: &'a str) -> Self {
        let reason = "the process that kept it was gone before its end was recorded";
        let (event, result, reason) = ("end", "lost", Some(reason.into()));
        Self { id, event, result, reason, ..Self::default() }
    }

    fn ran(self, ended: Ended, discretion: &Discretion) -> Self {
        let refused = ended.refused.iter().filter(|_| discretion.commands);
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
            refused: refused.map(|it| discretion.written(it).into_owned().into()).collect(),
            background_pids: ended.background,
            ..self
        }
    }
}

/// The first line of a file that is not the first.
#[derive(Serialize, Deserialize)]
pub struct Rotated {
    event: Cow<'static, str>,
    /// The number of the file before; 0 if it is not there.
    pub previous: u64,
    /// The number of the oldest file that is kept.
    pub oldest: u64,
}

impl Rotated {
    pub const EVENT: &'static str = "rotated";

    pub fn new(previous: u64, oldest: u64) -> Self {
        Self { event: Self::EVENT.into(), previous, oldest }
    }

    /// Reads it from the beginning of a file.
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

/// Something was not as it was left.
#[derive(Serialize)]
pub struct Repaired<'a> {
    event: &'static str,
    what: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Cow<'a, str>>,
}

impl<'a> Repaired<'a> {
    pub const EVENT: &'static str = "repaired";
    pub const HEAD: &'static str = "head";
    pub const JOINED: &'static str = "joined";

    /// A line that had no end was taken off.
    pub fn torn(bytes: u64, sha256: String, text: &'a str) -> Self {
        let (bytes, sha256) = (Some(bytes), Some(sha256));
        let text = Some(cut(text.into(), MAX_NAME));
        Self { event: Self::EVENT, what: "torn", bytes, sha256, text }
    }

    /// A line that waited for the trail elsewhere was changed there.
    pub fn joined(bytes: u64, sha256: String, text: &'a str) -> Self {
        Self { what: Self::JOINED, ..Self::torn(bytes, sha256, text) }
    }

    /// The head was not there, or not ours: nobody knows whether lines are missing before this one.
    pub fn head() -> Self {
        Self { event: Self::EVENT, what: Self::HEAD, bytes: None, sha256: None, text: None }
    }
}
