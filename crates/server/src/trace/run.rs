//! The span of a command.

use std::time::SystemTime;

use mcpz_agent::signal_name;
use mcpz_engine::{End, Finished, Outcome};

use super::{Attribute, Kind, Span, SpanIds};

/// The span of a run that has ended, below the span of its call.
pub fn span(call: &SpanIds, account: &Finished<'_>) -> Option<Span> {
    let mut span = Span::begin(Kind::Client, Some(call))?;
    span.name = "run command".into();
    span.end = SystemTime::now();
    span.start = span.end - account.took;
    if let Some(command) = account.command {
        span.add("process.command_line", command);
    }
    match account.answer {
        Ok(outcome) => describe(&mut span, outcome),
        Err(_) => span.fail("not_started", ""),
    }
    Some(span)
}

fn describe(span: &mut Span, outcome: &Outcome) {
    span.add("mcpz.run.id", &*outcome.id);
    span.add("mcpz.run.output_bytes", Attribute::Number(outcome.output.length() as i64));
    span.add("mcpz.run.cpu_time", Attribute::Seconds(outcome.usage.cpu));
    span.add("mcpz.run.max_rss_bytes", Attribute::Number(outcome.usage.max_rss_bytes as i64));
    match outcome.end {
        End::Exited(code) => {
            span.add("process.exit.code", Attribute::Number(code.into()));
            if code != 0 {
                span.fail(code.to_string(), "");
            }
        }
        End::Signalled(signal) => {
            span.add("mcpz.run.signal", signal_name(signal));
            span.fail(signal_name(signal), "");
        }
        End::TimedOut { .. } => {
            span.add("mcpz.run.timed_out", Attribute::Yes);
            span.fail("timeout", "");
        }
        End::Cancelled => span.fail("cancelled", ""),
        End::Lost => span.fail("lost", ""),
        End::Closed(_) => span.fail("server_ended", ""),
    }
    if let Some(limit) = outcome.limit {
        span.add("mcpz.run.limit", limit.name());
    }
    if !outcome.background.is_empty() {
        let left = outcome.background.len() as i64;
        span.add("mcpz.run.background_processes", Attribute::Number(left));
    }
}
