//! The places that commands can run in.
//!
//!     [places.NAME], --place ─▶ Place        checked: its keys belong to its kind, and nothing rules it out

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mcpz_agent::PlaceFacts;
use mcpz_engine::PlaceSettings;
use mcpz_places::{InvalidHost, Kind, Per, Place, Slurm, Ssh};

use crate::command_environment::{CommandEnvironment, VariableFilter};
use crate::environment;
use crate::settings::{PlaceKind, PlacePer, PlaceTable, SandboxMode, Settings};

#[derive(Debug, thiserror::Error)]
pub enum PlacesError {
    #[error("[places.{name}] has no kind; set it to \"ssh\" or \"slurm\"")]
    NoKind { name: String },
    #[error("[places.{name}] has no {key}, which its kind needs")]
    Missing { name: String, key: &'static str },
    #[error("{key} in [places.{name}] does not belong to its kind")]
    Foreign { name: String, key: &'static str },
    #[error("{key} in [places.{name}] is 0, but must be at least 1")]
    Zero { name: String, key: &'static str },
    #[error("the name of [places.{name:?}] must consist of letters, digits, `-` and `_`")]
    Name { name: String },
    #[error(
        "there is no place `{name}`; add a table [places.{name}], or write ssh:HOST or slurm:PARTITION"
    )]
    Unknown { name: String },
    #[error(transparent)]
    Host(#[from] InvalidHost),
    #[error(
        "commands cannot run both in a sandbox of this machine and in the place `{name}`; leave out --sandbox or \
         --place"
    )]
    Sandbox { name: String },
    #[error(
        "commands in the place `{name}` get the variables of that place; leave out --login-env or --place"
    )]
    LoginEnv { name: String },
}

/// The places of the settings, if there are any.
pub fn places(
    settings: &Settings,
    environment: &Arc<CommandEnvironment>,
) -> Result<Option<PlaceSettings>, PlacesError> {
    let mut tables = settings.places.clone();
    let default =
        settings.shell_tool.place().map(|place| resolve(&place, &mut tables)).transpose()?;
    if let Some(name) = default.clone() {
        if settings.sandbox.mode() != SandboxMode::Off {
            return Err(PlacesError::Sandbox { name });
        }
        if settings.shell_tool.login_env() {
            return Err(PlacesError::LoginEnv { name });
        }
    }
    if tables.is_empty() {
        return Ok(None);
    }
    let agent = settings.shell_tool.place_agent();
    let place = |(name, table): (&String, &PlaceTable)| {
        let place = place(name, table)?;
        let agent = place.agent.clone().or(agent.clone());
        Ok(Place { agent, ..place })
    };
    let all = tables.iter().map(place).collect::<Result<_, PlacesError>>()?;
    let environment = environment.clone();
    let resolve =
        move |facts: &PlaceFacts| environment.build(&facts.variables, environment.shell_there());
    let variables = VariableFilter::without_ours(environment::variables());
    Ok(Some(PlaceSettings { all, default, variables, resolve: Arc::new(resolve) }))
}

/// The name of the place that is meant: one that has a table, or one in short, which gets a table.
fn resolve(place: &str, tables: &mut BTreeMap<String, PlaceTable>) -> Result<String, PlacesError> {
    if tables.contains_key(place) {
        return Ok(place.to_owned());
    }
    let (kind, rest) =
        place.split_once(':').map_or((place, None), |(kind, rest)| (kind, Some(rest)));
    let rest = rest.map(str::to_owned);
    let table = match kind {
        "ssh" if rest.is_some() => PlaceTable {
            kind: Some(Some(PlaceKind::Ssh)),
            host: Some(rest),
            ..PlaceTable::default()
        },
        "slurm" => PlaceTable {
            kind: Some(Some(PlaceKind::Slurm)),
            partition: Some(rest),
            ..PlaceTable::default()
        },
        "process" if rest.is_none() => {
            PlaceTable { kind: Some(Some(PlaceKind::Process)), ..PlaceTable::default() }
        }
        _ => return Err(PlacesError::Unknown { name: place.to_owned() }),
    };
    tables.insert(kind.to_owned(), table);
    Ok(kind.to_owned())
}

fn place(name: &str, table: &PlaceTable) -> Result<Place, PlacesError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    if name.is_empty() || !name.chars().all(is_plain) {
        return Err(PlacesError::Name { name: name.to_owned() });
    }
    let missing = |key| PlacesError::Missing { name: name.to_owned(), key };
    let kind = table.kind().ok_or_else(|| PlacesError::NoKind { name: name.to_owned() })?;
    check_keys(name, kind, table)?;
    let kind = match kind {
        PlaceKind::Process => Kind::Process,
        PlaceKind::Ssh => {
            let host = table.host().ok_or_else(|| missing("host"))?;
            Kind::Ssh(Ssh::new(&host, table.options())?)
        }
        PlaceKind::Slurm => Kind::Slurm(Slurm {
            partition: table.partition(),
            account: table.account(),
            time: table.time(),
            options: table.options(),
        }),
    };
    let counts = [
        ("idle", table.idle().0),
        ("max", table.max() as u64),
        ("start_time", table.start_time().0),
        ("beat", table.beat().0),
    ];
    if let Some((key, _)) = counts.into_iter().find(|(_, value)| *value == 0) {
        return Err(PlacesError::Zero { name: name.to_owned(), key });
    }
    Ok(Place {
        name: name.to_owned(),
        kind,
        per: match table.per() {
            PlacePer::Server => Per::Server,
            PlacePer::Owner => Per::Owner,
            PlacePer::Session => Per::Session,
        },
        idle: Duration::from_secs(table.idle().0),
        max: table.max(),
        ready: table.ready(),
        directory: table.directory(),
        agent: table.agent(),
        start_time: Duration::from_secs(table.start_time().0),
        beat: Duration::from_secs(table.beat().0),
    })
}

/// Refuses keys of other kinds: what is set has to have an effect.
fn check_keys(name: &str, kind: PlaceKind, table: &PlaceTable) -> Result<(), PlacesError> {
    const SSH: &[PlaceKind] = &[PlaceKind::Ssh];
    const SLURM: &[PlaceKind] = &[PlaceKind::Slurm];
    let keys = [
        ("host", table.host.is_some(), SSH),
        ("partition", table.partition.is_some(), SLURM),
        ("account", table.account.is_some(), SLURM),
        ("time", table.time.is_some(), SLURM),
        ("options", table.options.is_some(), &[PlaceKind::Ssh, PlaceKind::Slurm]),
    ];
    match keys.into_iter().find(|(_, is_set, kinds)| *is_set && !kinds.contains(&kind)) {
        Some((key, ..)) => Err(PlacesError::Foreign { name: name.to_owned(), key }),
        None => Ok(()),
    }
}
