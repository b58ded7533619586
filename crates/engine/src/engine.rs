//! The engine: a cheap handle to everything that runs commands.
//!
//!     start ─▶ login (once) ─▶ Resolved ─▶ gate ─Cleared▶ turn ─▶ agent ─▶ Run
//!
//! Clones share one engine. Its settings never change; what a login shell adds is set once, before the first command.

mod agent;
mod control;
mod detached;
mod logging;
mod login;
mod places;
mod publishing;
mod sandboxes;
mod sessions;
mod starting;
mod typing;

use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use mcpz_agent::{Absent, Found, Link, Lookup, release_code_pages};
use mcpz_audit::{Audit, Redaction};
use mcpz_output::{Outputs, Spill, Store};
use mcpz_runtime::{Later, spawn_blocking};
use tokio::sync::SetOnce;

use crate::bounds::Bounds;
use crate::detached::JobsFolder;
use crate::environment::Environment;
use crate::error::Error;
use crate::exec_rules::KnownRules;
use crate::jobs::{Job, Jobs, Reserved};
use crate::outcome::{Closing, Outcome};
use crate::owner::{OutputDetails, Owner};
use crate::owner_identity::OwnerIdentity;
use crate::places::Places;
use crate::request::{Command, Origin, RunRequest};
use crate::run::Run;
use crate::sandbox::Sandbox;
use crate::settings::Settings;
use crate::similar::{is_only_in_bash, similar_commands};
use crate::stats::Stats;
use crate::turns::Turns;
use agent::AgentState;

/// The shortest pause between two searches for expired outputs.
const FORGET_PAUSE: Duration = Duration::from_millis(1000);

/// By then clients have sent their first requests, and the memory of the start-up code can be released.
const CODE_RELEASE_DELAY: Duration = Duration::from_millis(200);

/// Runs commands. Clones share everything. Needs a tokio runtime.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

struct Shared {
    settings: Settings,
    /// The environment the login shell reported, once it has.
    environment: SetOnce<Environment>,
    bounds: Bounds,
    spill: Arc<Spill>,
    store: Arc<Store<OutputDetails>>,
    audit: Audit,
    turns: Turns,
    stats: Arc<Stats>,
    later: Later,
    forgetting: Once,
    sweeping: Once,
    asking_login: Once,
    opening_control: Once,
    /// The folder of detached jobs.
    jobs_folder: OnceLock<JobsFolder>,
    /// The folder of our control socket, if it is open.
    control: OnceLock<PathBuf>,
    /// Why the engine closes, once it does.
    closing: Arc<OnceLock<Closing>>,
    /// How many owners have run something.
    owner_count: Arc<AtomicU64>,
    /// What all owners have, for the control socket.
    owners: Mutex<Vec<Possessions>>,
    agent: Mutex<AgentState>,
    /// All sandboxes, so that closing can end them.
    sandboxes: Mutex<Vec<Weak<Sandbox>>>,
    /// Locked for reading while a sandbox or a place is made. Closing waits for it, so that nothing stays behind.
    making: tokio::sync::RwLock<()>,
    places: Places,
    /// What the kernel was told to hold the last commands to.
    known_rules: KnownRules,
}

/// What an owner has running and kept, for as long as it exists.
struct Possessions {
    owner: Arc<str>,
    jobs: Weak<Jobs>,
    outputs: Weak<Outputs<OutputDetails>>,
}

impl Engine {
    /// `later` runs work that can wait until the thread is idle.
    pub fn new(settings: Settings, later: Later) -> Self {
        let store = Arc::new(Store::new(settings.keep_time));
        let make_room = Arc::downgrade(&store);
        let spill = Spill::new(settings.spill.clone()).making_room(move |of| {
            make_room
                .upgrade()
                .is_some_and(|store: Arc<Store<OutputDetails>>| store.forget_oldest(of))
        });
        let secrets = settings.environment.secrets.clone();
        let redaction = Redaction { log_commands: settings.log_commands, secrets };
        let shared = Shared {
            bounds: Bounds::new(&settings),
            audit: Audit::new(settings.audit.clone(), redaction, later.clone()),
            turns: Turns::new(settings.runs),
            settings,
            environment: SetOnce::new(),
            spill: Arc::new(spill),
            store,
            stats: Arc::default(),
            later,
            forgetting: Once::new(),
            sweeping: Once::new(),
            asking_login: Once::new(),
            opening_control: Once::new(),
            jobs_folder: OnceLock::new(),
            control: OnceLock::new(),
            closing: Arc::default(),
            owner_count: Arc::default(),
            owners: Mutex::default(),
            agent: Mutex::new(AgentState::NotNeededYet),
            sandboxes: Mutex::default(),
            making: tokio::sync::RwLock::default(),
            places: Places::default(),
            known_rules: KnownRules::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// The environment of commands, as far as it is known.
    pub fn environment(&self) -> &Environment {
        self.shared.environment.get().unwrap_or(&self.shared.settings.environment)
    }

    /// Masks the secrets in a text.
    pub fn mask(&self, text: &str) -> String {
        self.environment().secrets.mask(text).into()
    }

    /// Commands with names close to this one.
    pub async fn similar_commands(&self, owner: &Owner, name: &str) -> Vec<String> {
        let path = self.path_of(owner);
        match self.look_up(owner, Lookup::Programs { path }).await {
            Some(Found::Programs(known)) => similar_commands(name, known),
            _ => Vec::new(),
        }
    }

    /// Whether a word that a shell took for a program is one that `bash` knows.
    pub fn is_only_in_bash(name: &str) -> bool {
        is_only_in_bash(name)
    }

    /// What is missing when a command could not start a file. In a sandbox the files outside say little.
    pub async fn absent(&self, owner: &Owner, file: PathBuf) -> Absent {
        if self.settings().sandbox.is_some() {
            return Absent::Either;
        }
        match self.look_up(owner, Lookup::Absent(file)).await {
            Some(Found::Absent(absent)) => absent,
            _ => Absent::Either,
        }
    }

    /// A new owner, with a name for the audit trail. Owners of the same kind and name find the same detached jobs.
    pub fn owner(&self, kind: &str, name: &str) -> Owner {
        let shared = &self.shared;
        shared.forgetting.call_once(|| {
            tokio::spawn(forget(Arc::downgrade(&shared.store), self.settings().keep_time));
        });
        let (account, share) = (shared.spill.account(), shared.turns.share());
        let outputs = shared.store.outputs(account.clone());
        let identity =
            OwnerIdentity::new(name, format!("{kind} {name}"), &shared.owner_count, account, share);
        let owner = Owner::new(identity, Jobs::new(self.settings().runs.idle), outputs);
        let mut owners = shared.owners.lock().unwrap_or_else(PoisonError::into_inner);
        owners.retain(|owner| owner.jobs.strong_count() > 0);
        owners.push(Possessions {
            owner: owner.identity.name().clone(),
            jobs: Arc::downgrade(&owner.jobs),
            outputs: Arc::downgrade(&owner.outputs),
        });
        drop(owners);
        owner
    }

    /// Counters since the start.
    pub fn stats(&self) -> &Stats {
        &self.shared.stats
    }

    /// How much of the quota for spilled output is used.
    pub fn spilled(&self) -> u64 {
        self.shared.spill.used()
    }

    /// Does what can be done before the first command: asks the login shell or starts the shared agent, makes places
    /// ready, and removes what a killed server left behind.
    pub fn warm_up(&self) {
        self.shared.sweeping.call_once(|| {
            let spill = self.shared.spill.clone();
            spawn_blocking(move || spill.sweep());
            let audit = self.shared.audit.clone();
            tokio::spawn(async move { audit.record_lost_runs().await });
            self.publish();
            self.prepare_places();
            tokio::spawn(async {
                tokio::time::sleep(CODE_RELEASE_DELAY).await;
                release_code_pages();
            });
        });
        if self.ask_login() {
            return;
        }
        if self.runs_here()
            && let Err(error) = self.link()
        {
            tracing::warn!("{}", error.chain());
        }
    }

    /// Whether commands that name no place run on this machine, outside of a sandbox.
    fn runs_here(&self) -> bool {
        let in_place = self.settings().places.as_ref().is_some_and(|it| it.default.is_some());
        self.settings().sandbox.is_none() && !in_place
    }

    /// The same, and makes the owner's sandbox or the place of all owners. Places of one owner wait for a command.
    pub fn warm_up_for(&self, owner: &Arc<Owner>) {
        self.warm_up();
        if self.runs_here() || self.has_own_place() {
            return;
        }
        let (engine, owner) = (self.clone(), owner.clone());
        tokio::spawn(async move {
            engine.ready().await;
            let made = match engine.settings().sandbox.is_some() {
                true => engine.sandbox(&owner).await.map(drop),
                false => engine.venue(&owner, &RunRequest::script("")).await.map(drop),
            };
            if let Err(error) = made {
                tracing::warn!("{}", error.chain());
            }
        });
    }

    /// Starts a command when it is its turn, if the gate lets it through.
    pub async fn start(
        &self,
        owner: &Owner,
        origin: &Origin,
        request: RunRequest,
    ) -> Result<Run, Error> {
        self.ready().await;
        let started = match request.session.clone() {
            Some(name) => self.start_in_session(owner, origin, &name, request).await,
            None => self.start_alone(owner, origin, request).await,
        };
        started.inspect_err(|error| self.log_not_run(error))
    }

    fn log_not_run(&self, error: &Error) {
        self.shared.later.catch_up();
        tracing::info!("not run: {}", self.mask(&error.chain()));
        self.shared.stats.note_error(error);
    }

    /// Reserves room for one more job. Hold it until the job is added.
    pub fn reserve_job(&self, owner: &Owner) -> Result<Reserved, Error> {
        let limit = self.settings().runs.jobs;
        Reserved::take(&owner.jobs, limit).ok_or(Error::TooManyJobs { limit })
    }

    /// Makes a job of a command whose caller no longer waits. This lifts its deadline.
    pub fn hand_over(&self, owner: &Owner, run: Run) -> Arc<Job> {
        run.handle().controls().become_job();
        self.open_control();
        let job = owner.jobs.add(run);
        owner.follow_job(&job);
        job
    }

    /// Keeps the output of a command that ended, for its owner and for people, under the id of its run.
    /// `command` has its secrets masked.
    pub fn keep(&self, owner: &Owner, outcome: Outcome, command: &str) {
        self.open_control();
        owner.keep(outcome, command.to_owned());
    }

    /// Keeps the output of a running command.
    pub fn keep_running(&self, owner: &Owner, run: &Run, request: RunRequest) {
        self.open_control();
        owner.follow(&run.handle().about, Some(request));
    }

    /// A command with secrets masked.
    fn masked_command(&self, command: &Command) -> String {
        match command {
            Command::Script { text, .. } => self.mask(text),
            Command::Argv(words) => self.mask(&words.join(" ")),
        }
    }

    /// Ends every command and the agent, and waits until they are gone.
    pub async fn close(&self, why: Closing) {
        let _ = self.shared.closing.set(why);
        let before = std::mem::replace(&mut *self.lock_agent(), AgentState::Closed);
        let shared = match before {
            AgentState::ForLogin(link) | AgentState::Linked(link) => Some(link),
            AgentState::NotNeededYet | AgentState::Closed => None,
        };
        self.shared.places.begin_closing();
        drop(self.shared.making.write().await);
        let (sandboxes, places) = (self.sandboxes(), self.shared.places.all());
        let links = shared.iter().chain(sandboxes.iter().map(|sandbox| sandbox.link()));
        // All at once: each takes as long as its commands take to end.
        links.for_each(Link::hang_up);
        places.iter().for_each(|place| place.link.hang_up());
        if let Some(link) = &shared {
            link.close().await;
        }
        for sandbox in &sandboxes {
            sandbox.close().await;
        }
        for place in &places {
            place.close().await;
        }
        self.shared.places.ended().await;
        self.close_control();
        self.shared.audit.retry_pending();
        self.shared.spill.close();
    }
}

/// Drops expired outputs, for as long as the store exists.
async fn forget(store: Weak<Store<OutputDetails>>, time: Duration) {
    while let Some(store) = store.upgrade() {
        let next = store.forget_expired();
        drop(store);
        let until = next.unwrap_or_else(|| Instant::now() + time);
        // Expired outputs cannot be found any more; their memory is freed in batches.
        tokio::time::sleep_until(until.max(Instant::now() + FORGET_PAUSE).into()).await;
    }
}
