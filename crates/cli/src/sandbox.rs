//! The sandbox that the settings ask for, and whether this machine can enforce it.
//!
//! Without bubblewrap, Landlock and seccomp alone confine commands if nothing needs a mount, and the server warns.
//! Anything else that cannot be enforced is an error that says why, and what to do: no command runs unconfined.

use std::error::Error;
use std::ffi::OsString;
use std::fmt::Write;
use std::fs::DirBuilder;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use mcpz_agent::program_path;
use mcpz_engine::{CacheSettings, SandboxSettings};
use mcpz_proxy::{Rules, RulesError};
use mcpz_sandbox::{
    Hole, Layout, Mode, Network, Obstacle, Permissions, Protection, Support, View, ViewError, trial,
};

use crate::environment;
use crate::log::Format;
use crate::settings::{self, Net, SandboxMode};

/// How often to try out a sandbox while the files it covers change.
const TRIES: usize = 10;

#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    #[error("{0} needs a sandbox; add --sandbox workspace or --sandbox read-only")]
    Alone(&'static str),
    #[error("--net is invalid")]
    Net(#[from] RulesError),
    #[error(transparent)]
    View(#[from] ViewError),
    #[error("cannot test the sandbox")]
    Trial(#[source] std::io::Error),
    #[error("this machine cannot enforce the requested sandbox:{}", list(.0))]
    Impossible(Vec<Obstacle>),
    #[error("{view}; bubblewrap does not work here:{}", list(.obstacles))]
    NoMounts { view: ViewError, obstacles: Vec<Obstacle> },
    #[error("--net needs bubblewrap; without it, commands have no network:{}", list(.0))]
    NoNetwork(Vec<Obstacle>),
    #[error(
        "with --net on, this kernel cannot hide abstract sockets from commands; use a list of hosts \
         instead"
    )]
    NoSharing,
    #[error("the sandbox did not prevent: {0:?}")]
    Holes(Vec<Hole>),
}

fn list(obstacles: &[Obstacle]) -> String {
    obstacles.iter().fold(String::new(), |mut list, obstacle| {
        let _ = write!(list, "\n  {obstacle}");
        list
    })
}

/// What was asked for.
#[derive(Debug)]
pub struct SandboxRequest {
    pub settings: settings::Sandbox,
    /// Files of ours that are hidden in any case.
    pub hidden: Vec<PathBuf>,
    pub log: Format,
}

impl SandboxRequest {
    /// The sandbox of commands, if they have one. Tries from inside whatever must not be possible there.
    pub fn confining(
        &self,
        engine: &mcpz_engine::Settings,
    ) -> Result<Option<SandboxSettings>, SandboxError> {
        let net = self.net();
        let Some(mode) = self.mode() else {
            return match self.flag_alone() {
                Some(flag) => Err(SandboxError::Alone(flag)),
                None => Ok(None),
            };
        };
        Rules::parse(&net)?;
        let view = self.view(mode, &net, engine);
        // Hidden folders of ours that come into being later would take a new sandbox.
        for folder in environment::state_folder().into_iter().chain(environment::cache_folder()) {
            let _ = DirBuilder::new().mode(0o700).recursive(true).create(folder);
        }
        let (support, layout) = probe(&view)?;
        match support.protection() {
            Protection::Nothing => return Err(SandboxError::Impossible(support.obstacles)),
            Protection::RestrictionsOnly if net != "off" => {
                return Err(SandboxError::NoNetwork(support.obstacles));
            }
            Protection::RestrictionsOnly => {
                // Fails for what only mounts can protect.
                let alone = layout.permissions_without_mounts(&environment::temporary_folder());
                let obstacles = support.obstacles.clone();
                alone.map_err(|view| SandboxError::NoMounts { view, obstacles })?;
                self.log.warn(&format!(
                    "only Landlock and seccomp confine commands: they have no network, and can see \
                     other processes.{}",
                    list(&support.obstacles)
                ));
            }
            Protection::Both if net == "on" && !support.can_share_network() => {
                return Err(SandboxError::NoSharing);
            }
            Protection::Both => {}
        }
        let state = environment::state_folder().unwrap_or_else(|| engine.audit.folder.clone());
        let quarantine = state.join("quarantine");
        let home = engine.home.as_deref().and_then(|home| home.canonicalize().ok());
        let limit = self.settings.cache_size().0;
        let caches = home.zip(environment::cache_folder()).filter(|_| limit > 0);
        let caches = caches.map(|(home, folder)| CacheSettings { home, folder, limit });
        let ring = support.bubblewrap;
        let publish: Vec<_> = self.settings.publish().items.into_iter().map(|it| it.0).collect();
        for port in publish.iter().cloned().flatten() {
            if let Err(error) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
                self.log.warn(&format!("cannot publish port {port}: {error}"));
            }
        }
        Ok(Some(SandboxSettings { view, ring, net, quarantine, publish, caches }))
    }

    /// A flag that was given and has no meaning without a sandbox.
    fn flag_alone(&self) -> Option<&'static str> {
        let settings = &self.settings;
        [
            ("--net", matches!(settings.net(), Net::Flag(_))),
            ("--write", settings.write_dirs().by_flag),
            ("--hide", settings.deny_read().by_flag),
            ("--unprotect", settings.unprotected().by_flag),
            ("--publish", settings.publish().by_flag),
        ]
        .into_iter()
        .find_map(|(flag, given)| given.then_some(flag))
    }

    /// What commands can change, if they are in a sandbox.
    pub fn mode(&self) -> Option<Mode> {
        match self.settings.mode() {
            SandboxMode::Off => None,
            SandboxMode::ReadOnly => Some(Mode::ReadOnly),
            SandboxMode::Workspace => Some(Mode::Workspace),
        }
    }

    fn net(&self) -> String {
        match self.settings.net() {
            Net::One(hosts) | Net::Flag(hosts) => hosts,
            Net::List(hosts) => hosts.join(","),
        }
    }

    pub fn view(&self, mode: Mode, net: &str, engine: &mcpz_engine::Settings) -> View {
        let home = engine.home.as_deref();
        let expanded = |paths: Vec<PathBuf>| -> Vec<PathBuf> {
            paths.iter().map(|path| expand(path, home, &engine.working_directory)).collect()
        };
        let mut view = View::new(mode, engine.working_directory.clone());
        view.network = if net == "on" { Network::On } else { Network::Off };
        view.write_dirs = expanded(self.settings.write_dirs().items);
        view.deny_read = expanded(self.settings.deny_read().items);
        view.deny_read.extend(self.hidden.iter().cloned().chain(environment::cache_folder()));
        view.unprotected =
            self.settings.unprotected().items.into_iter().map(PathBuf::from).collect();
        view.program = program_path(&engine.agent);
        view.homes = homes(home);
        view.tmp_bytes = self.settings.tmp_size().0;
        view
    }
}

/// `~` is the home folder; other relative paths start at the working directory.
fn expand(path: &Path, home: Option<&Path>, directory: &Path) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(below), Some(home)) => home.join(below),
        _ => directory.join(path),
    }
}

/// The homes whose secrets are hidden: our own and, because root can read them, those of others.
fn homes(own: Option<&Path>) -> Vec<PathBuf> {
    let mut homes: Vec<_> = own.into_iter().map(Path::to_owned).collect();
    if rustix::process::geteuid().is_root() {
        let others = std::fs::read_dir("/home").into_iter().flatten().flatten();
        homes.extend(others.map(|entry| entry.path()).chain(["/root".into()]));
    }
    homes.sort();
    homes.dedup();
    homes
}

/// Tries out how much of a view this machine can enforce.
pub fn probe(view: &View) -> Result<(Support, Layout), SandboxError> {
    let own = environment::program().map_err(SandboxError::Trial)?;
    let mut tries = 1;
    loop {
        let mut layout = view.survey()?;
        let permissions =
            serde_json::to_string(&layout.permissions()).map_err(std::io::Error::other);
        let arguments = ["trial".into(), OsString::from(permissions.map_err(SandboxError::Trial)?)];
        let support = Support::probe(bwrap().as_deref(), &mut layout, (&own, &arguments));
        // A file it covers was replaced while it was set up.
        if support.bubblewrap.is_none() && layout.is_outdated() && tries < TRIES {
            tries += 1;
            continue;
        }
        return Ok((support, layout));
    }
}

fn bwrap() -> Option<PathBuf> {
    environment::find_file("bwrap", &environment::path_folders())
}

/// Tries from inside whatever must not be possible there.
pub fn run_trial(permissions: &str) -> Result<ExitCode, Box<dyn Error>> {
    let permissions: Permissions = serde_json::from_str(permissions)?;
    let holes = trial(&permissions)?;
    match holes.is_empty() {
        true => Ok(ExitCode::SUCCESS),
        false => Err(SandboxError::Holes(holes).into()),
    }
}

/// Keeps the homes of a sandbox up to date, for the server that started us.
pub fn serve_homes() -> Result<ExitCode, Box<dyn Error>> {
    mcpz_sandbox::serve_homes(std::io::stdin().lock(), std::io::stdout().lock())?;
    Ok(ExitCode::SUCCESS)
}
