//! What an output says, as data, for calls that ask for it.

use mcpz_engine::{End, Outcome};
use mcpz_extract::{Extracted, Hint, Kind, NotFound, extract, parse_json, shrink};
use mcpz_output::{Error, JsonPath, Output, Reader, Rendering, Stream};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde_json::Value;

use super::Call;
use super::error::ToolError;
use crate::blocking::run_blocking;
use crate::memory::PAGE;

// What a call asks for. It has no doc comments, as those would be in the schema.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExtractName {
    // The default need not be in the schema.
    #[default]
    #[schemars(skip)]
    Nothing,
    Diagnostics,
    Tests,
    Table,
    Json,
}

impl ExtractName {
    /// `None` means the output as it is.
    pub fn kind(self) -> Option<Kind> {
        match self {
            Self::Nothing => None,
            Self::Diagnostics => Some(Kind::Diagnostics),
            Self::Tests => Some(Kind::Tests),
            Self::Table => Some(Kind::Table),
            Self::Json => Some(Kind::Json),
        }
    }
}

/// Clients refuse `true`, which means the same.
pub fn any_value(_: &mut SchemaGenerator) -> Schema {
    Schema::from(serde_json::Map::new())
}

/// Why nothing else may be asked for at the same time.
#[derive(Debug, thiserror::Error)]
#[error("`extract` works only without {0}")]
pub struct NotWithExtract(pub &'static str);

/// The output of a command, to look for something in.
pub struct Printed {
    pub output: Output,
    pub rendering: Rendering,
    /// Masked, as far as it is known.
    pub command: Option<String>,
    pub exit_code: Option<i32>,
    /// Whether the command ended by itself.
    pub ended: bool,
}

impl Printed {
    pub fn new(output: Output, rendering: Rendering) -> Self {
        Self { output, rendering, command: None, exit_code: None, ended: false }
    }

    /// The same with how its command ended.
    pub fn of(self, outcome: Option<&Outcome>) -> Self {
        let exit_code = outcome.and_then(|it| it.end.exit_code());
        let ended = outcome.is_some_and(|it| {
            matches!(it.end, End::Exited(_)) && it.limit.is_none() && it.background.is_empty()
        });
        Self { command: outcome.map(|it| it.command.clone()), exit_code, ended, ..self }
    }
}

/// What was found, as an answer says it.
#[derive(Debug, Default)]
pub struct Findings {
    pub value: Option<Value>,
    /// The last lines of the output, if the value does not tell enough.
    pub tail: String,
    pub message: Option<String>,
}

/// Looks for something in an output. A path then chooses from what was found.
pub async fn find(
    call: &Call<'_>,
    printed: Printed,
    (kind, stream): (Kind, Stream),
    path: Option<String>,
    room: usize,
) -> Result<Findings, ToolError> {
    call.watcher.wait_for_room(PAGE).await;
    let look = move |stop: mcpz_output::Stop| {
        let Printed { output, rendering, command, exit_code, ended } = printed;
        // What tools print about their work is in both streams, and data is in one.
        let streams: &[Stream] = match kind {
            Kind::Tests | Kind::Diagnostics => &[Stream::Stdout, Stream::Stderr],
            Kind::Table | Kind::Json => &[stream],
        };
        let reader =
            |stream: &Stream| Reader::new(output.clone(), *stream, rendering).until(stop.clone());
        let readers: Vec<_> = streams.iter().map(reader).collect();
        if readers.iter().any(Reader::is_binary) {
            return Err(Error::Binary);
        }
        let texts = readers.iter().map(Reader::text);
        let ended = ended && output.lost() == 0;
        let hint = Hint { command: command.as_deref(), exit_code, ended };
        let path = path.as_deref().map(JsonPath::new).transpose()?;
        let Some(path) = path else {
            return extract(kind, texts, &hint, room).map(Findings::from).map_err(Error::Read);
        };
        let found = match kind {
            Kind::Json => {
                parse_json(texts).map_err(Error::Read)?.map(|it| (it.value, it.note, None))
            }
            _ => extract(kind, texts, &hint, usize::MAX)
                .map_err(Error::Read)?
                .map(|it| (it.value, it.note, it.tail)),
        };
        Ok(match found {
            Ok((value, note, tail)) => {
                let (value, omitted) = shrink(path.find_in(&value)?, room);
                Findings::from(Ok(Extracted { value, note, tail, omitted }))
            }
            Err(nothing) => Findings::from(Err(nothing)),
        })
    };
    Ok(run_blocking(&call.watcher.cancelled, look).await?)
}

impl From<Result<Extracted, NotFound>> for Findings {
    fn from(found: Result<Extracted, NotFound>) -> Self {
        match found {
            Ok(Extracted { value, note, tail, omitted }) => {
                let left_out = (omitted > 0)
                    .then(|| format!("{omitted} more left out; select some with json_path"));
                let said: Vec<_> = note.into_iter().chain(left_out).collect();
                let message = (!said.is_empty()).then(|| said.join("; "));
                Self { value: Some(value), tail: tail.unwrap_or_default(), message }
            }
            Err(NotFound { message, tail }) => Self { value: None, tail, message: Some(message) },
        }
    }
}
