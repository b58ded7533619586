//! What is shown of the difference between two outputs.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

use mcpz_view::{Changes, Shown, changes, changes_so_far};

const PLENTY: usize = 1 << 20;

fn compare(before: &str, after: &str) -> String {
    changes(before.as_bytes(), after.as_bytes(), PLENTY).unwrap().shown.text
}

fn numbered(lines: impl Iterator<Item = u32>) -> String {
    lines.map(|n| format!("this is the line with the number {n}\n")).collect()
}

#[test]
fn lines_that_are_gone_and_new_are_shown_with_two_around_them() {
    let before = numbered(1..=20);
    let after = before.replace("number 10\n", "number ten\n");
    let changed = changes(before.as_bytes(), after.as_bytes(), PLENTY).unwrap();
    let expected = "… 7 lines the same …
 this is the line with the number 8
 this is the line with the number 9
-this is the line with the number 10
+this is the line with the number ten
 this is the line with the number 11
 this is the line with the number 12
… 8 lines the same …
";
    assert_eq!(changed.shown.text, expected);
    assert_eq!(changed.consumed_before, before.len() as u64);
    assert_eq!(
        (changed.shown.consumed, changed.shown.lines, changed.shown.omitted),
        (after.len() as u64, 20, 15)
    );
}

#[test]
fn outputs_that_are_the_same_take_one_line() {
    let text = numbered(1..=20);
    let changed = changes(text.as_bytes(), text.as_bytes(), PLENTY).unwrap();
    let consumed = text.len() as u64;
    let text = "no changes in 20 lines\n".to_owned();
    let shown = Shown { text, consumed, lines: 20, omitted: 20, omitted_bytes: consumed };
    assert_eq!(changed, Changes { shown, consumed_before: consumed, any: false });
}

#[test]
fn times_durations_and_addresses_are_no_changes() {
    let before = "2026-11-18T12:00:01.123Z start\nNov  8 09:00:00 host x\ntook 1.5s\nran for 20 ms\nat 0x7ffe1234\n\
                  [    1.234567] usb\nreal\t1m2.5s\n18/Nov/2026:12:00:01 +0000 GET\nWed Nov 18 13:26:15 UTC\n";
    let after = "2026-12-01T23:59:59.9Z start\nDec 24 19:12:13 host x\ntook 350ms\nran for 3 seconds\nat 0x55d0aabb\n\
                 [  123.000001] usb\nreal\t0m0.1s\n19/Dec/2026:01:02:03 +0000 GET\nThu Dec 17 03:06:15 UTC\n";
    assert_eq!(
        compare(before, after),
        "no changes in 9 lines; 9 differ only in times or addresses\n"
    );
}

#[test]
fn other_numbers_are_changes() {
    assert_eq!(
        compare("3 passed in 1.2s\n", "4 passed in 1.3s\n"),
        "-3 passed in 1.2s\n+4 passed in 1.3s\n"
    );
    assert_eq!(compare("v1.2.3\n", "v1.2.4\n"), "-v1.2.3\n+v1.2.4\n");
    assert_eq!(compare("5 mice\n", "6 mice\n"), "-5 mice\n+6 mice\n");
    assert_eq!(compare("abc1234\n", "abc1235\n"), "-abc1234\n+abc1235\n");
}

#[test]
fn lines_that_differ_in_times_are_counted_where_they_are() {
    let log = |minute: u32, last: &str| {
        (10..20).map(|second| format!("12:{minute}:{second} a step was done\n")).collect::<String>()
            + last
    };
    let expected = "… 8 lines the same (8 differ in times or addresses) …
~12:31:18 a step was done
~12:31:19 a step was done
-good
+bad
";
    assert_eq!(compare(&log(30, "good\n"), &log(31, "bad\n")), expected);
}

#[test]
fn a_missing_end_of_line_joins_no_lines() {
    assert_eq!(compare("a\nb", "a\nc"), " a\n-b\n+c\n");
}

#[test]
fn everything_new_is_added() {
    assert_eq!(compare("", "a\nb\n"), "+a\n+b\n");
    assert_eq!(compare("a\n", ""), "-a\n");
}

#[test]
fn two_empty_outputs_are_the_same() {
    assert_eq!(compare("", ""), "no changes in 0 lines\n");
}

#[test]
fn a_page_ends_where_the_next_can_begin() {
    let before = numbered(1..=400);
    let after = before.replace("5\n", "five\n");
    let (mut at_before, mut at_after, mut changed, mut pages) = (0, 0, 0, 0);
    while at_before < before.len() || at_after < after.len() {
        let page =
            changes(&before.as_bytes()[at_before..], &after.as_bytes()[at_after..], 1000).unwrap();
        assert!(page.shown.text.len() <= 1000);
        at_before += page.consumed_before as usize;
        at_after += page.shown.consumed as usize;
        changed += page.shown.text.lines().filter(|line| line.starts_with('+')).count();
        pages += 1;
    }
    assert_eq!((changed, pages > 5), (40, true));
}

#[test]
fn outputs_longer_than_what_is_compared_at_once_are_compared() {
    let before = numbered(0..60_000);
    let after = numbered((0..60_000).filter(|n| n % 10_000 != 5_000));
    let text = compare(&before, &after);
    let gone: Vec<_> = text.lines().filter(|line| line.starts_with(['-', '+'])).collect();
    let expected =
        (0..6).map(|n| format!("-this is the line with the number {}", n * 10_000 + 5_000));
    assert_eq!(gone, expected.collect::<Vec<_>>());
}

#[test]
fn long_outputs_with_nothing_in_common_end_with_the_room() {
    let changed =
        changes(numbered(0..50_000).as_bytes(), numbered(50_000..99_000).as_bytes(), 2000).unwrap();
    assert!(changed.shown.text.len() <= 2000 && changed.consumed_before > 1500, "{changed:?}");
}

#[test]
fn lines_that_differ_only_after_what_is_held_are_different() {
    let line = |last: char| "x".repeat(100_000) + &last.to_string() + "\n";
    assert!(changes(line('a').as_bytes(), line('b').as_bytes(), PLENTY).unwrap().any);
    assert!(!changes(line('a').as_bytes(), line('a').as_bytes(), PLENTY).unwrap().any);
}

#[test]
fn what_an_output_that_grows_has_not_yet_is_not_gone() {
    let before = numbered(1..=20_030);
    let grown = |last: u32| numbered(1..=last).replace("number 3\n", "number three\n");
    let so_far = |after: &str| {
        let changed = changes_so_far(before.as_bytes(), after.as_bytes(), PLENTY).unwrap();
        let signs = changed.shown.text.lines().filter(|line| line.starts_with(['-', '+']));
        (signs.map(str::to_owned).collect::<Vec<_>>(), changed.shown.consumed == after.len() as u64)
    };
    let third = ["-this is the line with the number 3", "+this is the line with the number three"];
    for last in [10, 20_020] {
        assert_eq!(so_far(&grown(last)), (third.map(str::to_owned).to_vec(), true));
    }
    assert_eq!(so_far("").0, Vec::<String>::new());
    assert_eq!(so_far("new\n").0, ["+new"]);
}
