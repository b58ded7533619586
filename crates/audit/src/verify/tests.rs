//! Each test writes a trail, tampers with it, and verifies it.

use std::fs::{self, OpenOptions};
use std::io::Write;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::line::JOINED;
use crate::trail::Trail;
use crate::{AuditSettings, AuditTail, audit_lines};

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn small(folder: &TempDir, keep: u64) -> Trail {
    let settings = AuditSettings::new(folder.path());
    Trail::new(AuditSettings { max_size: 4 << 10, keep, ..settings })
}

fn write(trail: &mut Trail, count: usize) {
    for number in 0..count {
        trail.add(&json!({"event": "test", "number": number})).unwrap();
        trail.flush().unwrap();
    }
}

/// Edits the lines of a file, as anybody with write access could.
fn edit(path: &Path, change: impl FnOnce(&mut Vec<String>)) {
    let text = fs::read_to_string(path).unwrap();
    let mut lines = text.lines().map(str::to_owned).collect();
    change(&mut lines);
    fs::write(path, lines.join("\n") + "\n").unwrap();
}

/// The faults in a trail of ten records after an edit.
fn found_after(change: impl FnOnce(&mut Vec<String>)) -> Vec<(Option<u64>, Defect)> {
    let folder = folder();
    write(&mut small(&folder, 9), 10);
    edit(&files::current(folder.path()), change);
    faults(&folder)
}

fn faults(folder: &TempDir) -> Vec<(Option<u64>, Defect)> {
    let found = verify(folder.path()).unwrap();
    found.faults.into_iter().map(|fault| (fault.line, fault.defect)).collect()
}

#[test]
fn an_unchanged_trail_has_no_faults() {
    assert_eq!(found_after(|_| ()), []);
}

#[test]
fn each_change_is_found_where_it_was_made() {
    let changed = found_after(|lines| lines[4] = lines[4].replace(":4,", ":5,"));
    assert_eq!(changed, [(Some(5), Defect::Changed)]);
    let removed = found_after(|lines| drop(lines.drain(2..5)));
    assert_eq!(removed, [(Some(3), Defect::Missing { from: 3, to: 5 })]);
    let first = found_after(|lines| drop(lines.remove(0)));
    assert_eq!(first, [(Some(1), Defect::Missing { from: 1, to: 1 })]);
    let last = found_after(|lines| drop(lines.pop()));
    assert_eq!(last, [(None, Defect::MissingAtEnd { from: 10, to: 10 })]);
    let all = found_after(Vec::clear);
    assert!(all.contains(&(None, Defect::MissingAtEnd { from: 1, to: 10 })), "{all:?}");
    let swapped = found_after(|lines| lines.swap(5, 6));
    let missing = Defect::Missing { from: 6, to: 6 };
    assert_eq!(swapped, [(Some(6), missing), (Some(7), Defect::OutOfOrder { seq: 6 })]);
    let doubled = found_after(|lines| lines.insert(7, lines[6].clone()));
    assert_eq!(doubled, [(Some(8), Defect::OutOfOrder { seq: 7 })]);
    let added = found_after(|lines| lines.insert(1, "{}".to_owned()));
    assert_eq!(added, [(Some(2), Defect::NotARecord)]);
    let endless = found_after(|lines| lines.insert(1, "x".repeat(2 * MAX_LINE)));
    assert_eq!(endless, [(Some(2), Defect::NotARecord)]);
}

#[test]
fn a_record_of_another_trail_is_not_linked() {
    let (one, other) = (folder(), folder());
    write(&mut small(&one, 9), 5);
    fs::copy(Key::path(one.path()), Key::path(other.path())).unwrap();
    small(&other, 9).add(&json!({"event": "other"})).unwrap();
    write(&mut small(&other, 9), 5);
    let foreign = fs::read_to_string(files::current(other.path())).unwrap();
    let foreign = foreign.lines().nth(2).unwrap().to_owned();
    edit(&files::current(one.path()), |lines| lines[2] = foreign);
    let unlinked = Defect::Unlinked;
    assert_eq!(faults(&one), [(Some(3), unlinked), (Some(4), unlinked)]);
}

#[test]
fn removed_records_stay_missing_when_others_write() {
    let folder = folder();
    write(&mut small(&folder, 9), 10);
    edit(&files::current(folder.path()), |lines| lines.truncate(7));
    write(&mut small(&folder, 9), 5);
    let missing = Defect::Missing { from: 8, to: 10 };
    assert_eq!(faults(&folder), [(Some(8), missing)]);
}

#[test]
fn a_writer_that_remembers_the_chain_is_not_fooled_by_a_cut() {
    let folder = folder();
    let mut trail = small(&folder, 9);
    write(&mut trail, 10);
    let head = fs::read(folder.path().join(HEAD_FILE)).unwrap();
    write(&mut trail, 2);
    // Replace both, so that they match: an old head is genuine, too.
    edit(&files::current(folder.path()), |lines| lines.truncate(10));
    fs::write(folder.path().join(HEAD_FILE), head).unwrap();
    write(&mut trail, 1);
    assert_eq!(faults(&folder), [(Some(11), Defect::Missing { from: 11, to: 12 })]);
}

#[test]
fn a_removed_or_changed_head_is_reported_for_good() {
    for change in ["", "00000000000000000003 00000000000000000003 "] {
        let folder = folder();
        write(&mut small(&folder, 9), 10);
        edit(&files::current(folder.path()), |lines| lines.truncate(3));
        fs::write(folder.path().join(HEAD_FILE), change.repeat(5)).unwrap();
        assert_eq!(faults(&folder), [(None, Defect::MissingHead)]);
        write(&mut small(&folder, 9), 1);
        assert_eq!(faults(&folder), [(Some(4), Defect::HeadWasMissing)]);
    }
}

#[test]
fn a_file_ahead_of_its_head_has_no_faults() {
    let folder = folder();
    let mut trail = small(&folder, 9);
    write(&mut trail, 3);
    let head = fs::read(folder.path().join(HEAD_FILE)).unwrap();
    write(&mut trail, 1);
    fs::write(folder.path().join(HEAD_FILE), head).unwrap();
    assert_eq!(faults(&folder), []);
    write(&mut small(&folder, 9), 1);
    assert_eq!(faults(&folder), []);
    assert_eq!(verify(folder.path()).unwrap().records, 5);
}

#[test]
fn a_torn_line_is_removed_and_recorded() {
    let folder = folder();
    let path = files::current(folder.path());
    let mut trail = small(&folder, 9);
    write(&mut trail, 3);
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"{\"seq\":4,\"time\":\"20").unwrap();
    let found = verify(folder.path()).unwrap();
    assert_eq!((found.records, found.torn, found.faults), (3, 1, vec![]));
    write(&mut trail, 1);
    let found = verify(folder.path()).unwrap();
    assert_eq!((found.records, found.torn, found.faults), (5, 1, vec![]));
    let text = fs::read_to_string(&path).unwrap();
    let repaired: Value = serde_json::from_str(text.lines().nth(3).unwrap()).unwrap();
    assert_eq!(repaired["event"], "repaired");
    assert_eq!(repaired["text"], "{\"seq\":4,\"time\":\"20");
    assert_eq!(repaired["bytes"], 19);
}

#[test]
fn files_are_rotated_and_the_oldest_removed() {
    let folder = folder();
    let mut trail = small(&folder, 3);
    write(&mut trail, 30);
    assert_eq!(files::numbers(folder.path()).unwrap(), [1]);
    assert_eq!(faults(&folder), []);
    write(&mut trail, 200);
    let numbers = files::numbers(folder.path()).unwrap();
    assert_eq!(numbers.len(), 3);
    let found = verify(folder.path()).unwrap();
    assert_eq!((found.files, found.faults), (4, vec![]));
    assert!(found.first > 100);
    // Rotation may remove the oldest file, but nobody else.
    fs::remove_file(files::rotated(folder.path(), numbers[0])).unwrap();
    assert_eq!(faults(&folder), [(None, Defect::MissingFile)]);
    write(&mut trail, 25);
    assert_eq!(verify(folder.path()).unwrap().faults, [], "by now it would be gone anyway");
}

#[test]
fn a_missing_or_edited_file_is_found() {
    let folder = folder();
    write(&mut small(&folder, 99), 100);
    edit(&files::rotated(folder.path(), 2), |lines| lines[3] = lines[3].replace("Z", "z"));
    let [fault] = &verify(folder.path()).unwrap().faults[..] else { panic!() };
    assert_eq!((fault.line, fault.defect), (Some(4), Defect::Changed));
    assert_eq!(fault.path, files::rotated(folder.path(), 2));
    fs::remove_file(files::rotated(folder.path(), 2)).unwrap();
    let found = faults(&folder);
    assert!(matches!(found[..], [(None, Defect::MissingFile), (Some(1), Defect::Missing { .. })]));
    fs::remove_file(files::rotated(folder.path(), 1)).unwrap();
    write(&mut small(&folder, 99), 50);
    let found = faults(&folder);
    assert_eq!(found.iter().filter(|(_, defect)| *defect == Defect::MissingFile).count(), 2);
}

#[test]
fn a_removed_trail_continues_its_numbers() {
    let folder = folder();
    let mut trail = small(&folder, 9);
    write(&mut trail, 5);
    for entry in fs::read_dir(folder.path()).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    write(&mut trail, 1);
    let found = faults(&folder);
    assert!(found.contains(&(Some(1), Defect::Missing { from: 1, to: 5 })), "{found:?}");
}

#[test]
fn a_trail_that_was_removed_without_its_key_is_reported_for_good() {
    let folder = folder();
    write(&mut small(&folder, 9), 5);
    fs::remove_file(files::current(folder.path())).unwrap();
    fs::remove_file(folder.path().join(HEAD_FILE)).unwrap();
    assert_eq!(faults(&folder), [(None, Defect::MissingTrail)]);
    write(&mut small(&folder, 9), 2);
    assert_eq!(faults(&folder), [(Some(1), Defect::TrailWasMissing)]);
    write(&mut small(&folder, 9), 2);
    assert_eq!(faults(&folder), [(Some(1), Defect::TrailWasMissing)]);
}

#[test]
fn a_trail_that_was_removed_with_its_key_begins_again() {
    let folder = folder();
    for _ in 0..2 {
        write(&mut small(&folder, 9), 5);
        assert_eq!(faults(&folder), []);
        for name in ["audit.jsonl", "audit.head", "audit.key"] {
            fs::remove_file(folder.path().join(name)).unwrap();
        }
    }
}

#[test]
fn a_process_killed_before_it_had_a_key_leaves_no_fault() {
    let folder = folder();
    write(&mut small(&folder, 9), 1);
    fs::write(files::current(folder.path()), "").unwrap();
    fs::remove_file(Key::path(folder.path())).unwrap();
    write(&mut small(&folder, 9), 5);
    assert_eq!(faults(&folder), []);
}

#[test]
fn a_key_that_was_removed_is_reported() {
    let folder = folder();
    write(&mut small(&folder, 9), 1);
    fs::remove_file(Key::path(folder.path())).unwrap();
    write(&mut small(&folder, 9), 1);
    let found = faults(&folder);
    assert!(found.contains(&(Some(1), Defect::Changed)), "{found:?}");
}

#[test]
fn many_first_writers_begin_one_trail() {
    for _ in 0..20 {
        let folder = folder();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| write(&mut small(&folder, 9), 3));
            }
        });
        write(&mut small(&folder, 9), 1);
        assert_eq!(faults(&folder), []);
        assert_eq!(verify(folder.path()).unwrap().records, 13);
    }
}

#[test]
fn a_writer_killed_during_rotation_leaves_no_fault() {
    let folder = folder();
    write(&mut small(&folder, 9), 10);
    fs::rename(files::current(folder.path()), files::rotated(folder.path(), 1)).unwrap();
    assert_eq!(faults(&folder), []);
    write(&mut small(&folder, 9), 1);
    assert_eq!(faults(&folder), []);
    assert_eq!(verify(folder.path()).unwrap().records, 12);
}

#[test]
fn several_writers_share_a_trail_that_is_followed_across_files() {
    let folder = folder();
    write(&mut small(&folder, 1000), 1);
    let (mut tail, mut seen) = AuditTail::last(folder.path(), 10).unwrap();
    std::thread::scope(|scope| {
        let add = |writer: u32| {
            let mut trail = small(&folder, 1000);
            for number in 0..250 {
                let record = json!({"event": "test", "writer": writer, "number": number});
                trail.add(&record).unwrap();
                trail.flush().unwrap();
            }
        };
        let writing: Vec<_> = (0..4).map(|writer| scope.spawn(move || add(writer))).collect();
        while writing.iter().any(|writer| !writer.is_finished()) {
            seen.extend(tail.more().unwrap());
        }
    });
    // Records that waited for a lock join the trail now.
    write(&mut small(&folder, 1000), 1);
    seen.extend(tail.more().unwrap());
    let found = verify(folder.path()).unwrap();
    assert_eq!(found.faults, []);
    assert_eq!(found.records, 1002 + found.files - 1);
    // A record that waited was returned before it joined.
    let bodies = |lines: Vec<String>| {
        let body = |line: String| {
            let body = Line::parse(line.as_bytes()).unwrap().body;
            body.strip_suffix(JOINED).unwrap_or(body).to_vec()
        };
        let mut bodies: Vec<_> = lines.into_iter().map(body).collect();
        bodies.sort_unstable();
        bodies
    };
    let all = audit_lines(folder.path()).unwrap().collect();
    assert!(bodies(seen) == bodies(all), "each is seen once");
}

#[test]
fn a_lock_that_is_never_released_stops_nobody() {
    let folder = folder();
    let mut trail = small(&folder, 9);
    write(&mut trail, 1);
    let file = Arc::new(File::open(files::current(folder.path())).unwrap());
    let lock = FileLock::acquire(file, LockMode::Exclusive, LOCK_TIMEOUT).unwrap();
    write(&mut trail, 20);
    let found = verify(folder.path()).unwrap();
    assert_eq!((found.records, found.waiting, found.faults.len()), (21, 20, 0));
    drop(lock);
    write(&mut trail, 1);
    let found = verify(folder.path()).unwrap();
    assert_eq!((found.records, found.waiting, found.faults.len()), (22, 0, 0));
}

#[test]
fn a_process_that_stops_while_it_begins_the_trail_stops_nobody() {
    let folder = folder();
    let mut trail = small(&folder, 9);
    let file = Arc::new(files::open(&files::current(folder.path()), true).unwrap());
    let lock = FileLock::acquire(file, LockMode::Exclusive, LOCK_TIMEOUT).unwrap();
    write(&mut trail, 20);
    let found = verify(folder.path()).unwrap();
    assert_eq!((found.records, found.waiting, found.faults.len()), (20, 20, 0));
    drop(lock);
    write(&mut trail, 1);
    let found = verify(folder.path()).unwrap();
    // Nothing had to be repaired.
    assert_eq!((found.records, found.waiting, found.faults.len()), (21, 0, 0));
}
