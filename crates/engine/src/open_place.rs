//! A place that takes commands, and what ends it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use mcpz_agent::{FarLink, Found, Link, Lookup, program_path};
use mcpz_places::{Ending, Opened, Opening, Place};
use tokio::sync::watch;

use crate::bounds::Bounds;
use crate::environment::Environment;
use crate::error::Error;
use crate::settings::Settings;

/// How long a place may take to end when the engine closes.
const CLOSE_TIME: Duration = Duration::from_secs(20);

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
    whose: OnceLock<(Option<Arc<str>>, Option<String>)>,
    pub made: Instant,
    /// When somebody last needed it. `None` once we end it.
    last_used: Mutex<Option<Instant>>,
    /// True once nothing of it is left.
    ended: watch::Receiver<bool>,
    /// What became of the one before, for the first command to tell.
    news: Mutex<Option<String>>,
    /// Why it was lost, if somebody can tell. Nobody sends any more once that is known.
    reason: watch::Receiver<Option<String>>,
}

impl OpenPlace {
    /// Removes what killed servers left of such places. Returns whether that was possible.
    pub async fn sweep(place: &Place, settings: &Settings, children: &watch::Sender<()>) -> bool {
        let Some(program) = program_path(&settings.agent) else { return false };
        let Ok(opening) = opening(&program, settings, children) else { return false };
        let swept = place.sweep(&opening).await;
        if let Ok(removed @ 1..) = swept {
            tracing::info!("removed {removed} places that ended servers had left behind");
        }
        swept.is_ok()
    }

    /// Makes a place, and looks after it until it has ended.
    pub async fn make(
        place: &Place,
        settings: &Settings,
        children: &watch::Sender<()>,
    ) -> Result<Arc<Self>, Error> {
        let places = settings.places.as_ref().ok_or(Error::Closed)?;
        let program = program_path(&settings.agent).ok_or(Error::Replaced)?;
        let opening = opening(&program, settings, children)?;
        let failed = |source| Error::Place { name: place.name.clone(), source };
        let Opened { link, facts, ending } = place.open(&opening).await.map_err(failed)?;
        // If nobody waits for it any more.
        let unwanted = HangUp(Some(link.clone()));
        let mut environment = (places.resolve)(&facts);
        environment.shell = find_shell(&link, &environment).await;
        unwanted.defuse();
        link.prepare(environment.variables.all().to_vec(), settings.limits);
        let own = place.kind.shares_files().then(|| settings.working_directory.clone());
        let working_directory = place.directory.clone().or(own).unwrap_or(facts.directory);
        let bounds = Bounds::there(settings, &working_directory);
        let (ending_done, ended) = watch::channel(false);
        let (tell, reason) = watch::channel(None);
        let (name, last_used) = (place.name.as_str().into(), Mutex::new(Some(Instant::now())));
        let open = Self {
            name,
            link,
            environment,
            working_directory,
            bounds,
            kind: place.description(),
            whose: OnceLock::new(),
            made: Instant::now(),
            last_used,
            ended,
            news: Mutex::new(None),
            reason,
        };
        let open = Arc::new(open);
        let (weak, link, idle) = (Arc::downgrade(&open), open.link.clone(), place.idle);
        tokio::spawn(async move {
            tokio::select! {
                () = link.ended() => {}
                () = unused(weak, idle) => {}
            }
            look_after_end(link, ending, tell).await;
            let _ = ending_done.send(true);
        });
        Ok(open)
    }

    /// Gives it to an owner and a session, or to everybody.
    pub fn give_to(&self, owner: Option<Arc<str>>, session: Option<String>) {
        let _ = self.whose.set((owner, session));
    }

    /// The owner and the session whose place it is, if it is not for everybody.
    pub fn whose(&self) -> (Option<Arc<str>>, Option<String>) {
        self.whose.get().cloned().unwrap_or_default()
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
        let mut last_used = self.last_used();
        let is_open = last_used.is_some() && !self.link.is_closed();
        if is_open {
            *last_used = Some(Instant::now());
        }
        is_open
    }

    /// How much longer it may go unused. Once that time is over, nobody can use it.
    fn time_left(&self, idle: Duration) -> Duration {
        let mut last_used = self.last_used();
        let since = last_used.map_or(idle, |last| last.elapsed());
        let left = idle.saturating_sub(since);
        last_used.take_if(|_| left.is_zero());
        left
    }

    fn last_used(&self) -> MutexGuard<'_, Option<Instant>> {
        lock(&self.last_used)
    }

    /// Ends it, without waiting.
    pub fn hang_up(&self) {
        self.last_used().take();
        self.link.hang_up();
    }

    /// Waits until nothing of it is left.
    pub async fn close(&self) {
        self.hang_up();
        let mut ended = self.ended.clone();
        let _ = tokio::time::timeout(CLOSE_TIME, ended.wait_for(|ended| *ended)).await;
    }

    /// Notes that it takes the place of an earlier one, if commands can notice that.
    pub fn replace(&self, earlier: &Self, place: &Place) {
        let is_lost = earlier.last_used().is_some();
        let why = earlier.link.why_ended().filter(|_| is_lost);
        let was = match &why {
            Some(why) => format!("was lost ({why}{}) and has been made again", earlier.reason()),
            None => "had been ended and has been made again".to_owned(),
        };
        let gone = match (why, place.kind.is_thrown_away()) {
            (Some(_), true) => "what ran there has ended, and files that were only there are gone",
            (Some(_), false) => "what ran there has ended",
            (None, true) => "files that were only there are gone",
            (None, false) => return,
        };
        *lock(&self.news) = Some(format!("the place `{}` {was}: {gone}", self.name));
    }

    /// What became of the one before, if nobody has told that yet.
    pub fn take_news(&self) -> Option<String> {
        lock(&self.news).take()
    }

    fn reason(&self) -> String {
        self.reason.borrow().iter().fold(String::new(), |_, reason| format!(": {reason}"))
    }

    /// Waits until it is known why it was lost, or that nobody can tell.
    pub async fn until_explained(&self) {
        let _ = self.reason.clone().wait_for(Option::is_some).await;
    }

    /// What to say about a run that was lost with the place.
    pub fn about_loss(&self) -> String {
        let name = &self.name;
        let Some(why) = self.link.why_ended() else {
            return format!(
                "what supervised the command in the place `{name}` was killed; the place itself is still there"
            );
        };
        if self.last_used().is_none() {
            return format!("the place `{name}` was ended; the next command makes it again");
        }
        let seconds = self.link.ends_within().as_secs();
        let reason = self.reason();
        format!(
            "the place `{name}` was lost: {why}{reason}. What still ran there ends within {seconds} seconds; the next \
             command makes the place again"
        )
    }
}

/// Ends a place if it is dropped.
struct HangUp(Option<FarLink>);

impl HangUp {
    fn defuse(mut self) {
        self.0 = None;
    }
}

impl Drop for HangUp {
    fn drop(&mut self) {
        self.0.iter().for_each(FarLink::hang_up);
    }
}

impl fmt::Debug for OpenPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenPlace").field("name", &self.name).finish_non_exhaustive()
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn opening<'a>(
    program: &'a Path,
    settings: &'a Settings,
    children: &'a watch::Sender<()>,
) -> Result<Opening<'a>, Error> {
    let places = settings.places.as_ref().ok_or(Error::Closed)?;
    Ok(Opening {
        program,
        variables: &places.variables,
        limits: &settings.limits,
        working_directory: &settings.working_directory,
        children,
    })
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
        // Everybody who uses it holds it, and so do its slot and we. A ready place, which has no slot, waits.
        if Arc::strong_count(&open) > 2 || open.whose.get().is_none() {
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

async fn look_after_end(
    link: FarLink,
    mut ending: Box<dyn Ending>,
    tell: watch::Sender<Option<String>>,
) {
    if !link.is_leaving() && link.why_ended().is_some() {
        tell.send_replace(ending.reason().await);
    }
    drop(tell);
    link.close().await;
    let said = ending.end().await;
    if !said.is_empty() {
        tracing::debug!("a place ended, and said: {said}");
    }
}
