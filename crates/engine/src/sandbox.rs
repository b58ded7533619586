//! The sandbox of one owner's commands: an agent in namespaces made by bubblewrap, a layout and a proxy.
//!
//!     SandboxSettings ─ survey ─▶ Layout ─▶ bwrap ─▶ agent ─▶ commands     one for each owner
//!                                    │                  └─ listener ─▶ proxy, served from here
//!                                    └─ change? ─▶ the next command gets a new sandbox
//!
//! A sandbox is made for an owner's first command and checked before each later one, which takes about 70 µs. Linux
//! removes a mount, in every namespace, when someone outside replaces or deletes the file below it, as an editor does.
//! A secret file outside of homes that is created later is not covered either. In both cases the next command gets a
//! new sandbox, with an empty `/tmp` and another loopback network. A run holds on to its own sandbox; the last run to
//! end takes the agent with it. A detached job has a sandbox of its own, made by its recorder.
//!
//! While commands run, a guard takes away what they must not create (`mcpz_sandbox::Guard`).
//!
//! Process ids inside differ from those outside. Answers contain the inner ones, which other commands can use.

mod homes;
mod ports;
mod refusals;
mod taken;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use mcpz_agent::{Confinement, Limits, Link, SharedConfig};
use mcpz_output::{Output, Stream};
use mcpz_proxy::{Proxy, Report, Rules, environment_for};
use mcpz_runtime::{PrivateFolder, spawn_blocking};
use mcpz_sandbox::{
    Bubblewrap, Cover, Guard, Layer, Layout, Mode, Network, SERVICE_VARIABLES, View, WatchedGuard,
    limit_caches,
};

use rustix::fs::OFlags;

use crate::error::Error;
use crate::outcome::End;
use crate::settings::SandboxSettings;
use crate::variables::Variables;
use homes::Homes;
use ports::Ports;
use refusals::Refusals;

/// How often to try to make a sandbox while files below its mounts keep changing.
const MAX_TRIES: usize = 10;

/// How often to look for sockets that are new, at most.
const SOCKET_INTERVAL: Duration = Duration::from_secs(1);

/// How many configurations of git commands may change. A repository with more submodules is rare.
const MAX_SHARED_CONFIGS: usize = 64;

/// How much of a run's id its programs send to the proxy. They could send anything, so it is good for explanations, not
/// for decisions.
const LABEL_LENGTH: usize = 12;

/// The agent inside a sandbox.
pub struct InnerAgent<'a> {
    /// A path that means the same inside the sandbox.
    pub program: &'a Path,
    /// The same program for this process, outside. No other file can take its place.
    pub outside: &'a Path,
    pub variables: &'a Variables,
    pub limits: Limits,
}

pub struct Sandbox {
    link: Link,
    layout: Arc<Layout>,
    view: View,
    way_out: Option<WayOut>,
    /// Keeps the homes up to date, if it could be started.
    homes: Option<Homes>,
    /// Takes away what must not come into being, if commands can write anywhere.
    guard: Option<Arc<WatchedGuard>>,
    /// Why it replaces an earlier one, until an outcome has said so.
    recreated: Mutex<Option<String>>,
    ports: Ports,
    sockets: Mutex<KnownSockets>,
    _tmp: Option<PrivateFolder>,
    /// What commands write to caches. No other sandbox uses it.
    _layer: Option<Layer>,
}

/// Sockets that were bound after the sandbox was made.
struct KnownSockets {
    /// When somebody last looked for new ones.
    looked: Instant,
    /// Those that are hidden, with their inodes.
    hidden: BTreeSet<(PathBuf, u64)>,
}

/// Why a sandbox cannot be used any more.
#[derive(Debug)]
pub enum Broken {
    AgentEnded,
    /// The helper that keeps the homes up to date.
    HelperEnded,
    /// Someone outside replaced, deleted or created this file.
    Changed(PathBuf),
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AgentEnded => f.write_str("its agent ended"),
            Self::HelperEnded => f.write_str("the process that shows it your home ended"),
            Self::Changed(path) => write!(f, "{} changed", path.display()),
        }
    }
}

/// A sandbox in which a command runs. What comes into being there may be the command's work.
pub struct Occupied(Arc<Sandbox>);

impl Occupied {
    pub fn new(sandbox: Arc<Sandbox>) -> Self {
        sandbox.guard.iter().for_each(|guard| guard.enter());
        Self(sandbox)
    }

    pub fn sandbox(&self) -> &Arc<Sandbox> {
        &self.0
    }
}

impl Drop for Occupied {
    fn drop(&mut self) {
        self.0.guard.iter().for_each(|guard| guard.leave());
    }
}

struct WayOut {
    port: u16,
    refusals: Arc<Refusals>,
    _proxy: Proxy,
}

impl Sandbox {
    /// Makes one. Its agent ends with the thread that calls this.
    pub async fn make(settings: &SandboxSettings, agent: &InnerAgent<'_>) -> Result<Self, Error> {
        let mut tries = 1;
        let layer = layer(settings).await;
        let survey = async || {
            let mut layout = survey(&settings.view).await?;
            let home_and_layer = settings.caches.as_ref().zip(layer.as_ref());
            home_and_layer.iter().for_each(|(it, layer)| layout.add_layer(&it.home, &layer.folder));
            Ok::<_, Error>(layout)
        };
        let mut layout = survey().await?;
        let (link, way_out, _tmp) = loop {
            match Self::start_agent(settings, &layout, agent).await {
                // Bubblewrap fails on a socket that is gone, and sockets go all the time. This leaves out those that
                // are gone; a new survey could add as many others.
                Err(_) if layout.uncover_gone() => {}
                // Something below a mount was replaced before bubblewrap mounted it.
                Err(_) if tries < MAX_TRIES && layout.is_outdated() => {
                    tries += 1;
                    layout = survey().await?;
                }
                started => break started?,
            }
        };
        let guard = (settings.view.mode == Mode::Workspace).then(|| {
            let folder = settings.quarantine.clone();
            WatchedGuard::new(Guard::new(layout.guarded.clone(), folder))
        });
        let homes = match settings.ring {
            Some(_) => Homes::start(agent.outside, &link, &layout).await,
            None => None,
        };
        Ok(Self {
            link,
            layout: Arc::new(layout),
            view: settings.view.clone(),
            way_out,
            homes,
            guard,
            recreated: Mutex::default(),
            ports: Ports::new(settings.publish.clone()),
            sockets: Mutex::new(KnownSockets { looked: Instant::now(), hidden: BTreeSet::new() }),
            _tmp,
            _layer: layer,
        })
    }

    async fn start_agent(
        settings: &SandboxSettings,
        layout: &Layout,
        agent: &InnerAgent<'_>,
    ) -> Result<(Link, Option<WayOut>, Option<PrivateFolder>), Error> {
        let (link, listener, tmp) = match &settings.ring {
            Some(ring) => start_in_namespaces(ring, layout, agent).await?,
            None => start_sealed(layout, agent).await?,
        };
        let way_out = listener.map(|listener| WayOut::open(listener, &settings.net)).transpose()?;
        Ok((link, way_out, tmp))
    }

    /// Notes why it replaces an earlier one, in which these jobs go on.
    pub fn replacing(mut self, broken: Option<Broken>, jobs: &[String]) -> Self {
        self.recreated = Mutex::new(broken.map(|why| {
            let recreated = format!("sandbox recreated because {why}; /tmp is empty now");
            match jobs {
                [] => recreated,
                jobs => format!(
                    "{recreated}, and {} went on in the old one, where new commands cannot reach what they serve",
                    jobs.join(", ")
                ),
            }
        }));
        self
    }

    pub fn link(&self) -> &Link {
        &self.link
    }

    /// Why no further command may run in it, or `None` if it is intact.
    pub fn broken(&self) -> Option<Broken> {
        match self.link.is_closed() {
            true => Some(Broken::AgentEnded),
            false => {
                let has_homes = self.homes.is_some();
                let changed = self.layout.change(has_homes).map(Path::to_owned);
                let created = || self.guard.as_ref().and_then(|guard| guard.accept());
                changed.or_else(created).map(Broken::Changed)
            }
        }
    }

    /// Ends everything in it, and waits until it is gone.
    pub async fn close(&self) {
        self.link.close().await;
        if let Some(homes) = &self.homes {
            homes.close().await;
        }
    }

    /// Shows commands what is new outside, and protects the hooks of new repositories. False if the first is not
    /// possible any more.
    pub async fn renew(&self) -> bool {
        let Some(homes) = &self.homes else { return true };
        let is_renewed = homes.renew().await;
        self.hide_new_sockets(homes).await;
        if let Some(guard) = &self.guard {
            for hooks in guard.free_hooks() {
                if homes.protect(&hooks).await {
                    guard.note_mounted_hooks(&hooks);
                }
            }
        }
        is_renewed
    }

    /// Hides sockets that were bound since the last time, which is a while ago: looking for them takes long.
    async fn hide_new_sockets(&self, homes: &Homes) {
        let known = || self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        if known().looked.elapsed() < SOCKET_INTERVAL {
            return;
        }
        known().looked = Instant::now();
        let layout = self.layout.clone();
        let found = spawn_blocking(move || layout.visible_sockets()).await.unwrap_or_default();
        for socket in found {
            if !known().hidden.contains(&socket) && homes.hide(&socket.0).await {
                known().hidden.insert(socket);
            }
        }
    }

    /// Takes away what must not be there by now. The next answer tells.
    pub fn check(&self) {
        self.guard.iter().for_each(|guard| guard.check());
    }

    /// What there is to say while commands run: what was taken away, and ports that nobody outside can reach.
    pub fn remarks(&self) -> Vec<String> {
        let taken = self.guard.as_ref().map(|guard| guard.settle()).unwrap_or_default();
        let mut remarks = taken::described(&taken, &self.view);
        remarks.extend(self.unpublished());
        remarks
    }

    /// Tells of ports that nobody outside can reach, once.
    fn unpublished(&self) -> Option<String> {
        // Otherwise commands have the network of this machine.
        let way_out = self.way_out.as_ref()?;
        self.ports.tell(self.link.listening().into_iter().filter(|port| *port != way_out.port))
    }

    /// Variables that point a run's programs to the proxy.
    pub fn variables(&self, run: &str) -> Vec<(OsString, Option<OsString>)> {
        let Some(way_out) = &self.way_out else { return Vec::new() };
        let variables = environment_for(way_out.port, label(run));
        variables.into_iter().map(|(name, value)| (name.into(), Some(value.into()))).collect()
    }

    /// A command has ended, or will, and something of it runs on.
    pub fn note_left(&self) {
        self.ports.note_left();
    }

    /// What the sandbox refused a run, as far as that is known: the connections, and the files its output complains
    /// about. Also reports what was taken away, that the sandbox was recreated, and ports that only it can reach.
    pub fn refused(&self, run: &str, end: End, output: &Output, directory: &Path) -> Vec<String> {
        let printed = match end {
            End::Exited(0) => {
                let printed = output.last_lines(&[Stream::Stderr]);
                refusals::certain(&printed, directory, |path| self.layout.is_hidden(path))
            }
            _ => output.last_lines(&[Stream::Stdout, Stream::Stderr]),
        };
        let network = self.way_out.iter().flat_map(|way_out| way_out.refusals.take(label(run)));
        let files = refusals::files(&printed, directory, |path| self.explain(path));
        let taken = self.guard.as_ref().map(|guard| guard.settle()).unwrap_or_default();
        let taken = taken::described(&taken, &self.view);
        let recreated = self.recreated.lock().unwrap_or_else(PoisonError::into_inner).take();
        network
            .chain(files)
            .chain(refusals::tracing(&printed))
            .chain(taken)
            .chain(recreated)
            .chain(self.ports.may_be_new().then(|| self.unpublished()).flatten())
            .collect()
    }

    /// Why the sandbox hides or protects a file, or `None` if it does not.
    fn explain(&self, path: &Path) -> Option<String> {
        let path_shown = path.display();
        let caches = self.homes.as_ref().map(|homes| &*homes.writable).unwrap_or_default();
        if caches.iter().any(|cache| path.starts_with(cache)) {
            return None;
        }
        let is_mounted_later = self.guard.as_ref().is_some_and(|guard| guard.has_mounted(path));
        let cover = match self.layout.cover_of(path) {
            Some(Cover::Writable) if is_mounted_later => Some(Cover::Protected),
            cover => cover,
        };
        Some(match cover {
            _ if self.layout.is_hidden(path) => {
                format!("sandbox: {path_shown} is hidden because it may hold secrets (`deny_read`)")
            }
            Some(Cover::Protected | Cover::Pinned) => {
                let why = "is write-protected because it configures other programs";
                match self.view.protected_name(path) {
                    Some(name) => format!(
                        "sandbox: {path_shown} {why}; `--unprotect {}` (`unprotected` in [sandbox]) would allow it",
                        name
                    ),
                    None => format!("sandbox: {path_shown} {why}"),
                }
            }
            None | Some(Cover::Shown) => match self.view.mode {
                Mode::ReadOnly => format!(
                    "sandbox: {path_shown} is not writable in read-only mode; `--sandbox workspace` makes the working \
                     directory writable"
                ),
                Mode::Workspace => {
                    let outside = "is outside the writable directories";
                    match self.view.folder_to_allow(path) {
                        Some(folder) => format!(
                            "sandbox: {path_shown} {outside}; `--write {}` (`write_dirs` in [sandbox]) would allow it",
                            folder.display()
                        ),
                        None => format!(
                            "sandbox: {path_shown} {outside}; commands can write in {} and /tmp",
                            self.layout.directory.display()
                        ),
                    }
                }
            },
            Some(Cover::Writable | Cover::Private | Cover::Hidden) => return None,
        })
    }
}

impl fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sandbox").field("layout", &self.layout).finish_non_exhaustive()
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.link.hang_up();
    }
}

impl WayOut {
    fn open(listener: std::net::TcpListener, net: &str) -> Result<Self, Error> {
        let rules = Rules::parse(net).map_err(Error::SandboxNetwork)?;
        let port = listener.local_addr().map_err(Error::Resources)?.port();
        let refusals = Arc::new(Refusals::default());
        let noted = refusals.clone();
        let report = move |report| {
            if let Report::Refused(refusal) = report {
                tracing::info!("{refusal}");
                noted.note(&refusal);
            }
        };
        let proxy = Proxy::serve(listener, rules, mcpz_proxy::Limits::default(), report);
        Ok(Self { port, refusals, _proxy: proxy.map_err(Error::Resources)? })
    }
}

type StartedAgent = (Link, Option<std::net::TcpListener>, Option<PrivateFolder>);

/// Starts an agent in its own namespaces.
async fn start_in_namespaces(
    ring: &Bubblewrap,
    layout: &Layout,
    agent: &InnerAgent<'_>,
) -> Result<StartedAgent, Error> {
    let arguments = [OsString::from("agent")];
    let entrance = ring.command(layout, agent.program, &arguments).map_err(Error::Resources)?;
    let way_out = layout.network == Network::Off;
    // The kernel then counts processes per namespace.
    let limits = Limits { own_namespace: true, ..agent.limits };
    let confinement = Confinement { permissions: layout.permissions(), proxied: way_out };
    let (mut command, options) = entrance.into_parts();
    set_environment(&mut command, agent.variables);
    let configs = shared_configs(layout);
    let (link, listener) = Link::start_confined(command, limits, confinement, configs).await?;
    drop(options);
    Ok((link, listener, None))
}

/// A layer for caches. Without one, commands cannot write to them.
async fn layer(settings: &SandboxSettings) -> Option<Layer> {
    let is_possible = settings.view.mode == Mode::Workspace && settings.ring.is_some();
    let caches = settings.caches.clone().filter(|_| is_possible)?;
    let directory = settings.view.directory.clone();
    let claimed = spawn_blocking(move || {
        let layer = Layer::claim(&caches.folder, &directory);
        // Nobody waits for it.
        drop(std::thread::Builder::new().spawn(move || limit_caches(&caches.folder, caches.limit)));
        layer
    });
    match claimed.await.map_err(io::Error::other).flatten() {
        Ok(layer) => Some(layer),
        Err(error) => {
            tracing::info!("no layer for caches: {error}");
            None
        }
    }
}

/// The configurations of git that commands may change in harmless ways.
fn shared_configs(layout: &Layout) -> Vec<SharedConfig> {
    let opened = layout.git_configs().filter_map(|(path, root)| {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::open(&path, flags, rustix::fs::Mode::empty()).ok()?;
        Some(SharedConfig { path, root: root.to_owned(), file: file.into() })
    });
    opened.take(MAX_SHARED_CONFIGS).collect()
}

/// Starts an agent without namespaces: Landlock and seccomp alone confine its commands.
async fn start_sealed(layout: &Layout, agent: &InnerAgent<'_>) -> Result<StartedAgent, Error> {
    let parent = agent.variables.get("TMPDIR").map_or(Path::new("/tmp"), Path::new);
    let tmp = PrivateFolder::create(parent).map_err(Error::Resources)?;
    let permissions =
        layout.permissions_without_mounts(tmp.path()).map_err(Error::SandboxLayout)?;
    let confinement = Confinement { permissions, proxied: false };
    let mut command = Command::new(agent.outside);
    set_environment(&mut command, agent.variables);
    SERVICE_VARIABLES.iter().for_each(|name| {
        command.env_remove(name);
    });
    command.arg("agent").env("TMPDIR", tmp.path()).current_dir(&layout.directory);
    let (link, listener) =
        Link::start_confined(command, agent.limits, confinement, Vec::new()).await?;
    Ok((link, listener, Some(tmp)))
}

/// Gives a command these variables and no others.
fn set_environment(command: &mut Command, variables: &Variables) {
    command.env_clear().envs(variables.all().iter().map(|(name, value)| (name, value)));
}

/// Finds out what a view covers now.
async fn survey(view: &View) -> Result<Layout, Error> {
    let view = view.clone();
    let surveyed = spawn_blocking(move || view.survey().map_err(Error::SandboxLayout));
    surveyed.await.unwrap_or(Err(Error::Closed))
}

fn label(run: &str) -> &str {
    run.get(..LABEL_LENGTH).unwrap_or(run)
}
