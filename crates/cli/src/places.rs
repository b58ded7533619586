//! `mcpz places`: lists the places of all servers of this user, and ends them.

use std::collections::BTreeSet;
use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use mcpz_audit::visible;
use mcpz_engine::{Connection, JobsFolder, PeerRefusal, PlaceListing};
use tokio::runtime::Builder;
use tokio::time::timeout;

use crate::args::PlacesCommand;
use crate::environment;
use crate::jobs::time;
use crate::settings;

/// How long an answer may take. A stopped process never answers.
const TIMEOUT: Duration = Duration::from_secs(2);

/// How long it may take to end places.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, thiserror::Error)]
pub enum PlacesError {
    #[error("cannot find the folder of servers; set HOME or XDG_STATE_HOME")]
    NoFolder,
    #[error("no place `{0}` is open; `mcpz places` shows all that are")]
    NotOpen(String),
    #[error("{0}")]
    Refused(PeerRefusal),
}

pub fn run(command: Option<PlacesCommand>, json: bool) -> Result<ExitCode, Box<dyn Error>> {
    let folder = JobsFolder::new(environment::jobs_folder().ok_or(PlacesError::NoFolder)?);
    if let Some(refusal) = PeerRefusal::own() {
        return Err(PlacesError::Refused(refusal).into());
    }
    let runtime = Builder::new_current_thread().enable_all().build()?;
    match command {
        None => list(&runtime.block_on(open(&folder)), json)?,
        Some(PlacesCommand::Stop { name }) => {
            let stopped = runtime.block_on(stop(&folder, &name));
            if stopped == 0 {
                return Err(PlacesError::NotOpen(name).into());
            }
            let places = if stopped == 1 { "place" } else { "places" };
            writeln!(io::stdout(), "{stopped} {places} `{name}` ended")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// All servers that answer.
fn servers(folder: &JobsFolder) -> impl Iterator<Item = Connection> {
    folder.sweep();
    folder.folders().into_iter().filter_map(|folder| Connection::open(&folder).ok())
}

async fn open(folder: &JobsFolder) -> Vec<PlaceListing> {
    let mut all = Vec::new();
    for mut server in servers(folder) {
        if let Ok(Ok(places)) = timeout(TIMEOUT, server.places()).await {
            all.extend(places);
        }
    }
    all.sort_by(|one, other| (&one.name, &one.owner).cmp(&(&other.name, &other.owner)));
    all
}

async fn stop(folder: &JobsFolder, name: &str) -> usize {
    let mut stopped = 0;
    for mut server in servers(folder) {
        if let Ok(Ok(places)) = timeout(STOP_TIMEOUT, server.stop_places(name)).await {
            stopped += places;
        }
    }
    stopped
}

fn list(open: &[PlaceListing], json: bool) -> Result<(), Box<dyn Error>> {
    let mut stdout = io::stdout().lock();
    if json {
        writeln!(stdout, "{}", serde_json::to_string_pretty(open)?)?;
        return Ok(());
    }
    // Those that the configuration file has and nobody uses.
    let configured: BTreeSet<_> = settings::load_file(None)?.places.into_keys().collect();
    let closed: Vec<_> =
        configured.iter().filter(|name| !open.iter().any(|place| place.name == **name)).collect();
    if open.is_empty() && closed.is_empty() {
        writeln!(stdout, "no places")?;
        return Ok(());
    }
    let kinds = open.iter().map(|place| visible(&place.kind).chars().count());
    let width = kinds.max().unwrap_or(0).max("KIND".len());
    writeln!(
        stdout,
        "{:<14} {:<8} {:>7}  {:<12} {:<width$} RUNS",
        "PLACE", "STATE", "AGE", "OWNER", "KIND"
    )?;
    for place in open {
        let owner = match (&place.owner, &place.session) {
            (Some(owner), Some(session)) => format!("{owner} {session}"),
            (Some(owner), None) => owner.clone(),
            (None, _) => "everybody".to_owned(),
        };
        let runs = match (place.commands, place.jobs.as_slice()) {
            (0, _) => "nothing".to_owned(),
            (1, []) => "1 command".to_owned(),
            (commands, []) => format!("{commands} commands"),
            (_, jobs) => jobs.join(", "),
        };
        writeln!(
            stdout,
            "{:<14} {:<8} {:>7}  {:<12} {:<width$} {}",
            place.name,
            "open",
            time(place.age),
            visible(&owner),
            visible(&place.kind),
            runs
        )?;
    }
    for name in closed {
        writeln!(stdout, "{name:<14} closed")?;
    }
    Ok(())
}
