//! Places in a job's output, as clients get them and pass them back.
//!
//! `bytes:N`, or `bytes:N+M` where stderr is separate. Within a line that has no end yet, a place also says how much of
//! the line was told and a fingerprint of that: `bytes:N~LENGTH.PRINT`.

use mcpz_engine::Position;
use mcpz_output::ReadPosition;

use super::super::error::{InvalidCursor, ToolError};

pub fn write_cursor(place: Position) -> String {
    let point = |point: ReadPosition| match point {
        ReadPosition { offset, line: 0, .. } => offset.to_string(),
        ReadPosition { offset, line, fingerprint } => format!("{offset}~{line}.{fingerprint:x}"),
    };
    let Position { stdout, stderr } = place;
    match stderr.offset {
        0 => format!("bytes:{}", point(stdout)),
        _ => format!("bytes:{}+{}", point(stdout), point(stderr)),
    }
}

pub fn parse_cursor(text: &str) -> Result<Position, ToolError> {
    let point = |text: &str| {
        let Some((offset, told)) = text.split_once('~') else {
            return Some(ReadPosition::at(text.parse().ok()?));
        };
        let (line, fingerprint) = told.split_once('.')?;
        let fingerprint = u64::from_str_radix(fingerprint, 16).ok()?;
        Some(ReadPosition { offset: offset.parse().ok()?, line: line.parse().ok()?, fingerprint })
    };
    let place = text.strip_prefix("bytes:").and_then(|rest| {
        let (stdout, stderr) = rest.split_once('+').unwrap_or((rest, "0"));
        Some(Position { stdout: point(stdout)?, stderr: point(stderr)? })
    });
    place.ok_or_else(|| ToolError::failed(InvalidCursor(text.to_owned())))
}
