//! What the server knows of the runs in a place, and where it passes on what arrives for them.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

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
pub struct Far {
    pub outgoing: Arc<Outgoing>,
    pub state: Mutex<State>,
    /// Why the stream has ended, once it has.
    pub ended: watch::Sender<Option<Arc<str>>>,
    pub beat: Duration,
}

#[derive(Default)]
pub struct State {
    pub runs: HashMap<u64, mpsc::UnboundedSender<Order>>,
    pub lookups: HashMap<u64, oneshot::Sender<Found>>,
    /// The number of the last run or lookup.
    pub last: u64,
    pub closed: bool,
    /// Whether we want the stream to end.
    pub leaving: bool,
}

impl Far {
    pub fn add_run(&self, orders: mpsc::UnboundedSender<Order>) -> Option<u64> {
        let mut state = self.lock();
        if state.closed || state.leaving {
            return None;
        }
        state.last += 1;
        let run = state.last;
        state.runs.insert(run, orders);
        Some(run)
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
        for orders in runs.into_values() {
            let _ = orders.send(Order::Event(RunEvent::Lost));
        }
        self.outgoing.close();
        self.ended.send_if_modified(|why| {
            let reason = ended.map_or_else(
                |error| mcpz_runtime::with_causes(&error),
                |()| "it was closed".to_owned(),
            );
            why.get_or_insert(reason.into());
            true
        });
    }

    pub fn lock(&self) -> MutexGuard<'_, State> {
        // No code panics while it holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
