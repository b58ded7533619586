//! The jobs as lines for people. On a terminal, each is one line: its command is cut to fit.

use std::io::{self, Write};
use std::time::Duration;

use mcpz_audit::visible;
use mcpz_engine::JobListing;

use super::find::{Location, short_run};
use crate::terminal;

pub fn print(jobs: &[(Location, JobListing)]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    let width = terminal::width(&stdout);
    let head = columns(["JOB", "RUN", "STATE", "TIME", "OWNER"]) + "COMMAND";
    writeln!(stdout, "{}", terminal::fit(&head, width))?;
    for (location, job) in jobs {
        let mark = if job.detached { "*" } else { "" };
        let line = columns([
            &job.name,
            &format!("{}{mark}", short_run(&job.run, jobs)),
            location.state(job),
            &time(job.duration),
            &visible(&job.owner),
        ]);
        writeln!(stdout, "{}", terminal::fit(&(line + &visible(&job.command)), width))?;
    }
    Ok(())
}

/// The columns before the command.
fn columns([job, run, state, time, owner]: [&str; 5]) -> String {
    format!("{job:<13} {run:<9} {state:<8} {time:>8}  {owner:<10} ")
}

/// A time in the two largest units that it has.
pub fn time(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        seconds @ 3600..86400 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
        seconds => format!("{}d{:02}h", seconds / 86400, seconds / 3600 % 24),
    }
}
