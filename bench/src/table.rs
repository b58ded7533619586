//! The table: what was measured, against what, and whether it is as good as it should be.

use std::fmt;

/// One line of it. What there is nothing to compare with, or no target for, is left out.
#[derive(Clone, Debug, Default)]
pub struct Row {
    pub what: String,
    pub ours: f64,
    /// The same without any server: a bare `posix_spawn`, a plain reader.
    pub bare: Option<f64>,
    /// The same by the minimal server.
    pub minimal: Option<f64>,
    pub target: Option<Target>,
    /// Where it is in the picture, if it is.
    pub panel: Option<Panel>,
}

/// Time should be short, rates should be high.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Panel {
    Time,
    Rate,
}

/// How good it should be.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    AtMost(f64),
    /// At most so many times what it is without a server.
    TimesBare(f64),
    /// At least this share of what the minimal server does.
    ShareOfMinimal(f64),
}

pub const HEAD: &str = "\
| what                                         |     mcpz |     bare |  minimal | × bare | × minimal | target           | met |
| ---                                          |     ---: |     ---: |     ---: |   ---: |      ---: | ---              | --- |";

impl Row {
    pub fn new(what: impl Into<String>, ours: f64) -> Self {
        Self { what: what.into(), ours, ..Self::default() }
    }

    pub fn bare(self, bare: f64) -> Self {
        Self { bare: Some(bare), ..self }
    }

    pub fn minimal(self, minimal: f64) -> Self {
        Self { minimal: Some(minimal), ..self }
    }

    pub fn target(self, target: Target) -> Self {
        Self { target: Some(target), ..self }
    }

    pub fn drawn(self, panel: Panel) -> Self {
        Self { panel: Some(panel), ..self }
    }

    pub fn times_bare(&self) -> Option<f64> {
        self.ratio(Some(self.ours))
    }

    /// How many times as much as without any server.
    pub fn ratio(&self, value: Option<f64>) -> Option<f64> {
        Some(value? / self.bare?)
    }

    pub fn times_minimal(&self) -> Option<f64> {
        self.minimal.map(|minimal| self.ours / minimal)
    }

    /// Whether the target is met, if there is one. What is shown counts: 1.154 is 1.15.
    pub fn met(&self) -> Option<bool> {
        let shown = |ratio: Option<f64>| {
            (ratio.expect("there is what to compare with") * 100.0).round() / 100.0
        };
        Some(match self.target? {
            Target::AtMost(most) => self.ours <= most,
            Target::TimesBare(most) => shown(self.times_bare()) <= most,
            Target::ShareOfMinimal(least) => shown(self.times_minimal()) >= least,
        })
    }
}

impl fmt::Display for Row {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: Option<f64>| value.map(number).unwrap_or_default();
        let ratio =
            |value: Option<f64>| value.map(|value| format!("{value:.2}")).unwrap_or_default();
        write!(
            formatter,
            "| {:44} | {:>8} | {:>8} | {:>8} | {:>6} | {:>9} | {:16} | {:3} |",
            self.what,
            number(self.ours),
            shown(self.bare),
            shown(self.minimal),
            ratio(self.times_bare()),
            ratio(self.times_minimal()),
            self.target.map(|target| target.to_string()).unwrap_or_default(),
            self.met().map_or("", |met| if met { "yes" } else { "no" }),
        )
    }
}

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(most) => write!(formatter, "≤ {most}"),
            Self::TimesBare(most) => write!(formatter, "≤ {most} × bare"),
            Self::ShareOfMinimal(least) => write!(formatter, "≥ {least} × minimal"),
        }
    }
}

/// As many digits as mean something.
fn number(value: f64) -> String {
    match value.abs() {
        whole if whole == whole.round() => format!("{value:.0}"),
        small if small < 10.0 => format!("{value:.2}"),
        medium if medium < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(row: &Row) -> Vec<String> {
        let text = row.to_string();
        text.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
    }

    #[test]
    fn a_row_shows_what_was_compared_and_whether_it_is_good_enough() {
        let row = Row::new("`true`, µs", 575.0).bare(500.0).minimal(550.0);
        let row = row.target(Target::TimesBare(1.15));
        let shown = ["`true`, µs", "575", "500", "550", "1.15", "1.05", "≤ 1.15 × bare", "yes"];
        assert_eq!(cells(&row), shown);
    }

    #[test]
    fn what_is_not_known_is_left_empty() {
        assert_eq!(cells(&Row::new("bytes", 5.5)), ["bytes", "5.50", "", "", "", "", "", ""]);
    }

    #[test]
    fn rates_have_to_be_high_and_amounts_low() {
        let rate =
            |ours| Row::new("rate", ours).minimal(1000.0).target(Target::ShareOfMinimal(0.9));
        assert_eq!(rate(900.0).met(), Some(true));
        assert_eq!(rate(890.0).met(), Some(false));
        let left = |ours| Row::new("left", ours).target(Target::AtMost(0.0));
        assert_eq!(left(0.0).met(), Some(true));
        assert_eq!(left(1.0).met(), Some(false));
        assert_eq!(Row::new("free", 1.0).met(), None);
    }

    #[test]
    fn the_lines_of_the_table_are_equally_long() {
        let row = Row::new("x", 12.345).bare(1.0).target(Target::ShareOfMinimal(0.75)).minimal(2.0);
        let mut lengths: Vec<_> = HEAD.lines().map(|line| line.chars().count()).collect();
        lengths.push(row.to_string().chars().count());
        assert_eq!(lengths, [lengths[0]; 3]);
    }
}
