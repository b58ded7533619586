//! What the server knows of the runs in a place, and where it passes on what arrives for them.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{mpsc, oneshot, watch};

use super::codec::{Frame, FromPlace, RunEvent, RunRequest};
use super::exchange::Broken;
use super::outgoing::Outgoing;
use super::pipes::Violation;
use crate::lookup::Found;

/// What a run's task gets: from the place, or from the engine.
pub enum Order {
    Data(u8, Vec<u8>),
    End(u8),
    Credit(u8, u32),
    Event(RunEvent),
    Request(RunRequest),
    /// The engine is not interested any more.
    Drop,
}

/// The server's end of a stream.
#[derive(Default)]
pub struct Far {
    pub outgoing: Arc<Outgoing>,
    state: Mutex<State>,
    /// Why the stream has ended, once it has.
    ended: watch::Sender<Option<Arc<str>>>,
}

#[derive(Default)]
struct State {
    runs: HashMap<u64, mpsc::UnboundedSender<Order>>,
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
    pub fn add_run(&self, orders: mpsc::UnboundedSender<Order>) -> Option<u64> {
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

    pub fn forget(&self, run: u64) {
        self.lock().runs.remove(&run);
    }

    pub fn handle(&self, frame: Frame<'_, FromPlace>) -> Result<ControlFlow<()>, Broken> {
        match frame {
            Frame::Data(id, bytes) => self.order(id.run, Order::Data(id.pipe, bytes.to_vec()))?,
            Frame::End(id) => self.order(id.run, Order::End(id.pipe))?,
            Frame::Credit(id, bytes) => self.order(id.run, Order::Credit(id.pipe, bytes))?,
            Frame::Message(FromPlace::Run { run, event }) => {
                self.order(run, Order::Event(event))?
            }
            Frame::Message(FromPlace::Found { id, found }) => {
                if let Some(caller) = self.lock().lookups.remove(&id) {
                    let _ = caller.send(found);
                }
            }
            Frame::Message(FromPlace::Hello { .. }) => {
                return Err(Violation("it greeted twice").into());
            }
            Frame::Message(FromPlace::Beat) => {}
            Frame::Message(FromPlace::Bye) => return Ok(ControlFlow::Break(())),
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Passes something on to a run, unless that has ended.
    pub fn order(&self, run: u64, order: Order) -> Result<(), Violation> {
        let state = self.lock();
        if run > state.last {
            return Err(Violation("it speaks of a run that was never started"));
        }
        if let Some(orders) = state.runs.get(&run) {
            let _ = orders.send(order);
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
            let _ = orders.send(Order::Event(RunEvent::Lost));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code panics while it holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
