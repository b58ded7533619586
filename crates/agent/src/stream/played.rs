//! A place that greets properly and then sends anything, for tests and for the fuzzer.

use std::time::Duration;

use tokio::io::AsyncWriteExt;

use super::codec::{Frame, FromPlace, MAGIC, PlaceFacts, VERSIONS};
use super::far_link::FarLink;
use crate::frame::{Directory, Program, Spawn, Stdin};
use crate::process_event::ProcessEvent;
use crate::spawn_frame::SpawnFrame;

/// What happened to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happened {
    Started,
    Ended,
}

/// Starts a run in a place that sends these bytes and hangs up. Returns what happened to the run, and why the stream
/// ended.
pub fn play(bytes: &[u8]) -> (Vec<Happened>, String) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_or_else(|_| Default::default(), |runtime| runtime.block_on(converse(bytes)))
}

async fn converse(bytes: &[u8]) -> (Vec<Happened>, String) {
    let (near, mut far) = tokio::io::duplex(64 << 10);
    let mut greeting = MAGIC.to_vec();
    let hello = FromPlace::Hello { version: VERSIONS, facts: PlaceFacts::default() };
    let encoded = Frame::Message(hello).encode(&mut greeting);
    debug_assert!(encoded.is_ok(), "a greeting is short");
    let minute = Duration::from_secs(60);
    let (link, greeted) =
        tokio::join!(FarLink::connect(near, minute, minute), far.write_all(&greeting));
    let (Ok((link, _)), Ok(())) = (link, greeted) else { return Default::default() };
    let program = Program::Argv(vec!["true".into()]);
    let (environment, stdin, directory) = (Vec::new(), Stdin::Pipe, Directory::Own);
    let (joined, replies, exec_rules) = (false, true, None);
    let spawn = Spawn { program, directory, environment, stdin, joined, replies, exec_rules };
    let sent = SpawnFrame::new(spawn).ok().and_then(|frame| link.send(0, frame).ok());
    let said = bytes.to_vec();
    tokio::spawn(async move {
        // The server may hang up first.
        let _ = far.write_all(&said).await;
        let _ = far.shutdown().await;
    });
    let mut events = Vec::new();
    if let Some(mut process) = sent {
        loop {
            let event = process.next().await;
            match event {
                ProcessEvent::Started(started) => {
                    events.push(Happened::Started);
                    // Its output stays unread until the place has hung up.
                    link.ended().await;
                    drop(started);
                }
                ProcessEvent::Exited { .. } | ProcessEvent::Answered(_) => {}
                _ => {
                    events.push(Happened::Ended);
                    break;
                }
            }
        }
    }
    (events, link.why_ended().map_or_else(String::new, |why| why.to_string()))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::codec::{PipeId, RunEvent, STDOUT, StartedPipes};
    use super::*;
    use crate::inspect::Answer;

    /// What a place says about the first run.
    fn frame() -> impl Strategy<Value = Vec<u8>> {
        let id = (0..3_u64, 0..6_u8).prop_map(|(run, pipe)| PipeId { run, pipe });
        let pipes =
            any::<(bool, bool, bool, bool)>().prop_map(|(terminal, stderr, stdin, replies)| {
                StartedPipes { terminal, stderr, stdin, replies }
            });
        let started = pipes.prop_map(|pipes| RunEvent::Started { pid: 7, pipes });
        let gone = Just(RunEvent::Gone { survivors: Vec::new(), limit: None });
        let event = prop_oneof![started, gone, Just(RunEvent::Lost), Just(RunEvent::NotStarted)];
        let said = prop_oneof![
            (0..3_u64, event).prop_map(|(run, event)| FromPlace::Run { run, event }),
            Just(FromPlace::Beat),
            Just(FromPlace::Bye),
        ];
        let encoded = |frame: Frame<'_, FromPlace>| {
            let mut bytes = Vec::new();
            frame.encode(&mut bytes).unwrap();
            bytes
        };
        prop_oneof![
            said.prop_map(move |message| encoded(Frame::Message(message))),
            (id.clone(), vec(any::<u8>(), 1..2000))
                .prop_map(move |(id, bytes)| encoded(Frame::Data(id, &bytes))),
            id.clone().prop_map(move |id| encoded(Frame::End(id))),
            (id, any::<u32>()).prop_map(move |(id, bytes)| encoded(Frame::Credit(id, bytes))),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn garbage_from_a_place_ends_the_run_and_never_panics(bytes in vec(any::<u8>(), 0..200)) {
            prop_assert!(play(&bytes).0.ends_with(&[Happened::Ended]));
        }

        #[test]
        fn whatever_a_place_says_in_frames_the_run_ends(frames in vec(frame(), 0..12)) {
            prop_assert!(play(&frames.concat()).0.ends_with(&[Happened::Ended]));
        }
    }

    #[test]
    fn answers_that_nobody_asked_for_end_the_place() {
        let pipes = StartedPipes { terminal: false, stderr: true, stdin: false, replies: false };
        let mut bytes = Vec::new();
        for event in [RunEvent::Started { pid: 7, pipes }, RunEvent::Answered(Answer::YesNo(true))]
        {
            Frame::Message(FromPlace::Run { run: 1, event }).encode(&mut bytes).unwrap();
        }
        // It goes on for a while, so that its end is not what ends the stream.
        while bytes.len() < 300 << 10 {
            Frame::Message(FromPlace::Beat).encode(&mut bytes).unwrap();
        }
        assert!(play(&bytes).1.ends_with("it answered what nobody asked"), "{:?}", play(&bytes));
    }

    #[test]
    fn more_data_than_there_is_room_for_ends_the_place() {
        let pipes = StartedPipes { terminal: false, stderr: true, stdin: false, replies: false };
        let started = FromPlace::Run { run: 1, event: RunEvent::Started { pid: 7, pipes } };
        let mut bytes = Vec::new();
        Frame::Message(started).encode(&mut bytes).unwrap();
        let id = PipeId { run: 1, pipe: STDOUT };
        for _ in 0..9 {
            Frame::<()>::Data(id, &[0; 64 << 10]).encode(&mut bytes).unwrap();
        }
        assert!(play(&bytes).1.ends_with("there was no room for so much data"));
    }
}
