use super::*;
use crate::outcome::{End, Usage};

fn add(shelf: &Shelf, estate: &str, number: usize, printed: usize) -> Standing {
    let run = format!("{estate}{number:04}");
    let folder = shelf.add(&run).unwrap();
    let card = Card {
        run,
        estate: estate.to_owned(),
        owner: estate.to_owned(),
        command: "true".to_owned(),
        started_at: SystemTime::UNIX_EPOCH + Duration::from_secs(number as u64),
        input: None,
        recorder: 1,
        server: None,
    };
    fs::write(folder.join(OUTPUT), vec![b'x'; printed]).unwrap();
    Standing::begin(folder, card).unwrap()
}

fn end(standing: &Standing) {
    let outcome = Ok((End::Exited(0), Usage::default()));
    let (survivors, refused) = (Vec::new(), Vec::new());
    let (took, lost, limit) = (Duration::from_secs(1), 0, None);
    let ending =
        Ending { pid: None, outcome, limit, stopped: false, took, survivors, lost, refused };
    standing.end(&ending).unwrap();
    assert_eq!(standing.ending().unwrap(), ending);
}

fn at_most(total: u64) -> SpillSettings {
    SpillSettings { per_owner: total, total, ..SpillSettings::new("") }
}

#[test]
fn of_each_owners_jobs_the_newest_are_kept_whoever_has_the_oldest() {
    let folder = tempfile::tempdir().unwrap();
    let shelf = Shelf::new(folder.path());
    end(&add(&shelf, "ann", 0, 0));
    (1..=MAX_ENDED + 5).for_each(|number| end(&add(&shelf, "bob", number, 0)));
    shelf.tidy("ann", &at_most(u64::MAX));
    let left: Vec<_> = shelf.jobs().into_iter().map(|job| job.card.run).collect();
    assert_eq!(left.len(), 1 + MAX_ENDED);
    assert!(left.contains(&"ann0000".to_owned()) && !left.contains(&"bob0005".to_owned()));
}

#[test]
fn what_has_ended_makes_room_oldest_first_and_a_killed_recorder_counts() {
    let folder = tempfile::tempdir().unwrap();
    let shelf = Shelf::new(folder.path());
    let old = add(&shelf, "ann", 1, 100_000);
    // Nobody sits at its desk, and it has no end.
    fs::remove_file(old.folder.join(UNENDED)).unwrap();
    drop(std::os::unix::net::UnixListener::bind(old.folder.join("desk")).unwrap());
    let new = add(&shelf, "ann", 2, 100_000);
    end(&new);
    let room = shelf.tidy("ann", &at_most(250_000));
    assert!(room > 0 && old.folder.exists() && new.folder.exists());
    shelf.tidy("ann", &at_most(150_000));
    assert!(!old.folder.exists() && new.folder.exists());
}

#[test]
fn room_for_the_newest_output_is_reserved_and_given_back() {
    let folder = tempfile::tempdir().unwrap();
    let shelf = Shelf::new(folder.path());
    let [kept, unneeded, killed] = [1, 2, 3].map(|number| add(&shelf, "ann", number, 0));
    let reserved = |job: &Standing| fs::metadata(job.folder.join(UNKEPT)).is_ok();
    let blocks = fs::metadata(kept.folder.join(UNKEPT)).unwrap().blocks();
    assert!(blocks * 512 >= NEWEST_KEPT as u64, "{blocks}");
    kept.keep_newest(b"newest").unwrap();
    assert_eq!(kept.newest().unwrap(), b"newest");
    unneeded.keep_newest(b"").unwrap();
    assert_eq!(unneeded.newest().unwrap(), b"");
    drop(std::os::unix::net::UnixListener::bind(killed.folder.join("desk")).unwrap());
    assert!(reserved(&killed) && killed.newest().unwrap().is_empty());
    shelf.tidy("ann", &at_most(u64::MAX));
    assert!(![&kept, &unneeded, &killed].into_iter().any(reserved));
}

#[test]
fn own_jobs_are_found_as_they_come_and_go_without_a_look_at_those_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let shelf = Shelf::new(folder.path());
    let own = |estate| {
        let jobs = shelf.jobs_of(estate).into_iter();
        jobs.map(|job| job.card.run).collect::<Vec<_>>()
    };
    let first = add(&shelf, "ann", 1, 0);
    let strangers = add(&shelf, "bob", 1, 0);
    assert_eq!(own("ann"), ["ann0001"]);
    // One that has not begun, and begins.
    let unbegun = shelf.add("ann0002").unwrap();
    assert_eq!(own("ann"), ["ann0001"]);
    fs::remove_dir_all(&unbegun).unwrap();
    add(&shelf, "ann", 2, 0);
    assert_eq!(own("ann"), ["ann0001", "ann0002"]);
    std::thread::sleep(2 * COARSE);
    assert_eq!(own("bob"), ["bob0001"]);
    // Nobody reads it again.
    fs::write(strangers.folder.join(CARD), "nonsense").unwrap();
    assert_eq!(own("ann"), ["ann0001", "ann0002"]);
    first.remove();
    assert_eq!(own("ann"), ["ann0002"]);
}

#[test]
fn whoever_has_the_most_makes_room_and_nobody_for_who_has_too_much() {
    let folder = tempfile::tempdir().unwrap();
    let shelf = Shelf::new(folder.path());
    let ann = add(&shelf, "ann", 1, 100_000);
    end(&ann);
    let bobs = [2, 3, 4].map(|number| add(&shelf, "bob", number, 100_000));
    bobs.iter().for_each(end);
    let left = || bobs.each_ref().map(|job| job.folder.exists());
    shelf.tidy("ann", &at_most(350_000));
    assert_eq!((ann.folder.exists(), left()), (true, [false, true, true]));
    let room = shelf.tidy("bob", &SpillSettings { per_owner: 150_000, ..at_most(1 << 20) });
    assert_eq!((ann.folder.exists(), left()), (true, [false, false, true]));
    assert!(room > 0 && room <= 50_000, "{room}");
}
