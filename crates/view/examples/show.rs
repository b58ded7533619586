//! Shows a file in one of its forms: `show folded|errors FILE [ROOM]`, `show changes BEFORE AFTER [ROOM]`.

#![allow(clippy::allow_attributes, clippy::print_stdout, reason = "an example prints")]

use std::fs::File;
use std::io::Result;

use mcpz_view::Level;

fn main() -> Result<()> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let argument = |at: usize| arguments.get(at).map_or("", String::as_str);
    let room = |at| argument(at).parse().unwrap_or(4000);
    let shown = match argument(0) {
        "folded" => mcpz_view::folded(File::open(argument(1))?, room(2))?,
        "errors" => mcpz_view::errors(File::open(argument(1))?, 1, Level::Warning, room(2))?,
        _ => mcpz_view::changes(File::open(argument(1))?, File::open(argument(2))?, room(3))?.shown,
    };
    print!("{}", shown.text);
    let mcpz_view::Shown { consumed, lines, omitted, .. } = shown;
    println!("({consumed} bytes, {lines} lines, {omitted} omitted)");
    Ok(())
}
