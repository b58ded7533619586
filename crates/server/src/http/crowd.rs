//! Who is connected, and who makes room when there are too many.
//!
//! A connection is silent while no request of its is answered: it is new, or waits for its next. At the
//! limit one that is silent is closed for each that comes: of those that have never shown a token first,
//! of the address that has the most of them, the one that is silent the longest. So sockets that say
//! nothing keep out nobody, and whoever is being answered stays.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// All connections. Clones share them.
#[derive(Clone)]
pub struct Crowd {
    shared: Arc<Shared>,
}

struct Shared {
    limit: usize,
    state: Mutex<State>,
    /// Told when somebody leaves or falls silent.
    room: Notify,
}

#[derive(Default)]
struct State {
    made: u64,
    members: HashMap<u64, Member>,
}

struct Member {
    address: IpAddr,
    /// How many of its requests are being answered.
    busy: usize,
    since: Instant,
    /// Whether one of them came with a token.
    known: bool,
    closed: CancellationToken,
}

/// A connection's place among all. It is given up when dropped.
pub struct Place {
    crowd: Crowd,
    number: u64,
    /// Done when it has to make room.
    pub closed: CancellationToken,
}

/// As long as there is this, a request is being answered.
pub struct Busy {
    crowd: Crowd,
    number: u64,
}

impl Crowd {
    pub fn new(limit: usize) -> Self {
        let (state, room) = (Mutex::default(), Notify::new());
        Self { shared: Arc::new(Shared { limit, state, room }) }
    }

    /// A place for a new connection, for which another makes room if need be. If none can, it waits.
    pub async fn enter(&self, address: IpAddr) -> Place {
        loop {
            let room = self.shared.room.notified();
            if let Some(place) = self.try_enter(address) {
                return place;
            }
            room.await;
        }
    }

    fn try_enter(&self, address: IpAddr) -> Option<Place> {
        let mut state = self.lock();
        while state.members.len() >= self.shared.limit {
            if !state.close_one() {
                return None;
            }
        }
        state.made += 1;
        let (number, closed) = (state.made, CancellationToken::new());
        let (since, busy, known) = (Instant::now(), 0, false);
        let member = Member { address, busy, since, known, closed: closed.clone() };
        state.members.insert(number, member);
        Some(Place { crowd: self.clone(), number, closed })
    }

    /// Has one make room, if there is one that can: the system has no more.
    pub fn close_one(&self) -> bool {
        self.lock().close_one()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn close_one(&mut self) -> bool {
        let silent = |member: &&Member| member.busy == 0;
        let mut of_each: HashMap<IpAddr, usize> = HashMap::new();
        for member in self.members.values().filter(silent) {
            *of_each.entry(member.address).or_default() += 1;
        }
        let goes_first = |(_, member): &(&u64, &Member)| {
            (member.known, std::cmp::Reverse(of_each[&member.address]), member.since)
        };
        let silent = self.members.iter().filter(|(_, member)| silent(member));
        let Some(number) = silent.min_by_key(goes_first).map(|(number, _)| *number) else {
            return false;
        };
        self.members.remove(&number).inspect(|member| member.closed.cancel()).is_some()
    }
}

impl Place {
    /// Notes that one of its requests is being answered.
    pub fn begin(&self) -> Busy {
        if let Some(member) = self.crowd.lock().members.get_mut(&self.number) {
            member.busy += 1;
        }
        Busy { crowd: self.crowd.clone(), number: self.number }
    }
}

impl Busy {
    /// Notes that the request came with a token.
    pub fn note_known(&self) {
        if let Some(member) = self.crowd.lock().members.get_mut(&self.number) {
            member.known = true;
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if let Some(member) = self.crowd.lock().members.get_mut(&self.number) {
            member.busy -= 1;
            member.since = Instant::now();
        }
        self.crowd.shared.room.notify_one();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.crowd.lock().members.remove(&self.number);
        self.crowd.shared.room.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    fn left(places: &[Place]) -> Vec<bool> {
        places.iter().map(|place| !place.closed.is_cancelled()).collect()
    }

    #[test]
    fn the_longest_silent_of_the_address_with_the_most_goes_first() {
        let crowd = Crowd::new(4);
        let mut places: Vec<_> =
            [1, 2, 1, 1].map(|last| crowd.try_enter(address(last)).unwrap()).into();
        places.push(crowd.try_enter(address(3)).unwrap());
        assert_eq!(left(&places), [false, true, true, true, true]);
        places.push(crowd.try_enter(address(3)).unwrap());
        assert_eq!(left(&places), [false, true, false, true, true, true]);
    }

    #[test]
    fn who_is_answered_stays_and_who_has_shown_a_token_goes_last() {
        let crowd = Crowd::new(3);
        let mut places: Vec<_> =
            [1, 1, 1].map(|last| crowd.try_enter(address(last)).unwrap()).into();
        let busy = places[0].begin();
        places[1].begin().note_known();
        places.push(crowd.try_enter(address(2)).unwrap());
        assert_eq!(left(&places), [true, true, false, true]);
        let (_one, _other) = (places[1].begin(), places[3].begin());
        // Nobody can go: whoever comes has to wait.
        assert!(crowd.try_enter(address(4)).is_none());
        drop(busy);
        assert!(crowd.close_one());
        assert_eq!(left(&places), [false, true, false, true]);
    }
}
