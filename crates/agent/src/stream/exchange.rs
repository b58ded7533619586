//! Reads, writes and beats, for as long as the other end does the same.

use std::io;
use std::ops::ControlFlow;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep_until};

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

/// How an end shows that it is there.
pub struct Signs<Out> {
    pub beat: Duration,
    pub message: Out,
    pub given: Given,
}

/// When it does so.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Given {
    /// At every beat.
    ByItself,
    /// Whenever something arrives, but not much more often than at every beat. So it sleeps while nothing happens.
    InReturn,
}

/// Handles every frame that arrives until `handle` breaks off, and sends what is to be sent.
pub async fn exchange<In, Out, R, W>(
    incoming: &mut Incoming<R>,
    backlog: &Backlog,
    outgoing: &Outgoing,
    writer: &mut W,
    Signs { beat, message, given }: Signs<Out>,
    mut handle: impl FnMut(Frame<'_, In>) -> Result<ControlFlow<()>, Broken>,
) -> Result<(), Broken>
where
    In: DeserializeOwned,
    Out: Serialize + Clone,
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let (mut heard, mut said) = (Instant::now(), Instant::now());
    let timer = sleep_until(said + beat);
    tokio::pin!(timer);
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
                Ok(true) => {
                    heard = Instant::now();
                    if given == Given::InReturn && heard.duration_since(said) > beat / 2 {
                        said = heard;
                        outgoing.message(message.clone())?;
                    }
                }
                Ok(false) => return Err(Broken::Closed),
                Err(error) => return Err(Broken::Failed(error)),
            },
            written = &mut write => return Err(written.map_or_else(Broken::Failed, |()| Broken::Closed)),
            () = &mut timer => {
                let (now, silence) = (Instant::now(), heard.elapsed());
                // A process that was stopped itself looks once more before it gives up.
                let was_stopped = now.duration_since(timer.deadline()) >= beat;
                let is_silent = silence >= beat * PATIENCE;
                if is_silent && !was_stopped {
                    return Err(Broken::Silent(silence));
                }
                incoming.relax();
                outgoing.relax();
                if outgoing.is_stuck() {
                    return Err(Broken::Unread);
                }
                if given == Given::ByItself && now.duration_since(said) >= beat {
                    said = now;
                    outgoing.message(message.clone())?;
                }
                let enough = heard + beat * PATIENCE;
                let next = match given {
                    _ if is_silent => now + beat,
                    Given::ByItself => enough.min(said + beat),
                    Given::InReturn => enough,
                };
                timer.as_mut().reset(next);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex, split};
    use tokio::time::{sleep, timeout};

    use super::super::codec::{FromPlace, PipeId, ToPlace};
    use super::*;

    const BEAT: Duration = Duration::from_secs(5);
    const HOUR: Duration = Duration::from_secs(3600);

    /// One end that handles nothing.
    async fn an_end<In: DeserializeOwned, Out: Serialize + Clone>(
        stream: DuplexStream,
        message: Out,
        given: Given,
    ) -> Broken {
        let (reader, mut writer) = split(stream);
        let (mut incoming, outgoing) = (Incoming::new(reader), Outgoing::default());
        let signs = Signs { beat: BEAT, message, given };
        let handle = |_: Frame<'_, In>| Ok(ControlFlow::Continue(()));
        let (backlog, outgoing) = (Backlog::default(), &outgoing);
        exchange(&mut incoming, &backlog, outgoing, &mut writer, signs, handle).await.unwrap_err()
    }

    async fn server(stream: DuplexStream) -> Broken {
        an_end::<FromPlace, _>(stream, ToPlace::Beat, Given::ByItself).await
    }

    async fn relay(stream: DuplexStream) -> Broken {
        an_end::<ToPlace, _>(stream, FromPlace::Beat, Given::InReturn).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_and_a_relay_hear_each_other_while_nothing_happens() {
        let (near, far) = duplex(4096);
        let both = async {
            tokio::select!(broken = server(near) => broken, broken = relay(far) => broken)
        };
        assert!(timeout(HOUR, both).await.is_err(), "one gave up");
    }

    #[tokio::test(start_paused = true)]
    async fn an_end_that_hears_nothing_gives_up_after_three_beats() {
        for is_server in [true, false] {
            let (near, mut far) = duplex(4096);
            let began = Instant::now();
            let read = async { while let Ok(1..) = far.read(&mut [0; 64]).await {} };
            let end = async { if is_server { server(near).await } else { relay(near).await } };
            let (broken, ()) = tokio::join!(end, read);
            assert!(matches!(broken, Broken::Silent(_)), "{broken}");
            let beats = began.elapsed().as_secs_f64() / BEAT.as_secs_f64();
            assert!((3.0..3.1).contains(&beats), "{is_server}: {beats}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_relay_says_that_it_is_there_at_every_beat_while_something_long_arrives() {
        let (near, mut far) = duplex(64 << 10);
        let relay = tokio::spawn(relay(near));
        let (mut bytes, pipe) = (Vec::new(), PipeId { run: 1, pipe: 0 });
        Frame::<()>::Data(pipe, &[0; 6000]).encode(&mut bytes).unwrap();
        let mut sign = Vec::new();
        Frame::Message(FromPlace::Beat).encode(&mut sign).unwrap();
        let (mut signs, began, mut last) = (0, Instant::now(), Instant::now());
        for byte in &bytes[..600] {
            far.write_all(&[*byte]).await.unwrap();
            sleep(BEAT / 10).await;
            let mut read = [0; 64];
            if let Ok(Ok(length)) = timeout(Duration::from_millis(1), far.read(&mut read)).await {
                assert_eq!(read[..length], sign);
                (signs, last) = (signs + 1, Instant::now());
            }
            assert!(last.elapsed() <= BEAT);
        }
        let beats = began.elapsed().as_secs_f64() / BEAT.as_secs_f64();
        assert!(f64::from(signs) < 2.0 * beats, "{signs} in {beats}");
        relay.abort();
    }
}
