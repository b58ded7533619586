//! Reads, writes and beats, for as long as the other end does the same.

use std::io;
use std::ops::ControlFlow;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::backlog::Backlog;
use super::codec::{CodecError, Frame};
use super::incoming::Incoming;
use super::outgoing::Outgoing;
use super::pipes::Violation;

/// After so many silent beats the other end counts as gone.
pub const PATIENCE: u32 = 3;

/// Why a stream ended that nobody wanted to end.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    #[error("the connection was closed")]
    Closed,
    #[error("the connection failed")]
    Failed(#[source] io::Error),
    #[error("nothing was heard for {0:?}")]
    Silent(Duration),
    #[error("the other end does not read what it is sent")]
    Unread,
    #[error("the other end sent something invalid")]
    Garbage(#[from] CodecError),
    #[error("the other end broke the protocol")]
    Violation(#[from] Violation),
}

/// Handles every frame that arrives until `handle` breaks off, and sends what is to be sent.
pub async fn exchange<In, Out, R, W>(
    incoming: &mut Incoming<R>,
    backlog: &Backlog,
    outgoing: &Outgoing,
    writer: &mut W,
    (beat, message): (Duration, Out),
    mut handle: impl FnMut(Frame<'_, In>) -> Result<ControlFlow<()>, Broken>,
) -> Result<(), Broken>
where
    In: DeserializeOwned,
    Out: Serialize + Clone,
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut heard = Instant::now();
    // Half a beat, so that a message that came just before a tick does not make the silence longer than a beat.
    let mut ticks = interval(beat / 2);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let write = outgoing.write_to(writer);
    tokio::pin!(write);
    loop {
        while let Some(frame) = incoming.next()? {
            if handle(frame)?.is_break() {
                return Ok(());
            }
        }
        tokio::select! {
            filled = async { backlog.room().await; incoming.fill().await } => match filled {
                Ok(true) => heard = Instant::now(),
                Ok(false) => return Err(Broken::Closed),
                Err(error) => return Err(Broken::Failed(error)),
            },
            written = &mut write => return Err(written.map_or_else(Broken::Failed, |()| Broken::Closed)),
            now = ticks.tick() => {
                // A process that was stopped itself looks once more before it gives up.
                let silence = now.duration_since(heard);
                if silence > beat * PATIENCE && Instant::now().duration_since(now) < beat {
                    return Err(Broken::Silent(silence));
                }
                incoming.relax();
                if outgoing.is_stuck() {
                    return Err(Broken::Unread);
                }
                if outgoing.relax() {
                    outgoing.message(message.clone())?;
                }
            }
        }
    }
}
