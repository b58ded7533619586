//! The server's end of a stream: what it knows of the runs in a place, and where what arrives for them goes.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{mpsc, oneshot, watch};

use super::backlog::{Backlog, Waiting};
use super::codec::{Frame, FromPlace, RunEvent, RunRequest};
use super::exchange::Broken;
use super::outgoing::Outgoing;
use super::pipes::{Arrival, Violation};
use crate::lookup::Found;

/// What a run's task gets: from the place, or from the engine.
pub enum Order {
    Arrived(Arrival),
    Event(RunEvent),
    Request(RunRequest),
    /// The engine is not interested any more.
    Drop,
}

/// Orders for a run. Those from the place count as its backlog until they are taken.
pub type Orders = mpsc::UnboundedSender<(Order, Option<Waiting>)>;

#[derive(Default)]
pub struct Far {
    pub outgoing: Arc<Outgoing>,
    pub backlog: Arc<Backlog>,
    state: Mutex<State>,
    /// Why the stream has ended, once it has.
    ended: watch::Sender<Option<Arc<str>>>,
}

#[derive(Default)]
struct State {
    runs: HashMap<u64, Orders>,
    lookups: HashMap<u64, oneshot::Sender<Found>>,
    /// The number of the last run or lookup.
    last: u64,
    closed: bool,
    /// Whether we want the stream to end.
    leaving: bool,
}

impl State {
    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }
}

impl Far {
    /// Adds a run that gets these orders. `None` if no more are taken.
    pub fn add_run(&self, orders: Orders) -> Option<u64> {
        let mut state = self.lock();
        if state.closed || state.leaving {
            return None;
        }
        let run = state.next();
        state.runs.insert(run, orders);
        Some(run)
    }

    /// Adds a lookup whose answer goes here. `None` if there will be none.
    pub fn add_lookup(&self, caller: oneshot::Sender<Found>) -> Option<u64> {
        let mut state = self.lock();
        if state.closed {
            return None;
        }
        let id = state.next();
        state.lookups.insert(id, caller);
        Some(id)
    }

    /// From now on the stream is to end. Returns whether that is new.
    pub fn leave(&self) -> bool {
        !std::mem::replace(&mut self.lock().leaving, true)
    }

    pub fn is_leaving(&self) -> bool {
        self.lock().leaving
    }

    pub fn takes_runs(&self) -> bool {
        let state = self.lock();
        !state.closed && !state.leaving
    }

    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Why the stream has ended, once it has.
    pub fn why_ended(&self) -> watch::Receiver<Option<Arc<str>>> {
        self.ended.subscribe()
    }

    pub fn forget_lookup(&self, id: u64) {
        self.lock().lookups.remove(&id);
    }

    pub fn forget(&self, run: u64) {
        self.lock().runs.remove(&run);
    }

    pub fn handle(&self, frame: Frame<'_, FromPlace>) -> Result<ControlFlow<()>, Broken> {
        let message = match Arrival::of(frame) {
            Ok((run, arrival)) => {
                self.order(run, Order::Arrived(arrival))?;
                return Ok(ControlFlow::Continue(()));
            }
            Err(message) => message,
        };
        match message {
            FromPlace::Run { run, event } => self.order(run, Order::Event(event))?,
            FromPlace::Found { id, found } => {
                if let Some(caller) = self.lock().lookups.remove(&id) {
                    let _ = caller.send(found);
                }
            }
            FromPlace::Hello { .. } => return Err(Violation("it greeted twice").into()),
            FromPlace::Beat => {}
            FromPlace::Bye => return Ok(ControlFlow::Break(())),
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Passes something on to a run, unless that has ended.
    fn order(&self, run: u64, order: Order) -> Result<(), Violation> {
        let state = self.lock();
        if run > state.last {
            return Err(Violation("it speaks of a run that was never started"));
        }
        if let Some(orders) = state.runs.get(&run) {
            let _ = orders.send((order, Some(self.backlog.add())));
        }
        Ok(())
    }

    /// Gives the place up: what it sends cannot be trusted.
    pub fn give_up(&self, violation: Violation) {
        self.end(Err(violation.into()));
    }

    /// Ends all runs, which are lost, unless the stream was to end.
    pub fn end(&self, ended: Result<(), Broken>) {
        let runs = {
            let mut state = self.lock();
            state.closed = true;
            state.lookups.clear();
            std::mem::take(&mut state.runs)
        };
        self.outgoing.close();
        // Before the runs learn of it: they tell why.
        self.ended.send_if_modified(|why| {
            let reason = ended.map_or_else(
                |error| mcpz_runtime::with_causes(&error),
                |()| "it was closed".to_owned(),
            );
            why.get_or_insert(reason.into());
            true
        });
        for orders in runs.into_values() {
            let _ = orders.send((Order::Event(RunEvent::Lost), None));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code panics while it holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
