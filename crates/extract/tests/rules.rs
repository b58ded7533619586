//! The rules that hold for all runners and linters: what is complete, what is told, and what fits.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

use mcpz_extract::{Extracted, Hint, Kind, NotFound, extract};

fn hint(command: &str) -> Hint<'_> {
    Hint { command: Some(command), exit_code: Some(0), ended: true }
}

fn read(kind: Kind, text: &str, hint: &Hint<'_>) -> Result<Extracted, NotFound> {
    extract(kind, [text.as_bytes()], hint, 4000).unwrap()
}

const GREEN: &str = "running 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; \
                     0 filtered out; finished in 0.00s\n";

#[test]
fn an_exit_code_that_no_failure_explains_is_told_with_the_last_lines() {
    let failed = Hint { exit_code: Some(101), ..hint("cargo test") };
    let found = read(Kind::Tests, &format!("{GREEN}Segmentation fault\n"), &failed).unwrap();
    assert_eq!(found.value["complete"], false);
    assert_eq!(found.note.unwrap(), "the exit code is 101, but no failed test was found");
    assert!(found.tail.unwrap().ends_with("Segmentation fault"));
}

#[test]
fn an_exit_code_of_something_else_proves_nothing() {
    for (command, complete) in [
        ("cargo test", true),
        ("cargo test; echo done", false),
        ("cargo test || true", false),
        ("cargo test 2>&1 | tee log", false),
        ("cargo test 2>&1 | tail -3", false),
    ] {
        let found = read(Kind::Tests, GREEN, &hint(command)).unwrap();
        assert_eq!(found.value["complete"], complete, "{command}");
        assert_eq!(found.note.is_none(), complete, "{command}");
    }
}

#[test]
fn a_run_that_was_killed_is_never_complete() {
    for killed in [
        Hint { exit_code: None, ..hint("cargo test") },
        Hint { ended: false, ..hint("cargo test") },
    ] {
        let found = read(Kind::Tests, GREEN, &killed).unwrap();
        assert_eq!((&found.value["passed"], &found.value["complete"]), (&1.into(), &false.into()));
    }
}

#[test]
fn a_summary_that_a_test_printed_does_not_count() {
    let text = GREEN.replace("test a ... ok\n", "");
    let imitated = text.replace("running 1 test", "running 2 tests\ntest a ... FAILED");
    let found = read(Kind::Tests, &imitated, &hint("cargo test")).unwrap();
    assert_eq!((&found.value["failed"], &found.value["complete"]), (&1.into(), &false.into()));
    let doubled = format!("{GREEN}{}", GREEN.split_once("\n\n").unwrap().1);
    assert_eq!(read(Kind::Tests, &doubled, &hint("cargo test")).unwrap().value["complete"], false);
}

#[test]
fn results_of_several_runs_are_added() {
    let run = |files: &str, tests: &str| {
        format!(
            " RUN  v4.1.12 /p\n\n Test Files  {files}\n      Tests  {tests}\n   Start at  1\n   Duration  9ms\n"
        )
    };
    let text =
        run("1 failed (1)", "1 failed | 2 passed (3)") + &run("1 passed (1)", "4 passed (4)");
    let found =
        read(Kind::Tests, &text, &hint("npx vitest run && cd b && npx vitest run")).unwrap();
    assert_eq!((&found.value["passed"], &found.value["failed"]), (&6.into(), &1.into()));

    let jest = |suites: &str, tests: &str| {
        format!(
            "PASS ./a.test.js\n\nTest Suites: {suites}\nTests:       {tests}\nSnapshots:   0 total\nTime:        1 s\n"
        )
    };
    let text = jest("1 failed, 1 total", "1 failed, 1 total")
        + &jest("1 passed, 1 total", "2 passed, 2 total");
    let found = read(Kind::Tests, &text, &hint("npm test --workspaces")).unwrap();
    assert_eq!((&found.value["passed"], &found.value["failed"]), (&2.into(), &1.into()));
}

#[test]
fn two_kinds_of_runners_are_both_told() {
    let pytest = "===== test session starts =====\ncollected 2 items\n";
    let both = format!("{GREEN}{pytest}");
    let found = read(Kind::Tests, &both, &hint("cargo test && pytest")).unwrap();
    assert_eq!(found.value["complete"], false);
    assert!(found.note.unwrap().contains("pytest: no summary was printed"));
}

#[test]
fn what_is_not_known_is_said_so() {
    let missing = |kind| read(kind, "hello\nworld\n", &hint("x")).unwrap_err();
    assert_eq!(missing(Kind::Tests).message, "no known test runner printed anything here");
    assert_eq!(missing(Kind::Tests).tail, "hello\nworld");
    assert!(missing(Kind::Diagnostics).message.starts_with("no diagnostics in a known form"));
    assert_eq!(missing(Kind::Json).message, "no JSON was printed");
    assert!(missing(Kind::Table).message.starts_with("no table was found here"));
}

#[test]
fn errors_go_before_warnings_and_the_same_is_told_once() {
    let warnings: String =
        (1..500).map(|line| format!("a.c:{line}:1: warning: unused\n")).collect();
    let text = format!("{warnings}{warnings}b.c:7:3: error: broken\n");
    let found = read(Kind::Diagnostics, &text, &hint("make")).unwrap();
    let all = found.value.as_array().unwrap();
    assert_eq!(all.last().unwrap()["message"], "broken");
    assert_eq!(all.len() as u64 + found.omitted, 500);
    assert!(found.value.to_string().len() <= 4000 && all.len() > 20);
    assert_eq!(found.note.unwrap(), "1 errors and 499 others in all");
}

#[test]
fn lines_that_only_look_like_diagnostics_are_left_alone() {
    let text = "12:30:45: started\nhttp://localhost:8080: ready\nsrc/a.rs:12:let x = 1;\n[a.c:1: x\nv1.2:3: x\n";
    assert!(read(Kind::Diagnostics, text, &hint("x")).is_err());
}

#[test]
fn swift_and_others_use_the_common_form() {
    let text = "/p/a.swift:3:5: error: cannot find 'x' in scope\nlib/b.rb:3: warning: unused\n";
    let found = read(Kind::Diagnostics, text, &hint("swiftc a.swift")).unwrap();
    assert_eq!(
        (&found.value[0]["line"], &found.value[0]["severity"]),
        (&3.into(), &"error".into())
    );
    assert_eq!(
        (&found.value[1]["file"], &found.value[1]["column"]),
        (&"lib/b.rb".into(), &serde_json::Value::Null)
    );
}

#[test]
fn a_long_message_is_cut_and_says_so() {
    let said = "x".repeat(5000);
    let text = format!(
        "--- FAIL: TestA (0.00s)\n    a_test.go:7: {said}\nFAIL\nFAIL\texample.com/a\t0.1s\nFAIL\n"
    );
    let found = read(Kind::Tests, &text, &Hint { exit_code: Some(1), ..hint("go test") }).unwrap();
    let message = found.value["failures"][0]["message"].as_str().unwrap();
    assert!(message.len() < 700 && message.ends_with(" more bytes)"), "{message}");
}

#[test]
fn many_rows_are_counted_and_not_kept() {
    let rows: String = (0..5000).map(|row| format!("name{row},{row}\n")).collect();
    let found = read(Kind::Table, &format!("name,size\n{rows}"), &hint("cat a.csv")).unwrap();
    assert_eq!(found.value.as_array().unwrap().len() as u64 + found.omitted, 5000);
    assert!(found.value.to_string().len() <= 4000);
}

#[test]
fn a_rust_test_that_printed_a_lot_still_tells_its_panic_first_and_counts_the_rest() {
    let steps: String = (0..400).map(|step| format!("step {step}: checking value\n")).collect();
    let long = "x".repeat(5000) + "\n";
    let panic = "assertion `left == right` failed\n  left: Some(3.0)\n right: Some(2.5)";
    for printed in [steps.as_str(), &long, &long.replace('\n', "")] {
        let text = format!(
            "running 1 test\ntest tests::a ... FAILED\n\nfailures:\n\n---- tests::a stdout ----\n{printed}\
             thread 'tests::a' (133) panicked at src/lib.rs:38:9:\n{panic}\n\
             note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n\n\n\
             failures:\n    tests::a\n\n\
             test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n"
        );
        let failed = Hint { exit_code: Some(101), ..hint("cargo test") };
        let found = read(Kind::Tests, &text, &failed).unwrap();
        let failure = &found.value["failures"][0];
        assert_eq!(failure["message"], format!("{panic}\n… ({} more bytes)", printed.trim().len()));
        assert_eq!((&failure["file"], &failure["line"]), (&"src/lib.rs".into(), &38.into()));
        assert_eq!(found.value["complete"], true);
    }
}

#[test]
fn nextest_tells_the_panic_of_a_test_that_printed_a_lot() {
    let steps: String = (0..400).map(|step| format!("    step {step}: checking value\n")).collect();
    let text = format!(
        " Nextest run ID 1 with nextest profile: default\n        FAIL [   0.024s] (1/1) small tests::wrong\n  \
         stdout ───\n\n{steps}\n  stderr ───\n\n    thread 'tests::wrong' (562) panicked at src/lib.rs:14:9:\n    \
         broken\n\n     Summary [   0.033s] 1 test run: 0 passed, 1 failed, 0 skipped\n"
    );
    let found = read(Kind::Tests, &text, &hint("cargo nextest run")).unwrap();
    let failure = &found.value["failures"][0];
    assert_eq!((&failure["file"], &failure["line"]), (&"src/lib.rs".into(), &14.into()));
    assert!(failure["message"].as_str().unwrap().ends_with("broken"), "{failure}");
}

#[test]
fn what_unittest_shows_of_a_long_output_counts_all_that_is_left_out() {
    let printed: String = (0..300).map(|line| format!("debug {line}\n")).collect();
    let said = format!("AssertionError: 1 != 2\n\nStdout:\n{printed}");
    let text = format!(
        "F\n{}\nFAIL: test_a (t.T.test_a)\n{}\nTraceback (most recent call last):\n  \
         File \"/p/t.py\", line 7, in test_a\n    x\n{said}\n{}\nRan 1 test in 0.001s\n\nFAILED (failures=1)\n",
        "=".repeat(70),
        "-".repeat(70),
        "-".repeat(70)
    );
    let found = read(Kind::Tests, &text, &hint("python3 -m unittest -b")).unwrap();
    let message = found.value["failures"][0]["message"].as_str().unwrap();
    let (shown, rest) = message.rsplit_once("… (").unwrap();
    assert!(said.starts_with(shown));
    assert_eq!(rest, format!("{} more bytes)", said.trim_end().len() - shown.len()));
}

#[test]
fn a_run_whose_failures_are_not_as_many_as_it_counts_is_not_complete() {
    let listed = "FAILED test_a.py::test_one - assert 0\n";
    let pytest = |list: &str| {
        format!(
            "===== test session starts =====\ncollected 2 items\n\n===== short test summary info =====\n{list}\
             ===== 1 failed, 1 passed in 0.01s =====\n"
        )
    };
    let node = |blocks: &str| {
        format!(
            "✖ a (0.1ms)\nℹ tests 1\nℹ suites 0\nℹ pass 0\nℹ fail 1\nℹ cancelled 0\nℹ skipped 0\nℹ todo 0\n\
             ℹ duration_ms 1.5\n\n✖ failing tests:\n\n{blocks}"
        )
    };
    let block = |name: &str| format!("test at a.js:1:1\n✖ {name} (0.1ms)\n  Error: no\n\n");
    let nested = "    not ok 1 - a\n    not ok 2 - b\n    1..2\nnot ok 1 - both\n1..1\n";
    for (text, complete) in [
        (pytest(listed), true),
        (pytest(""), false),
        (node(&block("a")), true),
        (node(&(block("a") + &block("b"))), false),
        (node(""), false),
        (nested.to_owned(), true),
    ] {
        let found =
            read(Kind::Tests, &text, &Hint { exit_code: Some(1), ..hint("npm test") }).unwrap();
        assert_eq!(found.value["complete"], complete, "{text}{found:?}");
    }
}

#[test]
fn failures_that_nothing_tells_come_with_the_last_lines() {
    let text = "FAILED test_a.py::test_one - assert 0\n===== 56 failed, 8 passed in 0.20s =====\n";
    let filtered = hint("python3 -m pytest -v | tail -20");
    let found = read(Kind::Tests, text, &filtered).unwrap();
    assert_eq!((&found.value["failed"], &found.value["complete"]), (&56.into(), &false.into()));
    assert!(found.tail.unwrap().contains("FAILED test_a.py::test_one"));

    let named =
        GREEN.replace("a ... ok", "a ... FAILED").replace("ok. 1 passed; 0", "FAILED. 0 passed; 1");
    let found = read(Kind::Tests, &named, &hint("cargo test | grep test")).unwrap();
    assert_eq!(found.value["failures"][0]["name"], "a");
    assert!(found.tail.is_some());
}

#[test]
fn that_a_filter_stood_between_is_also_told_where_no_diagnostics_were_found() {
    let text = "error: could not compile `stats` (lib) due to 5 previous errors\n";
    for command in ["cargo build 2>&1 | tail -3", "cargo build 2>&1 | grep -c error; true"] {
        assert_eq!(
            read(Kind::Diagnostics, text, &hint(command)).unwrap_err().message,
            "no diagnostics in a known form were printed here; the command filters its output, so lines may be \
             missing; the exit code is 0, but it may be that of the filter"
        );
    }
    let message = read(Kind::Diagnostics, text, &hint("cargo build")).unwrap_err().message;
    assert_eq!(message, "no diagnostics in a known form were printed here; the exit code is 0");
}

#[test]
fn where_nothing_ran_that_is_all_that_is_told() {
    let text =
        "===== test session starts =====\ncollected 0 items\n\n===== no tests ran in 0.00s =====\n";
    let none = Hint { exit_code: Some(5), ..hint("pytest") };
    let found = read(Kind::Tests, text, &none).unwrap();
    assert_eq!(found.note.unwrap(), "no test ran (exit code 5)");
    // Something else is wrong here, so tests may have run.
    let cut = text.split_inclusive('\n').next().unwrap();
    let found = read(Kind::Tests, cut, &none).unwrap();
    assert_eq!(
        found.note.unwrap(),
        "pytest: no summary was printed; no test that ran was seen (exit code 5)"
    );
}
