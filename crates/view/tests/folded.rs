//! What becomes of runs of alike lines.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

use mcpz_view::{Shown, folded};

const PLENTY: usize = 1 << 20;

fn fold(text: &str) -> String {
    let shown = folded(text.as_bytes(), PLENTY).unwrap();
    assert_eq!((shown.consumed, shown.lines), (text.len() as u64, text.lines().count() as u64));
    shown.text
}

/// Lines made from numbers.
fn lines(numbers: std::ops::RangeInclusive<u32>, line: impl Fn(u32) -> String) -> String {
    numbers.map(|number| line(number) + "\n").collect()
}

#[test]
fn a_run_of_alike_lines_becomes_its_first_and_last_and_a_count() {
    let log =
        lines(1..=400, |n| format!("12:00:{:02} worker {n} is done in {}.{n} s", n % 60, n % 7));
    let expected = "12:00:01 worker 1 is done in 1.1 s\n… 398 more lines like this …\n\
                    12:00:40 worker 400 is done in 1.400 s\n";
    assert_eq!(fold(&log), expected);
}

#[test]
fn short_runs_stay_where_a_note_would_be_longer() {
    let text = "item 1\nitem 2\nitem 3\nend\n";
    assert_eq!(fold(text), text);
}

#[test]
fn a_run_is_folded_as_soon_as_that_is_shorter() {
    let line = |n| format!("a line that is longer than any note about it {n}");
    assert_eq!(
        fold(&lines(1..=3, line)),
        "a line that is longer than any note about it 1\n… 1 more line like this …\n\
         a line that is longer than any note about it 3\n"
    );
}

#[test]
fn hashes_addresses_and_uuids_are_alike() {
    let ids = [
        "a3f5c9d",
        "1234567",
        "0x7ffe1234",
        "deadbeefcafe",
        "3b241101-e2bb-4255-8caf-4136c566a962",
    ];
    let [ids_a, ids_b] = [ids, ["b1", "c2", "d3", "e4", "f5"]]
        .map(|ids| ids.map(|id| format!("the object {id} was packed and then checked\n")).concat());
    assert_eq!(fold(&ids_a).lines().count(), 3);
    assert_eq!(fold(&ids_b).lines().count(), 5, "short names are not hashes");
}

#[test]
fn only_the_last_part_of_a_path_may_differ() {
    let names = ["alpha.c", "beta.c", "gamma.h", "delta.S", "epsilon.txt"];
    let same_folder =
        names.map(|name| format!("copying /usr/src/linux/{name} to the target\n")).concat();
    assert_eq!(fold(&same_folder).lines().nth(1), Some("… 3 more lines like this …"));
    let folders =
        names.map(|name| format!("copying /usr/src/{name}/Makefile to the target\n")).concat();
    assert_eq!(fold(&folders), folders);
}

#[test]
fn padded_numbers_are_alike() {
    let log =
        lines(1..=1200, |n| format!("[{:5}] step {n:>6} of the installation finished", n * 3));
    assert_eq!(fold(&log).lines().count(), 3);
}

#[test]
fn lines_that_alternate_fold_together() {
    let log = lines(1..=200, |n| format!("GET /items/{n} from client\n  200 OK after {n} ms"));
    let expected = "GET /items/1 from client\n  200 OK after 1 ms\n… 396 more lines like these …\n\
                    GET /items/200 from client\n  200 OK after 200 ms\n";
    assert_eq!(fold(&log), expected);
}

#[test]
fn three_lines_that_come_again_and_again_fold_together() {
    let log = lines(1..=50, |n| format!("begin of step {n}\n  working\nend of step {n}"));
    let expected = "begin of step 1\n  working\nend of step 1\n… 144 more lines like these …\n\
                    begin of step 50\n  working\nend of step 50\n";
    assert_eq!(fold(&log), expected);
}

#[test]
fn identical_lines_need_no_last_one() {
    assert_eq!(
        fold(&"waiting for the lock\n".repeat(40)),
        "waiting for the lock\n… 39 more identical lines …\n"
    );
}

#[test]
fn many_blank_lines_become_one_and_a_count() {
    let text = format!("a\n{}b\n", "\n  \n".repeat(30));
    assert_eq!(fold(&text), "a\n\n… 59 more blank lines …\nb\n");
    assert_eq!(fold("a\n\n\n\nb\n"), "a\n\n\n\nb\n");
}

#[test]
fn a_line_with_an_error_is_never_folded_away() {
    let line = |n| match n {
        57 => "connection 57 to /srv/data/part-57 failed".to_owned(),
        _ => format!("connection {n} to /srv/data/part-{n} is open"),
    };
    let text = fold(&lines(1..=100, line));
    assert_eq!(text.lines().count(), 7);
    assert!(text.contains(
        "… 54 more lines like this …\nconnection 56 to /srv/data/part-56 is open\nconnection 57 to"
    ));
}

#[test]
fn the_name_of_a_file_can_tell_of_an_error() {
    let names = ["a.log", "b.log", "error.log", "c.log", "d.log", "e.log", "f.log", "g.log"];
    let text = names.map(|name| format!("writing /var/log/the-application/{name}\n")).concat();
    assert!(fold(&text).contains("/error.log\n"), "{}", fold(&text));
}

#[test]
fn files_that_fail_are_all_named() {
    let text = ["one", "two", "three", "four"]
        .map(|it| format!("cannot open /srv/data/{it} for reading\n"));
    assert_eq!(fold(&text.concat()), text.concat());
}

#[test]
fn errors_that_differ_only_in_numbers_fold_with_a_count() {
    let log = lines(1..=30, |n| format!("warning: unused variable in line {n}"));
    let expected = "warning: unused variable in line 1\n… 28 more lines like this …\n\
                    warning: unused variable in line 30\n";
    assert_eq!(fold(&log), expected);
}

#[test]
fn of_a_progress_bar_the_last_state_is_kept() {
    let states: String = (0..=100).map(|percent| format!("\rdownloading {percent}%")).collect();
    assert_eq!(
        fold(&format!("{states}\ndone\n")),
        "downloading 100% … 100 earlier states …\ndone\n"
    );
}

#[test]
fn an_error_that_a_progress_bar_overwrote_is_kept() {
    let states: String = (0..=100).map(|percent| format!("\rdownloading {percent}%")).collect();
    let text = fold(&format!("fetch{states}\rerror: no route{states}\n"));
    assert_eq!(text, "error: no route\rdownloading 100% … 202 earlier states …\n");
}

#[test]
fn line_ends_of_windows_are_not_progress() {
    assert_eq!(fold("one\r\ntwo\r\n"), "one\r\ntwo\r\n");
}

#[test]
fn a_progress_bar_of_any_length_keeps_its_last_state() {
    let states: String =
        (0..=20_000).map(|file| format!("\rchecking file {file} of many")).collect();
    let text = fold(&format!("{states}\n"));
    assert_eq!(text, "checking file 20000 of many … 20000 earlier states …\n");
}

#[test]
fn a_line_longer_than_the_room_is_cut() {
    let text = format!("{}\nnext\n", "x".repeat(1000));
    let shown = folded(text.as_bytes(), 100).unwrap();
    let expected = format!("{}… 940 bytes more …\nnext\n", "x".repeat(60));
    let (consumed, lines) = (1006, 2);
    assert_eq!(shown, Shown { text: expected, consumed, lines, omitted: 1, omitted_bytes: 940 });
}

#[test]
fn a_line_is_cut_to_a_few_bytes_if_there_is_no_room() {
    let shown = folded("x".repeat(1000).as_bytes(), 0).unwrap();
    assert_eq!(shown.text, format!("{}… 960 bytes more …", "x".repeat(40)));
    assert_eq!(folded(&b"short\n"[..], 0).unwrap().text, "short\n");
}

#[test]
fn a_line_is_not_cut_where_a_note_would_be_longer() {
    let line = "x".repeat(32 * 1024 + 2);
    assert_eq!(fold(&line), line);
}

#[test]
fn a_run_whose_lines_grow_stays_within_the_room() {
    let text = lines(1..=300, |n| format!("step {}", "7".repeat(n as usize)));
    let shown = folded(text.as_bytes(), 250).unwrap();
    assert!(shown.text.len() <= 250 && shown.omitted > 50, "{shown:?}");
}

#[test]
fn a_line_of_any_length_is_not_held() {
    let line = std::io::Read::take(std::io::repeat(b'x'), 20 << 20);
    let shown = folded(line, PLENTY).unwrap();
    assert_eq!((shown.consumed, shown.lines, shown.omitted), (20 << 20, 1, 1));
    assert!(shown.text.ends_with("x… 20938752 bytes more …"), "{}", shown.text.len());
}

#[test]
fn pages_end_at_lines_and_go_on_where_they_ended() {
    let text = lines(1..=9, |n| ["one", "two", "six"].map(|it| it.repeat(n as usize)).join(" "));
    let (mut at, mut joined) = (0, String::new());
    while at < text.len() {
        let shown = folded(&text.as_bytes()[at..], 90).unwrap();
        assert!(shown.text.len() <= 90 && shown.omitted == 0, "{}", shown.text);
        at += shown.consumed as usize;
        joined += &shown.text;
    }
    assert_eq!(joined, text);
}

#[test]
fn what_is_not_utf_8_is_replaced_and_counted_as_it_is() {
    let shown = folded(&b"a\xff\xfeb\n"[..], PLENTY).unwrap();
    assert_eq!(
        shown,
        Shown {
            text: "a\u{fffd}\u{fffd}b\n".into(),
            consumed: 5,
            lines: 1,
            omitted: 0,
            omitted_bytes: 0
        }
    );
}

#[test]
fn an_empty_output_is_empty() {
    assert_eq!(folded(&b""[..], PLENTY).unwrap(), Shown::default());
}
