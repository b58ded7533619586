//! What holds for any output, however it is read and paged.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

use std::io::Read;

use mcpz_view::{Level, Shown, changes, errors, folded};
use proptest::collection::vec;
use proptest::prelude::*;

/// Hands out a text in pieces.
struct Pieces<'a> {
    text: &'a [u8],
    sizes: std::iter::Cycle<std::slice::Iter<'a, usize>>,
}

impl<'a> Pieces<'a> {
    fn new(text: &'a [u8], sizes: &'a [usize]) -> Self {
        Self { text, sizes: sizes.iter().cycle() }
    }
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let most = self.sizes.next().copied().unwrap_or(1).min(buffer.len());
        (&mut self.text).take(most as u64).read(buffer)
    }
}

/// Lines of a few kinds, so that there are runs of all of them.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => (0..2000u32).prop_map(|n| format!("GET /items/{n}")),
        3 => (0..2000u32).prop_map(|n| format!("  200 OK in {n} ms")),
        3 => any::<u32>().prop_map(|n| format!("{n:x} packed")),
        2 => any::<u32>().prop_map(|n| format!("{n:08x}-{:04x} /srv/{n:x}/x", n >> 16)),
        1 => (0..5u32).prop_map(|n| format!("error {n}: cannot open it")),
        1 => "[a-z]{1,3}".prop_map(|name| format!("warning: /srv/{name} is gone")),
        1 => "[a-z]{1,3}".prop_map(|name| format!("writing /srv/data/{name}")),
        1 => Just("writing /srv/data/failure".to_owned()),
        1 => "[ ]{0,2}",
        1 => "[a-z ]{0,90}",
        1 => vec("[a-z]{0,3}[0-9]{1,2}%|error", 1..20).prop_map(|states| states.join("\r")),
    ]
}

/// Runs of lines of one kind, or two that alternate.
fn output() -> impl Strategy<Value = String> {
    let run = prop_oneof![
        vec(line(), 1..4),
        (line(), 1..40usize).prop_map(|(line, times)| {
            let digits =
                |n: usize| line.replace(|c: char| c.is_ascii_digit(), &(n % 10).to_string());
            (0..times).map(digits).collect()
        }),
        (line(), line(), 1..20usize).prop_map(|(a, b, times)| vec![vec![a, b]; times].concat()),
    ];
    (vec(run, 0..8), any::<bool>())
        .prop_map(|(runs, ended)| runs.concat().join("\n") + if ended { "\n" } else { "" })
}

/// How many lines a note of folded text stands for.
fn hidden(line: &str) -> Option<usize> {
    let (count, rest) = line.strip_prefix("… ")?.split_once(' ')?;
    rest.starts_with("more ").then(|| count.parse().unwrap())
}

fn without_numbers(line: &str) -> String {
    let digits = |c: char| c.is_ascii_hexdigit() && !c.is_ascii_uppercase();
    line.split(digits).filter(|part| !part.is_empty()).collect()
}

/// Compares folded text with what it stands for, line by line.
fn check(shown: &Shown, raw: &str) {
    assert_eq!(shown.consumed as usize, raw.len());
    assert_eq!(shown.lines as usize, raw.lines().count());
    assert!(shown.text.len() <= raw.len(), "longer:\n{}\n{raw}", shown.text);
    let text: Vec<_> = shown.text.split_terminator('\n').collect();
    let is_cut = |line: &&&str| hidden(line).is_none() && line.contains('…');
    if text.iter().filter(is_cut).count() == 0 {
        let notes: usize =
            text.iter().filter(|it| hidden(it).is_some()).map(|it| it.len() + 1).sum();
        let literal = shown.text.len() - notes;
        assert_eq!(raw.len() - shown.omitted_bytes as usize, literal, "{}", shown.text);
    }
    let raw: Vec<_> = raw.split_terminator('\n').collect();
    let (mut at, mut literal) = (0, 0);
    for (index, line) in text.iter().enumerate() {
        let Some(hidden) = hidden(line) else {
            literal += u64::from(raw[at] == *line);
            let last_state = line.split(" … ").next().unwrap().split('…').next().unwrap();
            assert!(
                raw[at] == *line || line.contains(" … ") || raw[at].starts_with(last_state),
                "{line}"
            );
            assert_eq!(raw[at].contains("error"), line.contains("error"));
            at += 1;
            continue;
        };
        for line in &raw[at..at + hidden] {
            let is_trouble = ["error", "warning", "fail"].iter().any(|word| line.contains(word));
            let near = &text[index.saturating_sub(3)..(index + 4).min(text.len())];
            let last = line.rsplit('\r').next().unwrap();
            let is_like = |it: &&str| without_numbers(it).contains(&without_numbers(last));
            assert!(!is_trouble || near.iter().any(is_like), "{line} is lost in\n{}", shown.text);
        }
        at += hidden;
    }
    assert_eq!(at, raw.len(), "{}", shown.text);
    assert_eq!(shown.lines - shown.omitted, literal, "{}", shown.text);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn folded_text_is_never_longer_and_its_counts_are_exact(output in output()) {
        check(&folded(output.as_bytes(), usize::MAX).unwrap(), &output);
    }

    #[test]
    fn pages_of_folded_text_join_to_the_whole(output in output(), room in 0..600usize) {
        let mut rest = output.as_str();
        while !rest.is_empty() {
            let shown = folded(rest.as_bytes(), room).unwrap();
            prop_assert!(shown.consumed > 0);
            prop_assert!(shown.text.len() <= room.max(81), "{} {}", room, shown.text);
            let (page, next) = rest.split_at(shown.consumed as usize);
            check(&shown, page);
            rest = next;
        }
    }

    #[test]
    fn pages_of_errors_join_to_the_whole(output in output(), room in 0..600usize) {
        let (mut rest, mut number) = (output.as_str(), 1);
        while !rest.is_empty() {
            let shown = errors(rest.as_bytes(), number, Level::Warning, room).unwrap();
            prop_assert!(shown.consumed > 0 && shown.lines > 0);
            let (page, next) = rest.split_at(shown.consumed as usize);
            prop_assert_eq!(shown.lines as usize, page.lines().count());
            let lines = shown.text.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
            let literal = lines.filter(|line| !line.contains('…')).count();
            prop_assert_eq!((shown.lines - shown.omitted) as usize, literal);
            rest = next;
            number += shown.lines;
        }
    }

    #[test]
    fn any_bytes_in_any_pieces_give_the_same(
        output in vec(prop_oneof![any::<u8>(), Just(b'\n'), Just(b'\r'), Just(b'7'), Just(b'/')], 0..2000),
        other in vec(prop_oneof![any::<u8>(), Just(b'\n')], 0..500),
        sizes in vec(1..50usize, 1..5),
        room in 0..3000usize,
    ) {
        let in_pieces = || Pieces::new(&output, &sizes);
        prop_assert_eq!(folded(in_pieces(), room).unwrap(), folded(&*output, room).unwrap());
        prop_assert_eq!(errors(in_pieces(), 1, Level::Warning, room).unwrap(), errors(&*output, 1, Level::Warning, room).unwrap());
        let changed = changes(in_pieces(), &*other, room).unwrap();
        prop_assert_eq!(changed, changes(&*output, &*other, room).unwrap());
    }

    #[test]
    fn long_lines_in_any_pieces_give_the_same(
        lines in vec((0..80_000usize, "[a-z\r]{1,9}"), 1..5),
        sizes in vec(1..60_000usize, 1..5),
    ) {
        let output = lines.iter().map(|(len, unit)| unit.repeat(len / unit.len()) + "\n").collect::<String>();
        let in_pieces = folded(Pieces::new(output.as_bytes(), &sizes), usize::MAX).unwrap();
        prop_assert_eq!(&in_pieces, &folded(output.as_bytes(), usize::MAX).unwrap());
        prop_assert_eq!(in_pieces.consumed as usize, output.len());
        prop_assert!(in_pieces.text.len() <= output.len());
    }

    #[test]
    fn changes_lead_from_one_output_to_the_other(a in output(), b in output()) {
        let changed = changes(a.as_bytes(), b.as_bytes(), usize::MAX).unwrap();
        prop_assert_eq!(changed.shown.consumed as usize, b.len());
        prop_assert_eq!(changed.consumed_before as usize, a.len());
        let signs = |sign: char| changed.shown.text.lines().filter(|line| line.starts_with(sign)).count();
        let same = |line: &str| line.strip_prefix("… ")?.split(' ').next()?.parse::<usize>().ok();
        let hidden: usize = changed.shown.text.lines().filter_map(same).sum();
        if changed.any {
            let same = signs(' ') + signs('~') + hidden;
            prop_assert_eq!(signs('-') + same, a.lines().count());
            prop_assert_eq!(signs('+') + same, b.lines().count());
        }
    }

    #[test]
    fn pages_of_changes_join_to_the_whole(a in output(), b in output(), room in 0..600usize) {
        let (mut before, mut after) = (a.as_str(), b.as_str());
        while !before.is_empty() || !after.is_empty() {
            let changed = changes(before.as_bytes(), after.as_bytes(), room).unwrap();
            prop_assert!(changed.shown.consumed + changed.consumed_before > 0);
            before = &before[changed.consumed_before as usize..];
            after = &after[changed.shown.consumed as usize..];
        }
    }
}
