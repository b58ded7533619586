//! Which connections are open, and which one is closed when there are too many.
//!
//! A connection is idle while none of its requests is being answered: it is new, or waits for its next request. At
//! the limit each new connection closes an idle one: first those that have never shown a token, of these one of the
//! address that has the most, of these the one that has been idle the longest. So sockets that say nothing keep
//! nobody out, and a request that is being answered is never cut off.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// All open connections. Clones share them.
#[derive(Clone)]
pub struct Connections {
    shared: Arc<Shared>,
}

struct Shared {
    limit: usize,
    state: Mutex<State>,
    /// Notified when a connection closes or becomes idle.
    room: Notify,
}

#[derive(Default)]
struct State {
    opened: u64,
    open: HashMap<u64, Connection>,
}

struct Connection {
    address: IpAddr,
    /// How many of its requests are being answered.
    in_flight: usize,
    idle_since: Instant,
    /// Whether one of its requests came with a valid token.
    authenticated: bool,
    closed: CancellationToken,
}

/// The slot of one connection. It is free again when this is dropped.
pub struct Slot {
    connections: Connections,
    number: u64,
    /// Cancelled when the connection must make room for another.
    pub closed: CancellationToken,
}

/// A request is being answered for as long as this lives.
pub struct InFlight {
    connections: Connections,
    number: u64,
}

impl Connections {
    pub fn new(limit: usize) -> Self {
        let (state, room) = (Mutex::default(), Notify::new());
        Self { shared: Arc::new(Shared { limit, state, room }) }
    }

    /// A slot for a new connection. At the limit it closes an idle one, or waits until there is one.
    pub async fn open(&self, address: IpAddr) -> Slot {
        loop {
            let room = self.shared.room.notified();
            if let Some(slot) = self.try_open(address) {
                return slot;
            }
            room.await;
        }
    }

    fn try_open(&self, address: IpAddr) -> Option<Slot> {
        let mut state = self.lock();
        while state.open.len() >= self.shared.limit {
            if !state.close_one() {
                return None;
            }
        }
        state.opened += 1;
        let (number, closed) = (state.opened, CancellationToken::new());
        let connection = Connection {
            address,
            in_flight: 0,
            idle_since: Instant::now(),
            authenticated: false,
            closed: closed.clone(),
        };
        state.open.insert(number, connection);
        Some(Slot { connections: self.clone(), number, closed })
    }

    /// Closes an idle connection because the system has no room for more. False if none is idle.
    pub fn close_one(&self) -> bool {
        self.lock().close_one()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn close_one(&mut self) -> bool {
        let is_idle = |connection: &&Connection| connection.in_flight == 0;
        let mut of_address: HashMap<IpAddr, usize> = HashMap::new();
        for connection in self.open.values().filter(is_idle) {
            *of_address.entry(connection.address).or_default() += 1;
        }
        let closes_first = |(_, connection): &(&u64, &Connection)| {
            let share = std::cmp::Reverse(of_address[&connection.address]);
            (connection.authenticated, share, connection.idle_since)
        };
        let idle = self.open.iter().filter(|(_, connection)| is_idle(connection));
        let Some(number) = idle.min_by_key(closes_first).map(|(number, _)| *number) else {
            return false;
        };
        self.open.remove(&number).inspect(|connection| connection.closed.cancel()).is_some()
    }
}

impl Slot {
    /// Notes that one of the connection's requests is being answered.
    pub fn begin(&self) -> InFlight {
        if let Some(connection) = self.connections.lock().open.get_mut(&self.number) {
            connection.in_flight += 1;
        }
        InFlight { connections: self.connections.clone(), number: self.number }
    }
}

impl InFlight {
    /// Notes that the request came with a valid token.
    pub fn note_authenticated(&self) {
        if let Some(connection) = self.connections.lock().open.get_mut(&self.number) {
            connection.authenticated = true;
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if let Some(connection) = self.connections.lock().open.get_mut(&self.number) {
            connection.in_flight -= 1;
            connection.idle_since = Instant::now();
        }
        self.connections.shared.room.notify_one();
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.connections.lock().open.remove(&self.number);
        self.connections.shared.room.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    fn left(slots: &[Slot]) -> Vec<bool> {
        slots.iter().map(|slot| !slot.closed.is_cancelled()).collect()
    }

    #[test]
    fn the_longest_idle_of_the_address_with_the_most_closes_first() {
        let connections = Connections::new(4);
        let mut slots: Vec<_> =
            [1, 2, 1, 1].map(|last| connections.try_open(address(last)).unwrap()).into();
        slots.push(connections.try_open(address(3)).unwrap());
        assert_eq!(left(&slots), [false, true, true, true, true]);
        slots.push(connections.try_open(address(3)).unwrap());
        assert_eq!(left(&slots), [false, true, false, true, true, true]);
    }

    #[test]
    fn a_connection_with_a_request_stays_and_one_with_a_token_closes_last() {
        let connections = Connections::new(3);
        let mut slots: Vec<_> =
            [1, 1, 1].map(|last| connections.try_open(address(last)).unwrap()).into();
        let in_flight = slots[0].begin();
        slots[1].begin().note_authenticated();
        slots.push(connections.try_open(address(2)).unwrap());
        assert_eq!(left(&slots), [true, true, false, true]);
        let (_one, _other) = (slots[1].begin(), slots[3].begin());
        // No connection is idle: a new one has to wait.
        assert!(connections.try_open(address(4)).is_none());
        drop(in_flight);
        assert!(connections.close_one());
        assert_eq!(left(&slots), [false, true, false, true]);
    }
}
