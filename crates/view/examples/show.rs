//! Shows a file folded: `show FILE [ROOM]`.

#![allow(clippy::allow_attributes, clippy::print_stdout, reason = "an example prints")]

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or_default();
    let room = arguments.next().and_then(|room| room.parse().ok()).unwrap_or(4000);
    print!("{}", mcpz_view::folded(std::fs::File::open(&path)?, room)?.text);
    Ok(())
}
