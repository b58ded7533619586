use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::stream_buffer::TAIL;
use super::*;
use crate::digest;
use crate::room::{Measure, Room};
use crate::spill::HEAD;
use crate::spill::{Spill, SpillSettings};

const BOTH: [Stream; 2] = [Stream::Stdout, Stream::Stderr];

const ROOM: Room = Room { size: 24_000, measure: Measure::QuotedTwice };

fn output_in(parent: &Path, per_run: u64) -> Output {
    let settings = SpillSettings { per_run, ..SpillSettings::new(parent) };
    Output::new(Arc::new(Spill::new(settings)).account().quota(None))
}

/// The only file below the folder.
fn spilled(folder: &Path) -> PathBuf {
    let private = std::fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    std::fs::read_dir(private).unwrap().next().unwrap().unwrap().path()
}

fn numbered(count: usize) -> Vec<u8> {
    (0..count).flat_map(|n| format!("{n:09}\n").into_bytes()).collect()
}

#[test]
fn a_short_output_is_excerpted_whole_and_needs_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let output = output_in(folder.path(), 1 << 20);
    output.append(Stream::Stderr, b"two\n");
    output.append(Stream::Stdout, b"one\n");
    let excerpts = digest::excerpts(&output, &BOTH, ROOM, false);
    assert_eq!((&*excerpts.stdout.text, &*excerpts.stderr.text), ("one\n", "two\n"));
    assert_eq!(excerpts.omitted(), 0);
    assert!(output.is_in_memory(TAIL));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn bytes_beyond_memory_are_in_a_private_file_that_is_dropped_with_the_output() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let output = output_in(folder.path(), 1 << 30);
    let bytes = numbered(100_000);
    for piece in bytes.chunks(70_001) {
        output.append(Stream::Stdout, piece);
    }
    let file = spilled(folder.path());
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(file.parent().unwrap()), mode(&file)), (0o700, 0o600));
    assert_eq!(std::fs::read(&file).unwrap(), bytes[HEAD..]);
    assert_eq!((output.length(), output.lost()), (1_000_000, 0));
    drop(output);
    assert!(!file.parent().unwrap().exists());
}

#[test]
fn beyond_the_quota_bytes_are_counted_and_the_end_is_still_shown() {
    let folder = tempfile::tempdir().unwrap();
    let output = output_in(folder.path(), 100_000);
    let bytes = numbered(100_000);
    output.append(Stream::Stdout, &bytes);
    output.append(Stream::Stdout, b"the end\n");
    assert_eq!(output.length(), 1_000_008);
    assert_eq!(output.lost(), 1_000_008 - HEAD as u64 - 100_000 - (64 << 10));
    assert_eq!(std::fs::read(spilled(folder.path())).unwrap(), bytes[HEAD..HEAD + 100_000]);
    assert!(output.why_lost().unwrap().contains("`spill_per_run`"));
    let excerpt = digest::excerpts(&output, &BOTH, ROOM, false).stdout;
    assert!(excerpt.text.ends_with("000099999\nthe end\n"));
}

#[test]
fn what_is_lost_to_others_is_not_called_too_much_of_one() {
    let folder = tempfile::tempdir().unwrap();
    let settings = SpillSettings { total: 100_000, ..SpillSettings::new(folder.path()) };
    let spill = Arc::new(Spill::new(settings));
    let outputs = [(); 2].map(|()| Output::new(spill.account().quota(None)));
    outputs[0].append(Stream::Stdout, &numbered(16_000));
    assert_eq!(outputs[0].why_lost(), None);
    outputs[1].append(Stream::Stdout, &numbered(100_000));
    let why = outputs[1].why_lost().unwrap();
    assert!(why.contains("`spill_total`"), "{why}");
}

#[test]
fn without_a_folder_to_write_to_bytes_are_counted_as_lost() {
    let output = output_in("/dev/null/nowhere".as_ref(), 1 << 30);
    output.append(Stream::Stdout, &numbered(20_000));
    assert_eq!(output.lost(), 200_000 - 2 * HEAD as u64);
    let why = output.why_lost().unwrap();
    assert!(why.contains("/dev/null/nowhere") && why.contains("Not a directory"), "{why}");
}

#[test]
fn the_newest_bytes_can_be_read_although_they_were_not_kept() {
    let output = output_in("/dev/null/nowhere".as_ref(), 1 << 30);
    let bytes = numbered(100_000);
    for piece in bytes.chunks(70_001) {
        output.append(Stream::Stdout, piece);
    }
    assert_eq!(output.read_at(Stream::Stdout, 0, usize::MAX).unwrap(), bytes[..HEAD]);
    let newest = output.read_next(Stream::Stdout, HEAD as u64, usize::MAX).unwrap();
    assert_eq!((newest.at, newest.kept), (1_000_000 - (64 << 10), false));
    assert_eq!(newest.bytes, bytes[newest.at as usize..]);
    assert_eq!(output.read_at(Stream::Stdout, 999_990, 99).unwrap(), b"000099999\n");
    assert_eq!(output.lost(), newest.at - HEAD as u64);
}

#[test]
fn nothing_is_lost_while_memory_has_everything_beyond_the_cut() {
    let output = output_in("/dev/null/nowhere".as_ref(), 1 << 30);
    let bytes = numbered(7_000);
    output.append(Stream::Stdout, &bytes[..10]);
    output.append(Stream::Stdout, &bytes[10..]);
    assert_eq!((output.lost(), output.why_lost()), (0, None));
    assert_eq!(output.read_at(Stream::Stdout, 0, usize::MAX).unwrap(), bytes);
}

#[test]
fn the_last_lines_are_in_order_of_arrival() {
    let folder = tempfile::tempdir().unwrap();
    let output = output_in(folder.path(), 1 << 20);
    for (stream, bytes) in [
        (Stream::Stdout, "ab"),
        (Stream::Stdout, "c"),
        (Stream::Stderr, "d"),
        (Stream::Stdout, "e"),
    ] {
        output.append(stream, bytes.as_bytes());
    }
    assert_eq!(output.last_lines(&[Stream::Stdout, Stream::Stderr]), "abcde");
    assert_eq!(output.last_lines(&[Stream::Stdout]), "abce");
}

#[test]
fn two_long_streams_share_the_room_and_a_short_one_leaves_it_to_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let output = output_in(folder.path(), 1 << 30);
    output.append(Stream::Stdout, &numbered(100_000));
    output.append(Stream::Stderr, b"one line\n");
    let excerpts = digest::excerpts(&output, &BOTH, ROOM, false);
    assert_eq!(excerpts.stderr.text, "one line\n");
    assert!(ROOM.measure.of(&excerpts.stdout.text) > ROOM.size * 7 / 10);
    output.append(Stream::Stderr, &numbered(100_000));
    let excerpts = digest::excerpts(&output, &BOTH, ROOM, false);
    for excerpt in [excerpts.stdout, excerpts.stderr] {
        assert!(excerpt.text.ends_with("000099999\n"));
        assert!(ROOM.measure.of(&excerpt.text) > ROOM.size * 3 / 10);
    }
}

#[test]
fn an_excerpt_reads_from_the_file_what_memory_does_not_hold() {
    let folder = tempfile::tempdir().unwrap();
    let output = output_in(folder.path(), 1 << 30);
    output.append(Stream::Stdout, &numbered(100_000));
    assert!(!output.is_in_memory(TAIL) && !output.is_in_memory(300_000));
    let text = digest::excerpts(&output, &BOTH, Room::bytes(300_000), false).stdout.text;
    assert!(text.len() > 224_000 && text.contains("000006990\n"), "{}", text.len());
}

proptest! {
    #[test]
    fn an_excerpt_says_how_much_it_left_out(
        stdout in 0_usize..5000, stderr in 0_usize..5000
    ) {
        let folder = tempfile::tempdir().unwrap();
        let output = output_in(folder.path(), 1 << 30);
        output.append(Stream::Stdout, &numbered(stdout));
        output.append(Stream::Stderr, &numbered(stderr));
        let excerpts = digest::excerpts(&output, &BOTH, ROOM, false);
        let text = excerpts.stdout.text.clone() + &excerpts.stderr.text;
        let shown = text.lines().filter(|line| !line.starts_with(['[', '…'])).count();
        prop_assert_eq!(shown as u64 * 10 + excerpts.omitted(), (stdout + stderr) as u64 * 10);
        prop_assert!(ROOM.fits(&text));
    }
}
