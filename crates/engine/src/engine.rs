//! The handle everything else holds.

mod confining;
mod detaching;
mod in_session;
mod logging;
mod settling;
mod typing;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, Once, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use mcpz_agent::{Limits, Link, release_code_pages};
use mcpz_policy::Policy;
use mcpz_runtime::aside;
use tokio::sync::SetOnce;
use tokio::time::timeout;

use crate::bounds::{self, Bounds};
use crate::detached::Shelf;
use crate::enclosure::{Confining, Enclosure};
use crate::error::Error;
use crate::gate::{Cleared, Gate};
use crate::interpreter::{Absent, absent};
use crate::jobs::{Job, Jobs, Reserved};
use crate::outcome::{Closing, Outcome};
use crate::request::{Command, Origin, RunRequest};
use crate::run::{Books, Run};
use crate::similar::similar_commands;
use crate::stats::Stats;
use crate::store::{Owner, Store};
use crate::surroundings::Login;
use crate::turns::{RunLimits, Turn, Turns};
use crate::variables::Variables;
use crate::witness::Waiting;
use mcpz_audit::{Audit, AuditSettings, Discretion};
use mcpz_output::Secrets;
use mcpz_output::{Spill, SpillSettings};
use mcpz_runtime::Later;

/// The longest timeout there is: a day.
pub const MAX_TIMEOUT: Duration = Duration::from_secs(86_400);

#[derive(Debug, Clone)]
pub struct Settings {
    /// The program that is an agent when it is given the argument `agent`.
    pub agent: PathBuf,
    /// All variables commands get, but for those a request sets.
    pub variables: Variables,
    /// Whom to ask for other variables, and with them another shell and more secrets.
    pub login: Option<Login>,
    /// What commands may see, but nobody in what they print.
    pub secrets: Secrets,
    pub working_directory: PathBuf,
    pub shell: PathBuf,
    pub timeout: Duration,
    pub policy: Policy,
    /// What `~` stands for in a command.
    pub home: Option<PathBuf>,
    pub runs: RunLimits,
    /// What each command may use.
    pub limits: Limits,
    pub spill: SpillSettings,
    /// How long outputs can be read after they were kept.
    pub keep_time: Duration,
    /// Whether commands start in the working directory and below, and nowhere else.
    pub stays_within: bool,
    /// Where they may start besides, with what is below. Without `stays_within`, and if there are
    /// none, they start anywhere.
    pub allowed_directories: Vec<PathBuf>,
    /// Whether the log and the audit trail say what is run.
    pub log_commands: bool,
    pub audit: AuditSettings,
    /// What commands are confined in, if they are.
    pub confining: Option<Confining>,
    /// Where jobs are kept that outlive us, and where we can be asked for the others.
    pub jobs_folder: Option<PathBuf>,
}

/// The least time between two looks at which outputs can be let go of.
const FORGET_PAUSE: Duration = Duration::from_secs(1);

/// When a server has told its client all that clients ask at first.
const STARTED: Duration = Duration::from_millis(200);

/// Runs commands. Clones share everything. Needs a tokio runtime.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

struct Shared {
    settings: Settings,
    /// What they have become when the login shell has told.
    settled: SetOnce<Settings>,
    bounds: Bounds,
    spill: Arc<Spill>,
    store: Arc<Store>,
    audit: Audit,
    turns: Turns,
    stats: Arc<Stats>,
    later: Later,
    forgetting: Once,
    sweeping: Once,
    opening: Once,
    /// Where detached jobs are kept.
    shelf: OnceLock<Shelf>,
    /// Where others can ask for our jobs, if they can.
    desk: OnceLock<PathBuf>,
    settling: Once,
    /// Why everything ends, once it does.
    closing: Arc<OnceLock<Closing>>,
    /// Whoever has jobs, for those who ask for them elsewhere.
    owners: Mutex<Vec<(Arc<str>, Weak<Jobs>)>>,
    link: Mutex<Agent>,
    /// All there are, for whoever ends them.
    enclosures: Mutex<Vec<Weak<Enclosure>>>,
    /// Held by whoever makes one: what it has put on the disk must not be left there.
    making: tokio::sync::RwLock<()>,
}

/// The agent, as far as there is one.
enum Agent {
    NotNeededYet,
    /// There is one for the login shell alone.
    ForLogin(Link),
    Linked(Link),
    /// The engine was closed: nothing is started any more.
    Closed,
}

impl Engine {
    /// `later` takes what need not be done at once.
    pub fn new(settings: Settings, later: Later) -> Self {
        let store = Arc::new(Store::new(settings.keep_time));
        let make_room = Arc::downgrade(&store);
        let spill = Spill::new(settings.spill.clone()).making_room(move |of| {
            make_room.upgrade().is_some_and(|store| store.forget_oldest(of))
        });
        let (spill, link) = (Arc::new(spill), Mutex::new(Agent::NotNeededYet));
        let (turns, stats) = (Turns::new(settings.runs), Arc::default());
        let discretion =
            Discretion { commands: settings.log_commands, secrets: settings.secrets.clone() };
        let shared = Shared {
            bounds: Bounds::new(&settings),
            audit: Audit::new(settings.audit.clone(), discretion, later.clone()),
            settings,
            settled: SetOnce::new(),
            spill,
            store,
            turns,
            stats,
            later,
            forgetting: Once::new(),
            sweeping: Once::new(),
            opening: Once::new(),
            shelf: OnceLock::new(),
            desk: OnceLock::new(),
            settling: Once::new(),
            closing: Arc::default(),
            owners: Mutex::default(),
            link,
            enclosures: Mutex::default(),
            making: tokio::sync::RwLock::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    pub fn settings(&self) -> &Settings {
        self.shared.settled.get().unwrap_or(&self.shared.settings)
    }

    /// Where a command would run.
    pub fn directory_of(&self, request: &RunRequest) -> PathBuf {
        bounds::directory(self.settings(), request)
    }

    /// Commands whose names are nearly this one.
    pub fn similar_commands(&self, name: &str) -> Vec<String> {
        let path = self.settings().variables.get("PATH");
        similar_commands(name, path.unwrap_or_default())
    }

    /// What is missing of a file that a command could not start. What commands see in a sandbox is not
    /// what is seen here.
    pub fn absent(&self, file: &Path) -> Absent {
        if self.settings().confining.is_some() { Absent::Either } else { absent(file) }
    }

    /// Somebody new, who can keep outputs and read them later, under a name for the record. Detached
    /// jobs are found again by whoever has the same name and is of the same kind.
    pub fn owner(&self, kind: &str, name: &str) -> Owner {
        self.shared.forgetting.call_once(|| {
            tokio::spawn(forget(Arc::downgrade(&self.shared.store), self.settings().keep_time));
        });
        let estate = format!("{kind} {name}");
        let jobs = Jobs::new(self.settings().runs.idle);
        let (account, share) = (self.shared.spill.account(), self.shared.turns.share());
        let owner = self.shared.store.owner(name, estate, account, share, jobs);
        let jobs = Arc::downgrade(&owner.jobs);
        let mut owners = self.shared.owners.lock().unwrap_or_else(PoisonError::into_inner);
        owners.retain(|(_, jobs)| jobs.strong_count() > 0);
        owners.push((name.into(), jobs));
        drop(owners);
        owner
    }

    /// What happened so far.
    pub fn stats(&self) -> &Stats {
        &self.shared.stats
    }

    /// How much of the quota for spilled output is used.
    pub fn spilled(&self) -> u64 {
        self.shared.spill.used()
    }

    /// Does what can be done before the first command: has the login shell asked, or the agent started
    /// that all share, if they do, and removes what a server that was killed has left.
    pub fn warm_up(&self) {
        self.shared.sweeping.call_once(|| {
            let spill = self.shared.spill.clone();
            aside(move || spill.sweep());
            let audit = self.shared.audit.clone();
            tokio::spawn(async move { audit.take_over().await });
            tokio::spawn(async {
                tokio::time::sleep(STARTED).await;
                release_code_pages();
            });
        });
        if self.begin_settling() {
            return;
        }
        if self.settings().confining.is_none()
            && let Err(error) = self.link()
        {
            tracing::warn!("{}", error.chain());
        }
    }

    /// The same for the first command of somebody.
    pub fn warm_up_for(&self, owner: &Arc<Owner>) {
        self.warm_up();
        if self.settings().confining.is_some() {
            let (engine, owner) = (self.clone(), owner.clone());
            tokio::spawn(async move {
                engine.settled().await;
                if let Err(error) = engine.enclosure(&owner).await {
                    tracing::warn!("{}", error.chain());
                }
            });
        }
    }

    /// Starts a command, if the gate lets it through, when it is its turn.
    pub async fn start(
        &self,
        owner: &Owner,
        origin: &Origin,
        request: RunRequest,
    ) -> Result<Run, Error> {
        self.settled().await;
        let started = match request.session.clone() {
            Some(name) => self.start_in_session(owner, origin, &name, request).await,
            None => self.start_counted(owner, origin, request).await,
        };
        started.inspect_err(|error| self.note_not_run(error))
    }

    fn note_not_run(&self, error: &Error) {
        self.shared.later.catch_up();
        tracing::info!("not run: {}", self.settings().secrets.mask(&error.chain()));
        self.shared.stats.note_error(error);
    }

    async fn start_counted(
        &self,
        owner: &Owner,
        origin: &Origin,
        request: RunRequest,
    ) -> Result<Run, Error> {
        let asked = Instant::now();
        let (witness, logged) =
            (self.witness(origin, &request), self.line(owner, origin, &request));
        let description = request.description.as_deref();
        let description = description.map(|text| self.settings().secrets.mask(text).into_owned());
        let stats = &self.shared.stats;
        let cleared = self.gate().clear(owner, origin, request).await;
        let cleared = self.logged(logged, cleared)?;
        let turn = self.turn(owner, &cleared).await;
        let (spawn, mut pending, recorded) = cleared.into_parts();
        let ready = match turn {
            Ok(turn) => {
                let process = self.spawn(owner, spawn, &mut pending, recorded.id()).await;
                process.map(|process| (turn, process))
            }
            Err(error) => Err(error),
        };
        match ready {
            Ok((turn, process)) => {
                let output = owner.new_output();
                let books = Books::open(stats.clone(), turn, asked, witness);
                let later = self.shared.later.clone();
                let run = Run::start(process, pending, recorded, output, Some(books), later);
                Ok(run.described(description))
            }
            Err(error) => {
                recorded.end(Err(error.reason()));
                Err(error)
            }
        }
    }

    /// Waits until it is a command's turn. Nobody waits longer for it to begin than it may take.
    async fn turn(&self, owner: &Owner, cleared: &Cleared) -> Result<Turn, Error> {
        let patience = cleared.timeout().unwrap_or(self.settings().timeout);
        let turn = timeout(patience, self.shared.turns.take(&owner.share)).await;
        turn.map_err(|_| Error::Busy).flatten()
    }

    fn gate(&self) -> Gate<'_> {
        let Shared { bounds, audit, .. } = &*self.shared;
        Gate { settings: self.settings(), bounds, audit }
    }

    /// Room for one more job, for whoever is about to start it.
    pub fn reserve_job(&self, owner: &Owner) -> Result<Reserved, Error> {
        let limit = self.settings().runs.jobs;
        Reserved::take(&owner.jobs, limit).ok_or(Error::TooManyJobs { limit })
    }

    /// Makes a job of a command nobody waits for any more. It has no deadline from now on.
    pub fn hand_over(&self, owner: &Owner, run: Run, command: String) -> Arc<Job> {
        run.remote().last();
        self.open_desk();
        let job = owner.jobs.add(run, command);
        owner.follow(&job.run, None, job.output.clone());
        job
    }

    /// Makes a job of what a command has left running, if it has.
    pub fn adopt(&self, owner: &Owner, run: Run, command: String, outcome: &mut Outcome) {
        if !outcome.background.is_empty() {
            self.open_desk();
            let job = owner.jobs.adopt(run, command, outcome);
            outcome.job = Some(job.id().to_owned());
            owner.follow(&job.run, None, job.output.clone());
        }
    }

    /// A command as it may be shown.
    pub fn shown(&self, command: &Command) -> String {
        let secrets = &self.settings().secrets;
        match command {
            Command::Script { text, .. } => secrets.mask(text).into(),
            Command::Argv(words) => secrets.mask(&words.join(" ")).into(),
        }
    }

    /// Who is to be told what becomes of a request, if anybody is.
    fn witness(&self, origin: &Origin, request: &RunRequest) -> Option<Waiting> {
        let witness = origin.witness.clone()?;
        let command = self.settings().log_commands.then(|| self.shown(&request.command));
        Some(Waiting { witness, command })
    }

    /// Ends every command and the agent, and waits until they are gone.
    pub async fn close(&self, why: Closing) {
        let _ = self.shared.closing.set(why);
        let before = std::mem::replace(&mut *self.lock(), Agent::Closed);
        let shared = match before {
            Agent::ForLogin(link) | Agent::Linked(link) => Some(link),
            Agent::NotNeededYet | Agent::Closed => None,
        };
        drop(self.shared.making.write().await);
        let confined = self.enclosures();
        let links = shared.iter().chain(confined.iter().map(|enclosure| enclosure.link()));
        // All at once: each takes as long as its commands may.
        links.clone().for_each(Link::hang_up);
        for link in links {
            link.close().await;
        }
        self.close_desk();
        self.shared.audit.catch_up();
        self.shared.spill.close();
    }

    /// The agent: the one we have, or a new one if that was killed.
    fn link(&self) -> Result<Link, Error> {
        let mut agent = self.lock();
        match &*agent {
            Agent::Linked(link) if !link.is_closed() => return Ok(link.clone()),
            Agent::Closed => return Err(Error::Closed),
            _ => {}
        }
        let Settings { agent: program, variables, limits, .. } = self.settings();
        let link = Link::start(program, variables.all(), *limits)?;
        *agent = Agent::Linked(link.clone());
        Ok(link)
    }

    fn lock(&self) -> MutexGuard<'_, Agent> {
        self.shared.link.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets go of outputs when their time is over, for as long as there is a store.
async fn forget(store: Weak<Store>, time: Duration) {
    while let Some(store) = store.upgrade() {
        let next = store.forget_expired();
        drop(store);
        let until = next.unwrap_or_else(|| Instant::now() + time);
        // Those whose time is over are not found any more; what they take is let go of together.
        tokio::time::sleep_until(until.max(Instant::now() + FORGET_PAUSE).into()).await;
    }
}
