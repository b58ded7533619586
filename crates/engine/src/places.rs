//! The places of an engine: made when somebody first needs one, ended when nobody has needed it for a while.
//!
//!     PlaceKey ─▶ PlaceSlot ─▶ OpenPlace ─ Link ─▶ …
//!
//! What a key stands for depends on who shares the place: the server, an owner, or a session. A slot is locked while
//! its place is made, so that nobody makes it twice, and a slow place holds up only those who need it.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use mcpz_agent::{FarLink, Found, Link, Lookup};
use mcpz_places::{Ending, Opened, Opening, Per, Place};
use tokio::sync::{SetOnce, watch};

use crate::bounds::Bounds;
use crate::environment::Environment;
use crate::error::Error;
use crate::settings::Settings;

/// How long a place may take to end when the engine closes.
const CLOSE_TIME: Duration = Duration::from_secs(20);

/// Whose place it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PlaceKey {
    place: String,
    owner: Option<u64>,
    session: Option<String>,
}

impl PlaceKey {
    pub fn new(place: &Place, owner: u64, session: Option<&str>) -> Self {
        let owner = (place.per != Per::Server).then_some(owner);
        let session = session.filter(|_| place.per == Per::Session).map(str::to_owned);
        Self { place: place.name.clone(), owner, session }
    }
}

/// All places that are open, or being made.
#[derive(Default)]
pub struct Places {
    slots: Mutex<HashMap<PlaceKey, Arc<PlaceSlot>>>,
    /// Places that nobody has yet.
    ready: Mutex<Vec<Arc<OpenPlace>>>,
    /// Has a receiver for each process that leads to a place.
    children: watch::Sender<()>,
    /// Set when no more places are made.
    closing: SetOnce<()>,
}

#[derive(Default)]
pub struct PlaceSlot {
    pub open: tokio::sync::Mutex<Option<Arc<OpenPlace>>>,
}

/// A place that takes commands.
pub struct OpenPlace {
    pub name: Arc<str>,
    pub link: FarLink,
    pub environment: Environment,
    pub working_directory: PathBuf,
    pub bounds: Bounds,
    /// What it is, in a few words.
    pub kind: String,
    /// Whose it is, once it is somebody's.
    key: OnceLock<(Option<Arc<str>>, Option<String>)>,
    pub made: Instant,
    /// When somebody last needed it. `None` once it is ended for lack of use.
    last_used: Mutex<Option<Instant>>,
    /// True once nothing of it is left.
    ended: watch::Receiver<bool>,
}

/// Where a command runs. Holding it keeps a place from being ended for lack of use.
#[derive(Debug, Clone, Default)]
pub struct Venue {
    pub place: Option<Arc<OpenPlace>>,
}

impl Places {
    /// Makes a place, unless the engine closes meanwhile.
    pub async fn make(&self, place: &Place, settings: &Settings) -> Result<Arc<OpenPlace>, Error> {
        tokio::select! {
            made = OpenPlace::make(place, settings, &self.children) => made,
            _ = self.closing.wait() => Err(Error::Closed),
        }
    }

    /// Gives up the places that are being made.
    pub fn begin_closing(&self) {
        let _ = self.closing.set(());
    }

    /// Waits until no process that leads to a place is left, nor of one that was given up.
    pub async fn ended(&self) {
        let _ = tokio::time::timeout(CLOSE_TIME, self.children.closed()).await;
    }

    /// The slot of a key. Fails if there are too many places of this name.
    pub fn slot(&self, key: PlaceKey, place: &Place) -> Result<Arc<PlaceSlot>, Error> {
        let mut slots = lock(&self.slots);
        slots.retain(|_, slot| slot.is_used());
        if let Some(slot) = slots.get(&key) {
            return Ok(slot.clone());
        }
        if slots.keys().filter(|known| known.place == key.place).count() >= place.max {
            return Err(Error::TooManyPlaces { name: place.name.clone(), limit: place.max });
        }
        Ok(slots.entry(key).or_default().clone())
    }

    /// The open place of a key.
    pub fn find(&self, key: &PlaceKey) -> Option<Arc<OpenPlace>> {
        let slot = lock(&self.slots).get(key).cloned()?;
        let open = slot.open.try_lock().ok()?;
        open.as_ref().filter(|place| !place.link.is_closed()).cloned()
    }

    /// A place that was made before anybody needed it.
    pub fn take_ready(&self, name: &str) -> Option<Arc<OpenPlace>> {
        let mut ready = lock(&self.ready);
        ready.retain(|place| !place.link.is_closed());
        let at = ready.iter().position(|place| *place.name == *name)?;
        // It may be about to end for lack of use.
        Some(ready.swap_remove(at)).filter(|place| place.touch())
    }

    /// How many of them there are.
    pub fn count_ready(&self, name: &str) -> usize {
        lock(&self.ready).iter().filter(|place| *place.name == *name).count()
    }

    pub fn add_ready(&self, place: Arc<OpenPlace>) {
        lock(&self.ready).push(place);
    }

    /// All that are open.
    pub fn all(&self) -> Vec<Arc<OpenPlace>> {
        let slots: Vec<_> = lock(&self.slots).values().cloned().collect();
        let open = slots.iter().filter_map(|slot| slot.open.try_lock().ok()?.clone());
        open.chain(lock(&self.ready).iter().cloned()).collect()
    }
}

impl PlaceSlot {
    /// Whether it has a place, or somebody waits for one.
    fn is_used(self: &Arc<Self>) -> bool {
        let is_open = |open: &Option<Arc<OpenPlace>>| {
            open.as_ref().is_some_and(|place| !place.link.is_closed())
        };
        Arc::strong_count(self) > 1 || self.open.try_lock().map_or(true, |open| is_open(&open))
    }
}

impl OpenPlace {
    /// Makes a place, and looks after it until it has ended.
    async fn make(
        place: &Place,
        settings: &Settings,
        children: &watch::Sender<()>,
    ) -> Result<Arc<Self>, Error> {
        let places = settings.places.as_ref().ok_or(Error::Closed)?;
        let program = settings.agent.canonicalize().map_err(Error::Resources)?;
        let opening = Opening {
            program: &program,
            variables: &places.variables,
            limits: &settings.limits,
            working_directory: &settings.working_directory,
            children,
        };
        // What a killed server left behind goes before more is made. If that fails, making it says why.
        if let Ok(removed @ 1..) = place.sweep(&opening).await {
            tracing::info!("removed {removed} places that ended servers had left behind");
        }
        let failed = |source| Error::Place { name: place.name.clone(), source };
        let Opened { link, facts, ending } = place.open(&opening).await.map_err(failed)?;
        let mut environment = (places.resolve)(&facts);
        environment.shell = find_shell(&link, &environment).await;
        link.prepare(environment.variables.all().to_vec(), settings.limits);
        let own = place.kind.shares_files().then(|| settings.working_directory.clone());
        let working_directory = place.directory.clone().or(own).unwrap_or(facts.directory);
        let bounds = Bounds::there(settings, &working_directory);
        let (ending_done, ended) = watch::channel(false);
        let (name, last_used) = (place.name.as_str().into(), Mutex::new(Some(Instant::now())));
        let open = Self {
            name,
            link,
            environment,
            working_directory,
            bounds,
            kind: place.description(),
            key: OnceLock::new(),
            made: Instant::now(),
            last_used,
            ended,
        };
        let open = Arc::new(open);
        let (weak, link, idle) = (Arc::downgrade(&open), open.link.clone(), place.idle);
        tokio::spawn(async move {
            tokio::select! {
                () = link.ended() => {}
                () = unused(weak, idle) => {}
            }
            look_after_end(link, ending).await;
            let _ = ending_done.send(true);
        });
        Ok(open)
    }

    /// Gives it to an owner or a session, if it is not for everybody.
    pub fn give_to(&self, owner: &Arc<str>, key: &PlaceKey) {
        let owner = key.owner.is_some().then(|| owner.clone());
        let _ = self.key.set((owner, key.session.clone()));
    }

    /// The owner and the session whose place it is, if it is not for everybody.
    pub fn whose(&self) -> (Option<Arc<str>>, Option<String>) {
        self.key.get().cloned().unwrap_or_default()
    }

    /// How many commands run there. The caller and the slot hold it as well.
    pub fn count_uses(self: &Arc<Self>) -> usize {
        Arc::strong_count(self).saturating_sub(2)
    }

    pub fn link(&self) -> Link {
        Link::Far(self.link.clone())
    }

    /// Notes that somebody needs it now. False if it takes no more commands.
    pub fn touch(&self) -> bool {
        let mut last_used = lock(&self.last_used);
        let is_open = last_used.is_some() && !self.link.is_closed();
        if is_open {
            *last_used = Some(Instant::now());
        }
        is_open
    }

    /// How long it may still be unused. If that is no time, nobody can use it any more.
    fn time_left(&self, idle: Duration) -> Duration {
        let mut last_used = lock(&self.last_used);
        let since = last_used.map_or(idle, |last| last.elapsed());
        let left = idle.saturating_sub(since);
        last_used.take_if(|_| left.is_zero());
        left
    }

    /// Waits until nothing of it is left.
    pub async fn close(&self) {
        self.link.hang_up();
        let mut ended = self.ended.clone();
        let _ = tokio::time::timeout(CLOSE_TIME, ended.wait_for(|ended| *ended)).await;
    }

    /// What to say about a run that was lost with the place.
    pub fn about_loss(&self) -> String {
        let name = &self.name;
        let Some(why) = self.link.why_ended() else {
            return format!(
                "what supervised the command in the place `{name}` was killed; the place itself is still there"
            );
        };
        let seconds = self.link.ends_within().as_secs();
        format!(
            "the place `{name}` was lost: {why}. What still ran there ends within {seconds} seconds; the next command \
             makes the place again"
        )
    }
}

impl fmt::Debug for OpenPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenPlace").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The full path of the shell there.
async fn find_shell(link: &FarLink, environment: &Environment) -> PathBuf {
    let shell = &environment.shell;
    if shell.as_os_str().as_encoded_bytes().contains(&b'/') {
        return shell.clone();
    }
    let path = environment.variables.get("PATH").unwrap_or_default().to_owned();
    let lookup = Lookup::Program { name: shell.clone().into(), path };
    match link.look(lookup).await {
        Some(Found::Program(Some(found))) => found,
        _ => Path::new("/bin").join(shell),
    }
}

/// Completes when nobody has used a place for so long, or it is gone.
async fn unused(place: Weak<OpenPlace>, idle: Duration) {
    loop {
        let Some(open) = place.upgrade() else { return };
        // Everybody who uses it holds it. The first one is the slot's, the second ours.
        if Arc::strong_count(&open) > 2 {
            open.touch();
        }
        let left = open.time_left(idle);
        drop(open);
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left).await;
    }
}

async fn look_after_end(link: FarLink, ending: Box<dyn Ending>) {
    link.close().await;
    let said = ending.end().await;
    if !said.is_empty() {
        tracing::debug!("a place ended, and said: {said}");
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
