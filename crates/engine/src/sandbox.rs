//! The sandbox of one owner's commands.
//!
//!     SandboxSettings ─ survey ─▶ Layout ─▶ bwrap ─▶ agent ─▶ commands     one for each owner
//!                                    │                  └─ listener ─▶ proxy, served from here
//!                                    └─ change? ─▶ the next command gets a new sandbox
//!
//! A run holds on to its sandbox. When no run does any more, its agent ends with everything it started.

mod refusals;

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mcpz_agent::{Confinement, Limits, Link};
use mcpz_output::{Output, Stream};
use mcpz_proxy::{Proxy, Report, Rules, environment_for};
use mcpz_runtime::{aside, random_name};
use mcpz_sandbox::{
    Bubblewrap, Cover, Layout, Mode, Network, Placeholders, SERVICE_VARIABLES, View,
};

use crate::error::Error;
use crate::outcome::End;
use crate::settings::SandboxSettings;
use crate::variables::Variables;
use refusals::Refusals;

/// How often an enclosure is tried to be made while what it stands on changes.
const TRIES: usize = 10;

/// How much of a run's id stands for it in what its programs say to the proxy.
const LABEL: usize = 12;

/// The agent inside a sandbox.
pub struct InnerAgent<'a> {
    /// The program, by a path that is the same for others.
    pub program: &'a Path,
    pub variables: &'a Variables,
    pub limits: Limits,
}

pub struct Sandbox {
    link: Link,
    layout: Layout,
    mode: Mode,
    way_out: Option<WayOut>,
    /// Whether it is in the place of another, and nobody was told.
    recreated: AtomicBool,
    _placeholders: Placeholders,
    _tmp: Option<PrivateFolder>,
}

struct WayOut {
    port: u16,
    refusals: Arc<Refusals>,
    _proxy: Proxy,
}

impl Sandbox {
    /// Makes one. Its agent goes with the thread that calls this.
    pub async fn make(settings: &SandboxSettings, agent: &InnerAgent<'_>) -> Result<Self, Error> {
        let mut tries = 1;
        let (mut layout, mut placeholders) = survey(&settings.view).await?;
        loop {
            match Self::enter(settings, &layout, agent).await {
                Err(_) if layout.uncover_gone() => {}
                // Something it should stand on was replaced before it stood.
                Err(_) if tries < TRIES && layout.is_outdated() => {
                    tries += 1;
                    (layout, placeholders) = survey(&settings.view).await?;
                }
                Err(error) => return Err(error),
                Ok((link, way_out, tmp)) => {
                    let (_placeholders, _tmp) = (placeholders, tmp);
                    let (mode, recreated) = (settings.view.mode, AtomicBool::new(false));
                    return Ok(Self {
                        link,
                        layout,
                        mode,
                        way_out,
                        recreated,
                        _placeholders,
                        _tmp,
                    });
                }
            }
        }
    }

    async fn enter(
        settings: &SandboxSettings,
        layout: &Layout,
        agent: &InnerAgent<'_>,
    ) -> Result<(Link, Option<WayOut>, Option<PrivateFolder>), Error> {
        let (link, listener, tmp) = match &settings.ring {
            Some(ring) => within(ring, layout, agent).await?,
            None => sealed(layout, agent).await?,
        };
        let way_out = listener.map(|listener| WayOut::open(listener, &settings.net)).transpose()?;
        Ok((link, way_out, tmp))
    }

    /// Notes that it is in the place of another.
    pub fn note_recreated(&self) {
        self.recreated.store(true, Ordering::Relaxed);
    }

    pub fn link(&self) -> &Link {
        &self.link
    }

    /// Whether it still keeps what it should. What is replaced outside takes the mount on it away.
    pub fn holds(&self) -> bool {
        !self.link.is_closed() && self.layout.change().is_none()
    }

    /// Variables by which a run's programs find the way out.
    pub fn variables(&self, run: &str) -> Vec<(OsString, Option<OsString>)> {
        let Some(way_out) = &self.way_out else { return Vec::new() };
        let variables = environment_for(way_out.port, label(run));
        variables.into_iter().map(|(name, value)| (name.into(), Some(value.into()))).collect()
    }

    /// What a run that ended so was refused, as far as that is known: where it wanted to connect to and, from what it
    /// printed, which files it wanted. What git was led to read is told, too, and that files are gone.
    pub fn refused(&self, run: &str, end: End, output: &Output, directory: &Path) -> Vec<String> {
        let printed = match end {
            End::Exited(0) => String::new(),
            _ => output.newest(&[Stream::Stdout, Stream::Stderr]),
        };
        let network = self.way_out.iter().flat_map(|way_out| way_out.refusals.take(label(run)));
        let files = refusals::files(&printed, directory, |path| self.explain(path));
        let intrusion = self.layout.intrusion().map(|path| {
            format!(
                "{} makes git read other settings than its own: remove it before you use git outside \
                 of the sandbox",
                path.display()
            )
        });
        let recreated = self.recreated.swap(false, Ordering::Relaxed).then(|| {
            "sandbox: made anew, as what it stands on has changed: what was in /tmp is gone"
                .to_owned()
        });
        network.chain(files).chain(intrusion).chain(recreated).collect()
    }

    /// Why a file cannot be written or seen here, if it is the sandbox that keeps it.
    fn explain(&self, path: &Path) -> Option<String> {
        let path_shown = path.display();
        Some(match self.layout.cover_of(path) {
            Some(Cover::Hidden) => {
                format!("sandbox: {path_shown} is hidden, as it may hold secrets (`deny_read`)")
            }
            Some(Cover::Protected | Cover::Pinned) => format!(
                "sandbox: {path_shown} configures other programs and cannot be changed; \
                 `unprotected` in [sandbox] would allow it"
            ),
            None | Some(Cover::Shown) => match self.mode {
                Mode::ReadOnly => format!(
                    "sandbox: {path_shown} cannot be written in read-only mode; `--sandbox \
                     workspace` allows the working directory"
                ),
                Mode::Workspace => format!(
                    "sandbox: {path_shown} is outside of what can be written; `write_dirs` in \
                     [sandbox] would allow it"
                ),
            },
            Some(Cover::Writable | Cover::Private) => return None,
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
        let rules = Rules::parse(net).map_err(Error::Net)?;
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

type Entered = (Link, Option<std::net::TcpListener>, Option<PrivateFolder>);

/// An agent in a ring of its own.
async fn within(
    ring: &Bubblewrap,
    layout: &Layout,
    agent: &InnerAgent<'_>,
) -> Result<Entered, Error> {
    let arguments = [OsString::from("agent")];
    let entrance = ring.command(layout, agent.program, &arguments).map_err(Error::Resources)?;
    let way_out = layout.network == Network::Off;
    // Whose processes are counted is up to the namespace.
    let limits = Limits { own_namespace: true, ..agent.limits };
    let confinement = Confinement { permissions: layout.permissions(), proxied: way_out };
    let (mut command, options) = entrance.into_parts();
    set(&mut command, agent.variables);
    let (link, listener) = Link::start_confined(command, limits, confinement).await?;
    drop(options);
    Ok((link, listener, None))
}

/// An agent whose commands are sealed, and nothing more.
async fn sealed(layout: &Layout, agent: &InnerAgent<'_>) -> Result<Entered, Error> {
    let parent = agent.variables.get("TMPDIR").map_or(Path::new("/tmp"), Path::new);
    let tmp = PrivateFolder::make(parent).map_err(Error::Resources)?;
    let permissions = layout.permissions_without_mounts(&tmp.0).map_err(Error::View)?;
    let confinement = Confinement { permissions, proxied: false };
    let mut command = Command::new(agent.program);
    set(&mut command, agent.variables);
    SERVICE_VARIABLES.iter().for_each(|name| {
        command.env_remove(name);
    });
    command.arg("agent").env("TMPDIR", &tmp.0).current_dir(&layout.directory);
    let (link, listener) = Link::start_confined(command, agent.limits, confinement).await?;
    Ok((link, listener, Some(tmp)))
}

/// Gives a command these variables and no others.
fn set(command: &mut Command, variables: &Variables) {
    command.env_clear().envs(variables.all().iter().map(|(name, value)| (name, value)));
}

/// Looks what a view means now, and takes the names that must not be taken.
async fn survey(view: &View) -> Result<(Layout, Placeholders), Error> {
    let view = view.clone();
    let surveyed = aside(move || {
        let mut layout = view.survey().map_err(Error::View)?;
        let placeholders = layout.create_placeholders().map_err(Error::Resources)?;
        Ok((layout, placeholders))
    });
    surveyed.await.unwrap_or(Err(Error::Closed))
}

fn label(run: &str) -> &str {
    run.get(..LABEL).unwrap_or(run)
}

/// A folder that goes with the enclosure.
struct PrivateFolder(PathBuf);

impl PrivateFolder {
    fn make(parent: &Path) -> io::Result<Self> {
        use std::os::unix::fs::DirBuilderExt;
        let path = parent.join(format!("mcpz-tmp-{}", random_name()?));
        std::fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
