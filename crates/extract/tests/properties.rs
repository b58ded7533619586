//! Whatever an output holds, nothing panics, answers fit, and nothing is green that cannot be.

#[path = "recorded/mod.rs"]
mod recorded;

use mcpz_extract::{Hint, Kind, extract};
use proptest::prelude::*;
use recorded::{all, shown};

const KINDS: [Kind; 4] = [Kind::Tests, Kind::Diagnostics, Kind::Table, Kind::Json];

/// Lines of all recorded outputs, to be mixed.
fn lines() -> Vec<Vec<u8>> {
    let all = all().into_iter().flat_map(|output| [output.stdout, output.stderr].concat());
    all.collect::<Vec<u8>>().split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..2000), room in 100_usize..3000) {
        for kind in KINDS {
            let hint = Hint { command: None, exit_code: Some(0), ended: true };
            if let Ok(found) = extract(kind, [&bytes[..]], &hint, room).unwrap() {
                prop_assert!(found.value.to_string().len() <= room);
            }
        }
    }

    #[test]
    fn mixed_lines_of_real_tools_are_never_green_after_a_failed_exit(
        picks in prop::collection::vec(any::<prop::sample::Index>(), 0..60),
        code in prop_oneof![Just(Some(1)), Just(Some(101)), Just(None)],
    ) {
        let lines = lines();
        let text: Vec<u8> = picks.iter().map(|pick| pick.get(&lines).clone()).collect::<Vec<_>>().join(&b'\n');
        for kind in KINDS {
            let hint = Hint { command: None, exit_code: code, ended: true };
            let Ok(found) = extract(kind, [&text[..]], &hint, 2000).unwrap() else { continue };
            prop_assert!(found.value.to_string().len() <= 2000);
            prop_assert!(kind != Kind::Tests || found.value["complete"] != true || found.value["failed"] != 0);
        }
    }
}

/// The same, as terminals and other systems have it.
#[test]
fn colours_and_line_ends_change_nothing() {
    for mut output in all().into_iter().filter(|output| output.kind != Kind::Table) {
        let plain = shown(&output.extract());
        for bytes in [&mut output.stdout, &mut output.stderr] {
            let lines = bytes.strip_suffix(b"\n").map(|text| text.split(|byte| *byte == b'\n'));
            let coloured = lines
                .into_iter()
                .flatten()
                .flat_map(|line| [b"\x1b[1;32m", line, b"\x1b[0m\r\n"].concat());
            *bytes = coloured.collect();
        }
        let coloured = shown(&output.extract());
        assert_eq!(coloured["value"], plain["value"], "{:?}", output.path);
    }
}

#[test]
fn both_outputs_in_one_have_the_same_counts() {
    for output in all().into_iter().filter(|output| output.kind == Kind::Tests) {
        let merged = [output.stderr.as_slice(), &output.stdout].concat();
        let found = extract(Kind::Tests, [&merged[..]], &output.hint(), recorded::ROOM).unwrap();
        for count in ["passed", "failed", "skipped", "complete"] {
            assert_eq!(
                shown(&found)["value"][count],
                shown(&output.extract())["value"][count],
                "{:?}",
                output.path
            );
        }
    }
}
