//! The numbers as a picture: a bar for each server. The bare baseline, without a server, is a line.
//!
//! Plain SVG with its own style, for light and dark pages; nothing is loaded from elsewhere.

use std::fmt::Write;

use crate::table::{Panel, Row};

const WIDTH: f64 = 760.0;
/// Where bars begin, and how long a bar may be.
const LEFT: f64 = 250.0;
const LONGEST: f64 = 440.0;
const LINE: f64 = 28.0;

/// Bars that are longer are cut; the number beside them is not.
const MOST: f64 = 3.0;

const STYLE: &str = "\
text{font:13px system-ui,sans-serif;fill:#1f2328}
.head{font-weight:600}.small{font-size:11px;fill:#59636e}
.mcpz{fill:#0969da}.minimal{fill:#9ea7b0}.bare{stroke:#cf222e;stroke-width:1.5}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.small{fill:#9198a1}
.mcpz{fill:#4493f8}.minimal{fill:#656c76}.bare{stroke:#ff7b72}}";

/// Draws the rows that are meant to be.
pub fn draw(rows: &[Row], machine: &str) -> String {
    let mut body = String::new();
    let mut y = legend(&mut body, machine);
    let panels = [
        (Panel::Time, "How long it takes, × bare (shorter is better)"),
        (Panel::Rate, "How many a second, × bare (longer is better)"),
    ];
    for (panel, title) in panels {
        let rows: Vec<_> = rows.iter().filter(|row| row.panel == Some(panel)).collect();
        if !rows.is_empty() {
            y = draw_panel(&mut body, title, &rows, y);
        }
    }
    let names: Vec<_> = rows.iter().filter(|row| row.panel.is_some()).map(describe).collect();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {y}\" role=\"img\" \
         aria-labelledby=\"title desc\">\n<title id=\"title\">mcpz compared with two baselines</title>\n\
         <desc id=\"desc\">{}</desc>\n<style>{STYLE}</style>\n{body}</svg>\n",
        escape(&names.join("; "))
    )
}

/// What the colours mean, and where it was measured. Returns where the next thing goes.
fn legend(body: &mut String, machine: &str) -> f64 {
    let mut x = 0.0;
    for (class, name, room) in [("mcpz", "mcpz", 65.0), ("minimal", "a minimal server", 140.0)] {
        line(body, format_args!(r#"<rect class="{class}" x="{x}" y="8" width="12" height="12"/>"#));
        line(body, format_args!(r#"<text x="{}" y="18">{name}</text>"#, x + 18.0));
        x += room;
    }
    line(body, format_args!(r#"<path class="bare" d="M{} 6v16"/>"#, x + 6.0));
    let bare = "bare: the same without a server";
    line(body, format_args!(r#"<text x="{}" y="18">{bare}</text>"#, x + 14.0));
    let machine = escape(machine);
    line(body, format_args!(r#"<text class="small" x="0" y="40">{machine}</text>"#));
    56.0
}

/// Draws a title, bars and the line of the bare baseline. Returns where the next thing goes.
fn draw_panel(body: &mut String, title: &str, rows: &[&Row], top: f64) -> f64 {
    line(body, format_args!(r#"<text class="head" x="0" y="{}">{title}</text>"#, top + 16.0));
    let ratios = rows.iter().flat_map(|row| [row.times_bare(), row.ratio(row.minimal)]);
    let most = ratios.flatten().fold(1.0, f64::max).min(MOST);
    let scale = LONGEST / most;
    let begin = top + 28.0;
    let mut y = begin;
    for row in rows {
        let name = escape(&name(row));
        line(body, format_args!(r#"<text x="0" y="{}">{name}</text>"#, y + 15.0));
        let ours = row.times_bare().unwrap_or_default();
        let width = bar(body, "mcpz", y + 3.0, ours.min(most) * scale);
        let x = LEFT + width.max(scale) + 6.0;
        let cut = if ours > most { " →" } else { "" };
        line(body, format_args!(r#"<text x="{x:.1}" y="{}">{ours:.2}{cut}</text>"#, y + 14.0));
        if let Some(minimal) = row.ratio(row.minimal) {
            bar(body, "minimal", y + 16.0, minimal.min(most) * scale);
        }
        y += LINE;
    }
    let (x, length) = (LEFT + scale, y - begin);
    line(body, format_args!(r#"<path class="bare" d="M{x:.1} {begin}v{length}"/>"#));
    y + 12.0
}

/// Draws a bar and returns its width.
fn bar(body: &mut String, class: &str, y: f64, width: f64) -> f64 {
    let height = if class == "mcpz" { 12 } else { 6 };
    let shape = format_args!(r#"x="{LEFT}" y="{y}" width="{width:.1}" height="{height}""#);
    line(body, format_args!(r#"<rect class="{class}" {shape}/>"#));
    width
}

/// A row in words, for those who do not see the picture.
fn describe(row: &Row) -> String {
    let ratio = row.times_bare().unwrap_or_default();
    format!("{}: {ratio:.2} times the bare baseline", name(row))
}

/// What is measured, without the unit: a ratio has none.
fn name(row: &Row) -> String {
    let what = row.what.replace('`', "");
    what.rsplit_once(',').map_or(what.clone(), |(name, _)| name.to_owned())
}

fn line(body: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(body, "{text}").expect("there is memory");
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Row> {
        vec![
            Row::new("`true`, µs", 600.0).bare(500.0).minimal(550.0).drawn(Panel::Time),
            Row::new("a < b & c", 9000.0).bare(1000.0).drawn(Panel::Time),
            Row::new("`true`, a second", 900.0).bare(1000.0).drawn(Panel::Rate),
            Row::new("bytes", 6000.0),
        ]
    }

    #[test]
    fn each_drawn_row_has_a_bar_for_each_who_took_part_and_its_ratio() {
        let picture = draw(&rows(), "Linux");
        let bars = |class: &str| picture.matches(&format!("<rect class=\"{class}\"")).count() - 1;
        assert_eq!((bars("mcpz"), bars("minimal")), (3, 1));
        for ratio in [">1.20<", ">9.00 →<", ">0.90<"] {
            assert!(picture.contains(ratio), "{ratio} in {picture}");
        }
        assert!(!picture.contains("bytes"));
    }

    #[test]
    fn a_bar_that_would_leave_the_picture_is_cut() {
        let picture = draw(&rows(), "Linux");
        let widths = picture.split("width=\"").skip(1).filter_map(|rest| rest.split('"').next());
        assert!(widths.map(|width| width.parse::<f64>().unwrap()).all(|width| width <= LONGEST));
    }

    #[test]
    fn it_is_small_and_speaks_to_those_who_do_not_see_it() {
        let many: Vec<_> = (0..5).flat_map(|_| rows()).collect();
        let picture = draw(&many, "Linux");
        assert!(picture.len() < 10_000, "{}", picture.len());
        assert!(picture.contains("true: 1.20 times the bare baseline"));
        assert!(picture.contains("a &lt; b &amp; c") && !picture.contains("b & c"));
        assert_eq!(picture.matches("<text").count(), picture.matches("</text>").count());
    }
}
