//! Which connections are open, which one is closed when there are too many, and how many one client may keep busy.
//!
//! A connection is idle while none of its requests is being answered: it is new, or waits for its next request. At
//! the limit each new connection closes an idle one: first those that have never shown a token, of these one of the
//! holder that has the most, of these the one that has been idle the longest. So sockets that say nothing keep
//! nobody out, and a request that is being answered is never cut off.
//!
//! Connections that are busy cannot be closed, and an event stream is busy for as long as its client likes. So they
//! are shared out: a holder that has its share gets no further request answered, and the last share is always left for
//! a newcomer. A connection's holder is its principal, or its address where no token tells clients apart.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
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
    /// How many busy connections each holder has that has any.
    busy: HashMap<Holder, usize>,
}

/// Who has a connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Holder {
    Address(IpAddr),
    Principal(Arc<str>),
}

struct Connection {
    holder: Holder,
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
            holder: Holder::Address(network(address)),
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

/// The address, or the network of an IPv6 address: its owner can use all addresses in it.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into()
        }
        v4 => v4,
    }
}

impl State {
    fn close_one(&mut self) -> bool {
        let mut held: HashMap<&Holder, usize> = HashMap::new();
        for connection in self.open.values() {
            *held.entry(&connection.holder).or_default() += 1;
        }
        let closes_first = |(_, connection): &(&u64, &Connection)| {
            let share = Reverse(held[&connection.holder]);
            (connection.authenticated, share, connection.idle_since)
        };
        let idle = self.open.iter().filter(|(_, connection)| connection.in_flight == 0);
        let Some(number) = idle.min_by_key(closes_first).map(|(number, _)| *number) else {
            return false;
        };
        self.open.remove(&number).inspect(|connection| connection.closed.cancel()).is_some()
    }

    fn note_busy(&mut self, holder: Holder) {
        *self.busy.entry(holder).or_default() += 1;
    }

    fn note_not_busy(&mut self, holder: &Holder) {
        if let Some(count) = self.busy.get_mut(holder) {
            *count -= 1;
            if *count == 0 {
                self.busy.remove(holder);
            }
        }
    }

    /// Closes a connection, or notes that it is closed.
    fn remove(&mut self, number: u64) {
        if let Some(connection) = self.open.remove(&number)
            && connection.in_flight > 0
        {
            self.note_not_busy(&connection.holder);
        }
    }

    fn begin(&mut self, number: u64) {
        let Some(connection) = self.open.get_mut(&number) else { return };
        connection.in_flight += 1;
        if connection.in_flight == 1 {
            let holder = connection.holder.clone();
            self.note_busy(holder);
        }
    }

    fn end(&mut self, number: u64) {
        let Some(connection) = self.open.get_mut(&number) else { return };
        connection.in_flight -= 1;
        connection.idle_since = Instant::now();
        if connection.in_flight == 0 {
            let holder = connection.holder.clone();
            self.note_not_busy(&holder);
        }
    }

    /// Gives a busy connection to another holder.
    fn give(&mut self, number: u64, holder: &Holder) {
        let Some(connection) = self.open.get_mut(&number) else { return };
        if connection.holder != *holder {
            let before = std::mem::replace(&mut connection.holder, holder.clone());
            self.note_not_busy(&before);
            self.note_busy(holder.clone());
        }
    }
}

impl Slot {
    /// Notes that one of the connection's requests is being answered.
    pub fn begin(&self) -> InFlight {
        self.connections.lock().begin(self.number);
        InFlight { connections: self.connections.clone(), number: self.number }
    }
}

impl InFlight {
    /// Notes that the request may be answered, and for which principal, unless all clients are the same one. Returns
    /// false if they keep more than their share of connections busy.
    pub fn admit(&self, principal: Option<Arc<str>>) -> bool {
        let mut state = self.connections.lock();
        let Some(connection) = state.open.get_mut(&self.number) else { return true };
        connection.authenticated = true;
        let holder = principal.map_or_else(|| connection.holder.clone(), Holder::Principal);
        state.give(self.number, &holder);
        let share = self.connections.shared.limit / (state.busy.len() + 1);
        state.busy.get(&holder).is_none_or(|busy| *busy <= share.max(1))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.connections.lock().end(self.number);
        self.connections.shared.room.notify_one();
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.connections.lock().remove(self.number);
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

    /// Begins requests on new connections, for as long as they are admitted. Returns these.
    fn fill(connections: &Connections, last: u8, name: Option<&str>) -> Vec<(InFlight, Slot)> {
        let begin = || {
            let slot = connections.try_open(address(last))?;
            let in_flight = slot.begin();
            in_flight.admit(name.map(Into::into)).then_some((in_flight, slot))
        };
        std::iter::from_fn(begin).collect()
    }

    #[test]
    fn the_longest_idle_of_the_holder_with_the_most_closes_first() {
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
        slots[1].begin().admit(Some("ada".into()));
        slots.push(connections.try_open(address(2)).unwrap());
        assert_eq!(left(&slots), [true, true, false, true]);
        let (_one, _other) = (slots[1].begin(), slots[3].begin());
        // No connection is idle: a new one has to wait.
        assert!(connections.try_open(address(4)).is_none());
        drop(in_flight);
        assert!(connections.close_one());
        assert_eq!(left(&slots), [false, true, false, true]);
    }

    #[test]
    fn one_principal_or_address_leaves_room_for_the_next() {
        let connections = Connections::new(60);
        let ada = fill(&connections, 1, Some("ada"));
        assert_eq!(ada.len(), 30, "half of all, from whatever address");
        assert_eq!(fill(&connections, 2, Some("ada")).len(), 0);
        // From the same address, as behind a proxy.
        let bob = fill(&connections, 1, Some("bob"));
        assert_eq!(bob.len(), 20);
        assert_eq!(fill(&connections, 3, None).len(), 10, "what is left");
        drop(ada);
        let third = fill(&connections, 3, None);
        assert_eq!(third.len(), 20);
        drop((bob, third));
        assert!(connections.lock().busy.is_empty() && connections.lock().open.is_empty());
    }

    #[test]
    fn addresses_of_one_ipv6_network_are_one_holder() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("2001:db8:1:2:3::4"), of("2001:db8:1:2:ffff::"));
        assert_ne!(of("2001:db8:1:2::"), of("2001:db8:1:3::"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    }
}
