//! Places that are made before anybody needs them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::open_place::OpenPlace;

/// By the names of places.
#[derive(Default)]
pub struct ReadyPlaces(Mutex<HashMap<String, Pool>>);

#[derive(Default)]
struct Pool {
    places: Vec<Arc<OpenPlace>>,
    /// How many are being made.
    making: usize,
}

impl ReadyPlaces {
    pub fn take(&self, name: &str) -> Option<Arc<OpenPlace>> {
        let mut pools = self.lock();
        let places = &mut pools.get_mut(name)?.places;
        std::iter::from_fn(|| places.pop()).find(|place| place.touch())
    }

    /// How many have to be made until there are so many. The caller makes them, and adds each.
    pub fn claim(&self, name: &str, wanted: usize) -> usize {
        let mut pools = self.lock();
        let pool = pools.entry(name.to_owned()).or_default();
        pool.places.retain(|place| !place.link.is_closed());
        let missing = wanted.saturating_sub(pool.places.len() + pool.making);
        pool.making += missing;
        missing
    }

    /// Adds one that was claimed, or `None` if it could not be made.
    pub fn add(&self, name: &str, made: Option<Arc<OpenPlace>>) {
        let mut pools = self.lock();
        let pool = pools.entry(name.to_owned()).or_default();
        pool.making = pool.making.saturating_sub(1);
        pool.places.extend(made);
    }

    /// Ends those that are too many.
    pub fn trim(&self, name: &str, most: usize) {
        let mut pools = self.lock();
        let places = pools.get_mut(name).map(|pool| &mut pool.places);
        for place in places.into_iter().flat_map(|places| places.drain(most.min(places.len())..)) {
            place.link.hang_up();
        }
    }

    pub fn all(&self) -> Vec<Arc<OpenPlace>> {
        self.lock().values().flat_map(|pool| pool.places.iter().cloned()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Pool>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
