use std::os::unix::fs::MetadataExt;

use mcpz_agent::Usage;
use mcpz_output::NEWEST_KEPT;

use super::super::Manifest;
use super::super::job_folder::{END_PART, NEWEST_PART, OUTPUT};
use super::*;
use crate::jobs::{JobEnd, JobOutcome};
use crate::outcome::End;

fn add(jobs: &JobsFolder, owner_key: &str, number: usize, printed: usize) -> JobFolder {
    let run = format!("{owner_key}{number:04}");
    let folder = jobs.add(&run).unwrap();
    let manifest = Manifest {
        run,
        owner_key: owner_key.to_owned(),
        owner: owner_key.to_owned(),
        command: "true".to_owned(),
        directory: None,
        started_at: SystemTime::UNIX_EPOCH + Duration::from_secs(number as u64),
        input: None,
        recorder: 1,
        server: None,
    };
    fs::write(folder.join(OUTPUT), vec![b'x'; printed]).unwrap();
    let job = JobFolder { folder, manifest };
    job.write_manifest().unwrap();
    job.publish().unwrap();
    job
}

fn end(job: &JobFolder) {
    let outcome = JobOutcome::Ran(End::Exited(0), Usage::default());
    let (survivors, refused) = (Vec::new(), Vec::new());
    let (took, lost, limit) = (Duration::from_secs(1), 0, None);
    let end_of_it =
        JobEnd { pid: None, outcome, limit, stopped: false, took, survivors, lost, refused };
    job.end(&end_of_it).unwrap();
    assert_eq!(job.read_end().unwrap(), end_of_it);
}

fn at_most(total: u64) -> SpillSettings {
    SpillSettings { per_owner: total, total, ..SpillSettings::new("") }
}

#[test]
fn each_owner_keeps_its_newest_jobs() {
    let folder = tempfile::tempdir().unwrap();
    let jobs = JobsFolder::new(folder.path());
    end(&add(&jobs, "ann", 0, 0));
    (1..=MAX_ENDED + 5).for_each(|number| end(&add(&jobs, "bob", number, 0)));
    jobs.tidy("ann", &at_most(u64::MAX));
    let left: Vec<_> = jobs.jobs().into_iter().map(|job| job.manifest.run).collect();
    assert_eq!(left.len(), 1 + MAX_ENDED);
    assert!(left.contains(&"ann0000".to_owned()) && !left.contains(&"bob0005".to_owned()));
}

#[test]
fn ended_jobs_are_evicted_oldest_first_including_those_of_killed_recorders() {
    let folder = tempfile::tempdir().unwrap();
    let jobs = JobsFolder::new(folder.path());
    let old = add(&jobs, "ann", 1, 100_000);
    // Its recorder was killed: the socket is dead, and there is no end.
    fs::remove_file(old.folder.join(END_PART)).unwrap();
    drop(std::os::unix::net::UnixListener::bind(old.folder.join("control")).unwrap());
    let new = add(&jobs, "ann", 2, 100_000);
    end(&new);
    let room = jobs.tidy("ann", &at_most(250_000));
    assert!(room > 0 && old.folder.exists() && new.folder.exists());
    jobs.tidy("ann", &at_most(150_000));
    assert!(!old.folder.exists() && new.folder.exists());
}

#[test]
fn room_for_the_newest_output_is_reserved_and_given_back() {
    let folder = tempfile::tempdir().unwrap();
    let jobs = JobsFolder::new(folder.path());
    let [kept, unneeded, killed] = [1, 2, 3].map(|number| add(&jobs, "ann", number, 0));
    let reserved = |job: &JobFolder| fs::metadata(job.folder.join(NEWEST_PART)).is_ok();
    let blocks = fs::metadata(kept.folder.join(NEWEST_PART)).unwrap().blocks();
    assert!(blocks * 512 >= NEWEST_KEPT as u64, "{blocks}");
    kept.keep_newest(b"newest").unwrap();
    assert_eq!(kept.newest().unwrap(), b"newest");
    unneeded.keep_newest(b"").unwrap();
    assert_eq!(unneeded.newest().unwrap(), b"");
    drop(std::os::unix::net::UnixListener::bind(killed.folder.join("control")).unwrap());
    assert!(reserved(&killed) && killed.newest().unwrap().is_empty());
    jobs.tidy("ann", &at_most(u64::MAX));
    assert!(![&kept, &unneeded, &killed].into_iter().any(reserved));
}

#[test]
fn an_owners_jobs_are_found_without_rereading_those_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let jobs = JobsFolder::new(folder.path());
    let own = |owner_key| {
        let jobs = jobs.jobs_of(owner_key).into_iter();
        jobs.map(|job| job.manifest.run).collect::<Vec<_>>()
    };
    let first = add(&jobs, "ann", 1, 0);
    let strangers = add(&jobs, "bob", 1, 0);
    assert_eq!(own("ann"), ["ann0001"]);
    // A job that has not started yet, and one that has.
    let unbegun = jobs.add("ann0002").unwrap();
    assert_eq!(own("ann"), ["ann0001"]);
    fs::remove_dir_all(&unbegun).unwrap();
    add(&jobs, "ann", 2, 0);
    assert_eq!(own("ann"), ["ann0001", "ann0002"]);
    std::thread::sleep(2 * CLOCK_TICK);
    assert_eq!(own("bob"), ["bob0001"]);
    // It is not read again.
    fs::write(strangers.folder.join(MANIFEST), "nonsense").unwrap();
    assert_eq!(own("ann"), ["ann0001", "ann0002"]);
    first.remove();
    assert_eq!(own("ann"), ["ann0002"]);
}

#[test]
fn the_largest_owner_is_evicted_first_and_nobody_for_an_owner_over_its_quota() {
    let folder = tempfile::tempdir().unwrap();
    let jobs = JobsFolder::new(folder.path());
    let ann = add(&jobs, "ann", 1, 100_000);
    end(&ann);
    let bobs = [2, 3, 4].map(|number| add(&jobs, "bob", number, 100_000));
    bobs.iter().for_each(end);
    let left = || bobs.each_ref().map(|job| job.folder.exists());
    jobs.tidy("ann", &at_most(350_000));
    assert_eq!((ann.folder.exists(), left()), (true, [false, true, true]));
    let room = jobs.tidy("bob", &SpillSettings { per_owner: 150_000, ..at_most(1 << 20) });
    assert_eq!((ann.folder.exists(), left()), (true, [false, false, true]));
    assert!(room > 0 && room <= 50_000, "{room}");
}
