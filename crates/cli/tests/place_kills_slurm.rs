//! Whatever is killed of a Slurm job that commands run in: calls are answered, no process and no job is left, and the
//! next call works.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::time::Instant;

use serde_json::json;
use support::kills::{
    Going, Ground, PROMISE, arguments, descendants, ground, kill_server, printed,
    the_agent_is_replaced, told, works,
};
use support::{kill, name, wait_until};

/// The jobs that are queued or run, each with its state.
fn jobs() -> Vec<String> {
    printed("squeue", &["--noheader", "--format=%i %t"]).lines().map(str::to_owned).collect()
}

fn no_job_is_left(since: Instant) {
    wait_until("no job is left", || jobs().is_empty().then_some(()));
    told(since, "until no job was left");
    assert!(since.elapsed() < PROMISE * 3, "{:?}", since.elapsed());
}

/// Does something to the place. Nothing is left of it but a job of the next call, which ends with the server.
fn broken(ground: &Ground, why: &str, how: impl Fn(&Going)) {
    assert_eq!(jobs(), [""; 0]);
    let mut server = ground.server();
    let going = Going::start(&mut server);
    let job = jobs();
    how(&going);
    let since = Instant::now();
    going.are_lost(&mut server, why);
    told(since, "until the calls were answered");
    going.are_gone(since);
    wait_until("the old job is gone", || (!jobs().contains(&job[0])).then_some(()));
    told(since, "until the job was gone");
    works(&mut server);
    server.close_stdin();
    server.wait();
    no_job_is_left(Instant::now());
}

#[test]
fn nothing_is_left_of_a_server_that_is_killed() {
    let Some(ground) = ground("slurm") else { return };
    let mut server = ground.server();
    let going = Going::start(&mut server);
    let since = kill_server(server);
    going.are_gone(since);
    no_job_is_left(since);
    works(&mut ground.server());
    no_job_is_left(Instant::now());
}

#[test]
fn a_job_that_is_pending_is_cancelled_when_its_server_is_killed() {
    let Some(ground) = ground("slurm") else { return };
    let mut server = ground.server_with("options = [\"--begin=now+1hour\"]");
    server.start_call(json!({"command": "true"}));
    wait_until("a job is pending", || jobs().iter().any(|job| job.ends_with("PD")).then_some(()));
    let below = descendants(server.child.id());
    assert!(below.iter().any(|pid| name(*pid) == "srun"), "{below:?}");
    let since = kill_server(server);
    no_job_is_left(since);
    wait_until("no process is left", || {
        below.iter().all(|pid| !["mcpz", "srun"].contains(&&*name(*pid))).then_some(())
    });
}

#[test]
fn srun_that_is_killed_loses_the_place() {
    let Some(ground) = ground("slurm") else { return };
    broken(&ground, "the connection was closed", |going| {
        kill("KILL", going.part(|pid| name(pid) == "srun"));
    });
}

#[test]
fn the_supervisor_that_is_killed_takes_srun_with_it() {
    let Some(ground) = ground("slurm") else { return };
    broken(&ground, "the connection was closed", |going| {
        kill("KILL", going.part(|pid| arguments(pid).contains(" supervise ")));
    });
}

#[test]
fn the_daemon_of_a_step_that_is_killed_loses_the_place() {
    let Some(ground) = ground("slurm") else { return };
    broken(&ground, "", |going| kill("KILL", going.part(|pid| name(pid) == "slurmstepd")));
}

#[test]
fn a_job_that_somebody_else_cancels_loses_the_place() {
    let Some(ground) = ground("slurm") else { return };
    broken(&ground, "", |_| {
        let job = jobs();
        printed("scancel", &[job[0].split(' ').next().unwrap()]);
    });
}

#[test]
fn the_relay_that_is_killed_loses_the_place() {
    let Some(ground) = ground("slurm") else { return };
    broken(&ground, "the connection was closed", |going| kill("KILL", going.relay));
}

#[test]
fn the_agent_that_is_killed_is_replaced_there() {
    let Some(ground) = ground("slurm") else { return };
    the_agent_is_replaced(&ground);
    no_job_is_left(Instant::now());
}
