//! The places of an engine: made when somebody first needs one, ended when nobody has needed it for a while.
//!
//!     PlaceKey ─▶ PlaceSlot ─▶ OpenPlace ─ Link ─▶ …
//!
//! What a key stands for depends on who shares the place: the server, an owner, or a session. A slot is locked while
//! its place is made, so that nobody makes it twice, and a slow place holds up only those who need it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mcpz_places::{Per, Place};
use tokio::sync::{SetOnce, watch};

use crate::error::Error;
use crate::open_place::OpenPlace;
use crate::ready_places::ReadyPlaces;
use crate::settings::Settings;

/// How long the processes that lead to places may take to end when the engine closes.
const CLOSE_TIME: Duration = Duration::from_secs(20);

/// How long nobody looks again for what killed servers left. All places of all servers are listed for that, and with
/// a place for each owner, many may be made in a second.
const SWEEP_AGAIN: Duration = Duration::from_secs(30);

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

    /// Gives a place to those whose key this is. The owner has this name.
    pub fn give(&self, place: &OpenPlace, owner: &Arc<str>) {
        place.give_to(self.owner.map(|_| owner.clone()), self.session.clone());
    }
}

/// All places that are open, or being made.
#[derive(Default)]
pub struct Places {
    slots: Mutex<HashMap<PlaceKey, Arc<PlaceSlot>>>,
    pub ready: ReadyPlaces,
    /// Has a receiver for each process that leads to a place, and for each place that is being made.
    children: watch::Sender<()>,
    /// Set when no more places are made.
    closing: SetOnce<()>,
    /// When somebody last looked for what killed servers had left, by the name of the place.
    swept: Mutex<HashMap<String, Instant>>,
}

#[derive(Default)]
pub struct PlaceSlot {
    pub open: tokio::sync::Mutex<Option<Arc<OpenPlace>>>,
}

/// Where a command runs. Holding it keeps a place from being ended for lack of use.
#[derive(Debug, Clone, Default)]
pub struct Venue {
    pub place: Option<Arc<OpenPlace>>,
}

impl Places {
    /// Makes a place, unless the engine closes meanwhile.
    pub async fn make(&self, place: &Place, settings: &Settings) -> Result<Arc<OpenPlace>, Error> {
        let make = async {
            // If that fails, making one says why, and the next one tries again.
            if self.is_to_be_swept(place) {
                let sweep = OpenPlace::sweep(place, settings, &self.children);
                if !tokio::time::timeout(place.start_time, sweep).await.unwrap_or(false) {
                    lock(&self.swept).remove(&place.name);
                }
            }
            OpenPlace::make(place, settings, &self.children).await
        };
        tokio::select! {
            made = make => made,
            _ = self.closing.wait() => Err(Error::Closed),
        }
    }

    fn is_to_be_swept(&self, place: &Place) -> bool {
        let now = Instant::now();
        let mut swept = lock(&self.swept);
        let before = swept.get(&place.name).copied();
        let is_due = before.is_none_or(|before| now.duration_since(before) >= SWEEP_AGAIN);
        if is_due {
            swept.insert(place.name.clone(), now);
        }
        is_due
    }

    /// Gives up the places that are being made.
    pub fn begin_closing(&self) {
        let _ = self.closing.set(());
    }

    /// Waits until no process that leads to a place is left, and nothing is left of places that were being made.
    pub async fn ended(&self) {
        let _ = tokio::time::timeout(CLOSE_TIME, self.children.closed()).await;
    }

    /// The slot of a key. Fails if there are too many places of this name.
    pub fn slot(&self, key: PlaceKey, place: &Place) -> Result<Arc<PlaceSlot>, Error> {
        let mut slots = lock(&self.slots);
        if let Some(slot) = slots.get(&key) {
            return Ok(slot.clone());
        }
        slots.retain(|_, slot| slot.is_used());
        if count(&slots, place) >= place.max {
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

    /// How many more there may be.
    pub fn room(&self, place: &Place) -> usize {
        let mut slots = lock(&self.slots);
        slots.retain(|_, slot| slot.is_used());
        place.max.saturating_sub(count(&slots, place))
    }

    /// All that take commands.
    pub fn open(&self) -> Vec<Arc<OpenPlace>> {
        self.all().into_iter().filter(|place| !place.link.is_closed()).collect()
    }

    /// All that are open, or were.
    pub fn all(&self) -> Vec<Arc<OpenPlace>> {
        let slots: Vec<_> = lock(&self.slots).values().cloned().collect();
        let open = slots.iter().filter_map(|slot| slot.open.try_lock().ok()?.clone());
        open.chain(self.ready.all()).collect()
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

/// How many of these are for places of this name.
fn count(slots: &HashMap<PlaceKey, Arc<PlaceSlot>>, place: &Place) -> usize {
    slots.keys().filter(|key| key.place == place.name).count()
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
