//! Where a command runs: on this machine, or in a place.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mcpz_agent::{Found, Lookup, look_up};
use mcpz_places::{Per, Place};
use mcpz_runtime::spawn_blocking;
use tokio::time::sleep;

use super::Engine;
use crate::bounds::Bounds;
use crate::environment::Environment;
use crate::error::Error;
use crate::gate::Gate;
use crate::owner::Owner;
use crate::places::{PlaceKey, Venue};
use crate::request::RunRequest;
use crate::resolved::Resolved;

/// The pause after a place could not be made that nobody needs yet.
const TRY_AGAIN: Duration = Duration::from_secs(60);

impl Engine {
    /// Where a request runs. Makes the place if it is not open.
    pub(super) async fn venue(&self, owner: &Owner, request: &RunRequest) -> Result<Venue, Error> {
        let Some((place, key)) = self.meant(owner, request)? else { return Ok(Venue::default()) };
        let slot = self.shared.places.slot(key.clone(), place)?;
        let mut open = slot.open.lock().await;
        if let Some(found) = open.as_ref().filter(|place| place.touch()) {
            return Ok(Venue { place: Some(found.clone()) });
        }
        let _making = self.shared.making.read().await;
        if self.is_closed() {
            return Err(Error::Closed);
        }
        let made = match self.shared.places.ready.take(&place.name) {
            Some(ready) => ready,
            None => self.shared.places.make(place, self.settings()).await?,
        };
        key.give(&made, owner.identity.name());
        open.iter().for_each(|earlier| made.replace(earlier, place));
        self.make_ready(place);
        self.open_control();
        Ok(Venue { place: Some(open.insert(made).clone()) })
    }

    /// The place that a request means, if it means one.
    fn meant(
        &self,
        owner: &Owner,
        request: &RunRequest,
    ) -> Result<Option<(&Place, PlaceKey)>, Error> {
        let places = match (&self.settings().places, &request.place) {
            (Some(places), _) => places,
            (None, None) => return Ok(None),
            (None, Some(name)) => {
                return Err(Error::UnknownPlace { name: name.clone(), known: "none".to_owned() });
            }
        };
        let Some(place) = places.find(request.place.as_deref())? else { return Ok(None) };
        let key = PlaceKey::new(place, owner.identity.number(), request.session.as_deref());
        Ok(Some((place, key)))
    }

    /// Whether commands run in a place that is not for everybody, unless they say otherwise.
    pub(super) fn has_own_place(&self) -> bool {
        let place = self.settings().places.as_ref().and_then(|places| places.find(None).ok()?);
        place.is_some_and(|place| place.per != Per::Server)
    }

    /// Makes places that nobody needs yet, as many as the settings say.
    pub(super) fn prepare_places(&self) {
        let all = self.settings().places.iter().flat_map(|places| &places.all);
        all.for_each(|place| self.make_ready(place));
    }

    fn make_ready(&self, place: &Place) {
        let ready = &self.shared.places.ready;
        let wanted = if place.per == Per::Server { 0 } else { place.ready };
        let wanted = wanted.min(self.shared.places.room(place));
        ready.trim(&place.name, wanted);
        for _ in 0..ready.claim(&place.name, wanted) {
            let (engine, place) = (self.clone(), place.clone());
            tokio::spawn(async move { engine.make_one_ready(&place).await });
        }
    }

    async fn make_one_ready(&self, place: &Place) {
        let places = &self.shared.places;
        let _making = self.shared.making.read().await;
        let made = match self.is_closed() {
            true => Err(Error::Closed),
            false => places.make(place, self.settings()).await,
        };
        let made = made.inspect_err(|error| tracing::warn!("{}", error.chain())).ok();
        let failed = made.is_none();
        places.ready.add(&place.name, made);
        if failed {
            let (engine, place) = (self.clone(), place.clone());
            tokio::spawn(async move {
                sleep(TRY_AGAIN).await;
                if !engine.is_closed() {
                    engine.make_ready(&place);
                }
            });
        }
        // Owners may have made others meanwhile, so that this is one too many.
        places.ready.trim(&place.name, places.room(place));
    }

    /// Makes the place of commands that name none, and ends it again. `None` if they run on this machine.
    pub async fn try_place(&self) -> Option<Result<(), Error>> {
        let place = self.settings().places.as_ref()?.find(None).transpose()?;
        let made = match place {
            Ok(place) => self.shared.places.make(place, self.settings()).await,
            Err(error) => Err(error),
        };
        if let Ok(made) = &made {
            made.close().await;
        }
        Some(made.map(drop))
    }

    /// How many places are open, by their names.
    pub fn count_places(&self) -> BTreeMap<String, usize> {
        let names = self.settings().places.iter().flat_map(|places| &places.all);
        let mut counts: BTreeMap<_, _> = names.map(|place| (place.name.clone(), 0)).collect();
        for place in self.shared.places.open() {
            *counts.entry(place.name.to_string()).or_default() += 1;
        }
        counts
    }

    /// Refuses what cannot be done in a place.
    pub(super) fn refuse_in_place(
        &self,
        request: &RunRequest,
        what: &'static str,
    ) -> Result<(), Error> {
        let places = self.settings().places.as_ref();
        let place = places.map(|places| places.find(request.place.as_deref())).transpose()?;
        match place.flatten() {
            Some(place) => Err(Error::NotInPlace { what, name: place.name.clone() }),
            None => Ok(()),
        }
    }

    /// The environment of commands there.
    pub(super) fn environment_of<'a>(&'a self, venue: &'a Venue) -> &'a Environment {
        venue.place.as_ref().map_or_else(|| self.environment(), |place| &place.environment)
    }

    pub(super) fn working_directory_of<'a>(&'a self, venue: &'a Venue) -> &'a Path {
        let own = &self.settings().working_directory;
        venue.place.as_ref().map_or(own, |place| &place.working_directory)
    }

    fn bounds_of<'a>(&'a self, venue: &'a Venue) -> &'a Bounds {
        venue.place.as_ref().map_or(&self.shared.bounds, |place| &place.bounds)
    }

    pub(super) fn resolve(&self, venue: &Venue, request: RunRequest) -> Resolved {
        let directory = self.working_directory_of(venue);
        let place = venue.place.as_ref().map(|place| place.name.clone());
        Resolved::new(self.settings(), self.environment_of(venue), directory, place, request)
    }

    pub(super) fn gate<'a>(&'a self, venue: &'a Venue) -> Gate<'a> {
        Gate {
            settings: self.settings(),
            environment: self.environment_of(venue),
            working_directory: self.working_directory_of(venue),
            in_place: venue.place.is_some(),
            bounds: self.bounds_of(venue),
            audit: &self.shared.audit,
            known_rules: &self.shared.known_rules,
        }
    }

    /// Where the commands of an owner run, if that is known without making a place.
    fn known_venue(&self, owner: &Owner, request: &RunRequest) -> Venue {
        let meant = self.meant(owner, request).ok().flatten();
        Venue { place: meant.and_then(|(_, key)| self.shared.places.find(&key)) }
    }

    /// The directory that a command has run in.
    pub fn directory_of(&self, owner: &Owner, request: RunRequest) -> PathBuf {
        let venue = self.known_venue(owner, &request);
        self.resolve(&venue, request).directory
    }

    /// The `PATH` of an owner's commands.
    pub(super) fn path_of(&self, owner: &Owner) -> OsString {
        let venue = self.known_venue(owner, &RunRequest::script(""));
        let path = self.environment_of(&venue).variables.get("PATH");
        path.unwrap_or_default().to_owned()
    }

    /// Finds something out about the files where the owner's commands run.
    pub(super) async fn look_up(&self, owner: &Owner, lookup: Lookup) -> Option<Found> {
        match self.known_venue(owner, &RunRequest::script("")).place {
            Some(place) => place.link.look(lookup).await,
            // What runs in a place does not learn about this machine.
            None if self.settings().places.is_some() => None,
            None => spawn_blocking(move || look_up(&lookup)).await.ok(),
        }
    }
}
