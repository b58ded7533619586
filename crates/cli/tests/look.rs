//! What a keeper tells about its run while that goes on.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;

use mcpz_agent::{
    Answer, Directory, FIRST_OWNER, Identity, InputMode, InputReader, Limits, Link, Process,
    ProcessEvent, Program, Question, Spawn, Started, Status, Stdin,
};
use rustix::process::Signal;
use rustix::termios::tcgetwinsize;
use support::MCPZ;

const TERMINAL: Stdin = Stdin::Terminal { rows: 24, columns: 80 };

/// A run that is asked things.
struct Asked {
    process: Process,
    started: Started,
    /// The lines it prints.
    lines: BufReader<std::fs::File>,
}

impl Asked {
    async fn start(link: &Link, text: &str, stdin: Stdin) -> Self {
        let spawn = Spawn {
            program: Program::Script { shell: "/bin/sh".into(), text: text.into() },
            directory: Directory::Own,
            environment: Vec::new(),
            stdin,
            joined: false,
            replies: false,
            exec_rules: None,
        };
        let mut process = link.spawn(FIRST_OWNER, spawn).unwrap();
        let ProcessEvent::Started(started) = process.next().await else { panic!("it starts") };
        let stdout = started.stdout.try_clone().unwrap();
        Self { process, started, lines: BufReader::new(blocking(stdout)) }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    async fn ask(&mut self, question: Question) -> Answer {
        self.process.ask(question);
        match self.process.next().await {
            ProcessEvent::Answered(seen) => seen,
            other => panic!("it is answered, not {other:?}"),
        }
    }

    async fn processes(&mut self, question: Question) -> Vec<Identity> {
        match self.ask(question).await {
            Answer::Processes(processes) => processes,
            other => panic!("processes, not {other:?}"),
        }
    }

    async fn is(&mut self, question: Question) -> bool {
        match self.ask(question).await {
            Answer::YesNo(answer) => answer,
            other => panic!("yes or no, not {other:?}"),
        }
    }

    /// Asks until the answer is yes: the run may need a moment to get there.
    async fn becomes(&mut self, question: Question) {
        while !self.is(question.clone()).await {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }

    async fn readers(&mut self) -> Vec<InputReader> {
        self.input().await.0
    }

    /// Who may read its input, and how.
    async fn input(&mut self) -> (Vec<InputReader>, InputMode) {
        match self.ask(Question::Readers).await {
            Answer::Readers { readers, mode } => (readers, mode),
            other => panic!("readers, not {other:?}"),
        }
    }
}

fn blocking(pipe: OwnedFd) -> std::fs::File {
    rustix::io::ioctl_fionbio(&pipe, false).unwrap();
    pipe.into()
}

fn asking<T>(text: &str, stdin: Stdin, test: impl AsyncFnOnce(Asked) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let variables: Vec<_> = std::env::vars_os().collect();
        let link = Link::start(MCPZ.as_ref(), &variables, Limits::default()).unwrap();
        let result = test(Asked::start(&link, text, stdin).await).await;
        link.close().await;
        result
    })
}

fn pids(processes: &[Identity]) -> Vec<i32> {
    processes.iter().map(|process| process.pid).collect()
}

#[test]
fn all_processes_are_told_and_which_are_there_besides_the_first() {
    let text = "setsid sh -c 'sleep 100 & echo $!; exec sleep 100' & echo $!; wait";
    asking(text, Stdin::Null, async |mut run| {
        let first = run.started.pid;
        let mut below: Vec<i32> = (0..2).map(|_| run.line().parse().unwrap()).collect();
        below.sort_unstable();
        let mut others = pids(&run.processes(Question::Others).await);
        others.sort_unstable();
        assert_eq!(others, below);
        let all = pids(&run.processes(Question::Processes).await);
        assert_eq!(all.len(), 3, "{all:?}");
        assert!(all.contains(&first), "{all:?}");
    });
}

#[test]
fn what_was_there_before_is_not_signalled() {
    let text =
        "sleep 100 & echo begun; read x; sleep 50 & echo $!; wait $!; echo ended by $?; wait";
    asking(text, Stdin::Pipe, async |mut run| {
        assert_eq!(run.line(), "begun");
        let before = run.processes(Question::Others).await;
        assert_eq!(before.len(), 1, "{before:?}");
        rustix::io::write(run.started.stdin.as_ref().unwrap(), b"go\n").unwrap();
        let later: i32 = run.line().parse().unwrap();
        let signal = Question::Signal { signal: Signal::TERM.as_raw(), except: before.clone() };
        assert_eq!(pids(&run.processes(signal).await), [later]);
        assert_eq!(run.line(), "ended by 143");
        assert_eq!(run.processes(Question::Others).await, before);
    });
}

#[test]
fn a_process_that_waits_for_input_is_noticed_on_a_terminal_and_on_a_pipe() {
    for stdin in [TERMINAL, Stdin::Pipe] {
        asking("sleep 0.1; read x; exec sleep 100", stdin, async |mut run| {
            run.becomes(Question::WaitsForInput).await;
            rustix::io::write(run.started.stdin.as_ref().unwrap(), b"y\n").unwrap();
            while run.is(Question::WaitsForInput).await {}
        });
    }
}

#[test]
fn nobody_waits_for_input_that_never_comes() {
    asking("echo here; exec sleep 100", Stdin::Null, async |mut run| {
        run.line();
        assert!(!run.is(Question::WaitsForInput).await);
    });
}

#[test]
fn programs_that_read_the_input_are_told_with_their_arguments() {
    let text = "(exec <&-; echo apart; exec sleep 100) & exec sh -s with 'two  words'";
    asking(text, Stdin::Pipe, async |mut run| {
        rustix::io::write(run.started.stdin.as_ref().unwrap(), b"echo here\n").unwrap();
        let mut lines = [run.line(), run.line()];
        lines.sort();
        assert_eq!(lines, ["apart", "here"]);
        let readers = run.readers().await;
        let [reader] = readers.as_slice() else { panic!("one, not {readers:?}") };
        let arguments: Vec<_> = reader.arguments.iter().filter(|word| !word.is_empty()).collect();
        assert_eq!(arguments, [&b"-s"[..], b"with", b"two  words"]);
    });
}

#[test]
fn a_program_may_read_the_input_on_any_descriptor() {
    let text = "exec 5<&0 </dev/null; echo here; exec sleep 100";
    for stdin in [TERMINAL, Stdin::Pipe] {
        asking(text, stdin, async |mut run| {
            run.line();
            while run.readers().await.iter().all(|reader| reader.name != "sleep") {}
        });
    }
    let text = "echo here; exec sleep 100 </dev/null >/dev/null 2>&1";
    asking(text, TERMINAL, async |mut run| {
        run.line();
        // It can open /dev/tty.
        while run.readers().await.iter().all(|reader| reader.name != "sleep") {}
    });
    let text = "exec 5>/dev/null </dev/null; echo here; exec sleep 100";
    asking(text, Stdin::Pipe, async |mut run| {
        run.line();
        while !run.readers().await.is_empty() {}
    });
}

#[test]
fn what_the_first_process_left_may_read_the_input() {
    asking("exec 5<&0; sleep 100 & echo $!", Stdin::Pipe, async |mut run| {
        run.line();
        let ProcessEvent::Exited { gone: false, .. } = run.process.next().await else {
            panic!("something is left")
        };
        assert!(!run.readers().await.is_empty());
    });
}

#[test]
fn a_program_with_a_terminal_for_others_passes_its_input_on() {
    let text = "exec python3 -c \"import pty, time; pair = pty.openpty(); \
                print('here', flush=True); time.sleep(100)\"";
    for stdin in [TERMINAL, Stdin::Pipe] {
        asking(text, stdin, async |mut run| {
            run.line();
            assert!(run.readers().await.iter().any(|reader| reader.relays));
        });
    }
    asking("echo here; exec sleep 100", TERMINAL, async |mut run| {
        run.line();
        assert!(!run.readers().await.iter().any(|reader| reader.relays));
    });
}

#[test]
fn a_terminal_tells_whether_someone_waits_for_a_line() {
    let text = "echo here; sleep 0.1; read x; stty -echo; echo secret; read x; \
                stty raw; echo keys; read x";
    asking(text, TERMINAL, async |mut run| {
        run.line();
        run.becomes(Question::WaitsForInput).await;
        assert!(run.readers().await.iter().any(|reader| reader.waits));
        for (line, expected) in
            [("", InputMode::Line), ("secret", InputMode::Secret), ("keys", InputMode::Keys)]
        {
            while !line.is_empty() && run.line() != line {}
            assert_eq!(run.input().await.1, expected);
            rustix::io::write(run.started.stdin.as_ref().unwrap(), b"\n").unwrap();
        }
    });
    asking("echo here; exec sleep 100", TERMINAL, async |mut run| {
        run.line();
        let (readers, mode) = run.input().await;
        assert_eq!(mode, InputMode::Keys, "nobody waits");
        assert!(readers.iter().all(|reader| !reader.waits));
    });
    asking("echo here; exec sleep 100", Stdin::Pipe, async |mut run| {
        run.line();
        assert_eq!(run.input().await.1, InputMode::Stream);
    });
}

#[test]
fn a_run_listens_only_on_its_own_ports() {
    let stranger = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = stranger.local_addr().unwrap().port();
    let text = "exec python3 -c \"import socket, time; s = socket.create_server(('127.0.0.1', 0)); \
                print(s.getsockname()[1], flush=True); time.sleep(100)\"";
    asking(text, Stdin::Null, async |mut run| {
        let own = run.line().parse().unwrap();
        assert!(run.is(Question::Listens { port: own }).await);
        assert!(!run.is(Question::Listens { port }).await);
    });
}

#[test]
fn a_terminal_tells_whether_it_hides_what_is_typed() {
    let text = "echo open; read x; stty -echo; echo hidden; read x; stty raw; echo raw; read x";
    asking(text, TERMINAL, async |mut run| {
        for (state, hides) in [("open", false), ("hidden", true), ("raw", false)] {
            while run.line() != state {}
            assert_eq!(run.is(Question::HidesInput).await, hides, "{state}");
            rustix::io::write(run.started.stdin.as_ref().unwrap(), b"\n").unwrap();
        }
    });
}

#[test]
fn a_terminal_has_its_new_size_when_that_is_answered() {
    asking(
        "trap 'stty size' WINCH; echo here; while :; do sleep 0.01; done",
        TERMINAL,
        async |mut run| {
            run.line();
            assert!(run.is(Question::Resize { rows: 50, columns: 132 }).await);
            let size = tcgetwinsize(&run.started.stdout).unwrap();
            assert_eq!((size.ws_row, size.ws_col), (50, 132));
            assert_eq!(run.line(), "50 132");
        },
    );
}

#[test]
fn what_has_no_terminal_has_nothing_to_hide_or_to_resize() {
    asking("exec sleep 100", Stdin::Null, async |mut run| {
        assert!(!run.is(Question::HidesInput).await);
        assert!(!run.is(Question::Resize { rows: 50, columns: 132 }).await);
    });
}

#[test]
fn what_the_first_process_left_can_be_looked_at_and_the_first_cannot() {
    asking("sleep 100 & echo $!", Stdin::Pipe, async |mut run| {
        let left: i32 = run.line().parse().unwrap();
        let ProcessEvent::Exited { exit, gone: false } = run.process.next().await else {
            panic!("something is left")
        };
        assert_eq!((exit.status, exit.left.as_slice()), (Status::Code(0), &[left][..]));
        assert_eq!(pids(&run.processes(Question::Processes).await), [left]);
        assert_eq!(pids(&run.processes(Question::Others).await), [left]);
        assert!(run.readers().await.is_empty());
    });
}

#[test]
fn questions_are_answered_in_their_order_however_many_there_are() {
    asking("exec sleep 100", Stdin::Null, async |mut run| {
        for _ in 0..500 {
            run.process.ask(Question::HidesInput);
            run.process.ask(Question::Processes);
        }
        for _ in 0..500 {
            assert!(matches!(
                run.process.next().await,
                ProcessEvent::Answered(Answer::YesNo(false))
            ));
            assert!(matches!(
                run.process.next().await,
                ProcessEvent::Answered(Answer::Processes(_))
            ));
        }
    });
}
