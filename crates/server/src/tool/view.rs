//! Shorter forms of an output that a call can ask for.

use mcpz_output::{LeftOut, View};
use schemars::JsonSchema;
use serde::Deserialize;

// What a call asks for. It has no doc comments, as those would be in the schema.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ViewName {
    // The default need not be in the schema.
    #[default]
    #[schemars(skip)]
    Full,
    Folded,
    Errors,
    Changes,
}

#[derive(Debug, thiserror::Error)]
#[error("`view` works only without {0}")]
pub struct NotWithView(pub &'static str);

impl ViewName {
    /// `None` means the output as it is, or compared with an earlier one.
    pub fn view(self) -> Option<View> {
        match self {
            Self::Full | Self::Changes => None,
            Self::Folded => Some(View::Folded),
            Self::Errors => Some(View::Errors),
        }
    }
}

/// How lines that a view does not show are read.
#[derive(Debug, Clone, Copy)]
pub enum Rest {
    /// By the same call again.
    WithoutView,
    /// By the address in the answer. The same call would run the command again.
    ByUri,
    /// The same, where the view itself goes on behind these lines.
    ByUriAndOn,
}

/// What to say about lines that a view does not show.
pub fn describe(left_out: LeftOut, rest: Rest) -> Option<String> {
    let LeftOut { lines, omitted, .. } = left_out;
    let all = if lines == 1 { "line" } else { "lines" };
    let how = match rest {
        Rest::WithoutView => "omit `view` to read them",
        Rest::ByUri | Rest::ByUriAndOn => "read them at spill_uri",
    };
    let of = if matches!(rest, Rest::ByUriAndOn) { "of the first" } else { "of" };
    (omitted > 0).then(|| format!("{omitted} {of} {lines} {all} not shown; {how}"))
}
