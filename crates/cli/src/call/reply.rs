//! An answer as a shell sees it: what the command printed, remarks, and an exit code. The tools have different
//! names for the same fields.

use rmcp::model::CallToolResult;
use serde_json::Value;

use super::wording;

/// Exit codes for commands that have none of their own, as in `timeout` and shells.
const TIMED_OUT: u8 = 124;
const BY_SIGNAL: u8 = 128;

pub struct Reply<'a>(pub &'a CallToolResult);

impl<'a> Reply<'a> {
    /// What the command printed or what was extracted from that, or the text of the answer if it has no output of a
    /// command.
    pub fn stdout(&self) -> String {
        match (self.refusal(), self.extracted(), self.printed()) {
            (Some(refusal), _, _) => refusal.to_owned(),
            (None, Some(extracted), _) => format!("{extracted:#}"),
            (None, None, Some(printed)) => printed.to_owned(),
            (None, None, None) => {
                let texts = self.0.content.iter();
                let texts = texts.filter_map(|block| Some(block.as_text()?.text.as_str()));
                texts.collect::<Vec<_>>().join("\n")
            }
        }
    }

    /// What it printed to standard error, if the tool separates the two, or what is shown beside extracted data.
    pub fn stderr(&self) -> &'a str {
        let beside = self.extracted().and_then(|_| self.printed());
        beside.or(self.text(&["stderr", "partial_stderr", "stderr_chunk"])).unwrap_or_default()
    }

    fn printed(&self) -> Option<&'a str> {
        self.text(&["output", "stdout", "partial_stdout", "stdout_chunk"])
    }

    fn extracted(&self) -> Option<&'a Value> {
        self.field("extracted").filter(|it| !it.is_null())
    }

    /// What else the answer says.
    pub fn remarks(&self) -> impl Iterator<Item = String> {
        let error = self.text(&["error"]).filter(|_| self.refusal().is_none());
        let message = self.text(&["message"]);
        let viewed = message.is_some_and(wording::is_of_view);
        let said = message.or(error).map(wording::for_person);
        let warnings = self.field("warnings").and_then(Value::as_array).into_iter().flatten();
        let warnings = warnings.filter_map(|it| Some(format!("warning: {}", it.as_str()?)));
        said.into_iter().chain(warnings).chain(self.omission().filter(|_| !viewed))
    }

    /// Says that output is missing. Once the call is over, nobody can read the rest.
    fn omission(&self) -> Option<String> {
        let advice = "write the output to a file, or pass a larger --max-answer";
        let more = self.field("job_id").is_none() && self.text(&["next_cursor"]).is_some();
        // What was extracted stands for all of it.
        let omitted = self.field("omitted_bytes").filter(|_| self.extracted().is_none());
        match omitted.and_then(Value::as_u64) {
            Some(bytes) => Some(format!("{bytes} bytes of output are left out; {advice}")),
            None if more => Some(format!("there is more output; {advice}")),
            None => None,
        }
    }

    /// The exit code of the command, if it has one.
    pub fn exit_code(&self) -> u8 {
        match (self.code().map(u8::try_from), self.signal()) {
            _ if self.has_timed_out() => TIMED_OUT,
            (_, Some(signal)) => BY_SIGNAL.saturating_add(signal),
            (Some(Ok(code)), _) => code,
            _ => self.0.is_error.unwrap_or(false).into(),
        }
    }

    /// Why nothing ran, if the answer has a field for it.
    fn refusal(&self) -> Option<&'a str> {
        let ran = self.code().is_some() || self.signal().is_some() || self.has_timed_out();
        self.text(&["error"]).filter(|_| !ran)
    }

    fn code(&self) -> Option<i64> {
        self.field("return_code").or(self.field("exit_code"))?.as_i64()
    }

    /// The signal that ended the command. Tools give its name or its number.
    fn signal(&self) -> Option<u8> {
        match self.field("signal")? {
            Value::String(name) => Some(mcpz_agent::signal_number(name).unwrap_or(0)),
            number => number.as_u64()?.try_into().ok(),
        }
    }

    fn has_timed_out(&self) -> bool {
        self.field("timed_out") == Some(&Value::Bool(true))
    }

    /// The first of these fields that is a text.
    fn text(&self, names: &[&str]) -> Option<&'a str> {
        names.iter().find_map(|name| self.field(name)?.as_str())
    }

    fn field(&self, name: &str) -> Option<&'a Value> {
        self.0.structured_content.as_ref()?.get(name)
    }
}
