//! Which lines report trouble, and what is shown around them. The fixtures are outputs of real programs.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

use mcpz_view::{Level, Shown, errors};

const PLENTY: usize = 1 << 20;

fn is_hit(line: &str) -> bool {
    errors(line.as_bytes(), 1, Level::Warning, PLENTY).unwrap().text.starts_with("1:")
}

fn show(text: &str) -> String {
    let shown = errors(text.as_bytes(), 1, Level::Warning, PLENTY).unwrap();
    assert_eq!((shown.consumed, shown.lines), (text.len() as u64, text.lines().count() as u64));
    shown.text
}

#[test]
fn warnings_are_told_from_errors() {
    let level = |line: &str| {
        let text = errors(line.as_bytes(), 1, Level::Error, PLENTY).unwrap().text;
        if text.starts_with("1:") { Level::Error } else { Level::Warning }
    };
    for line in [
        "warning: unused variable: `error`",
        "a.c:3:5: warning: unused value [-Wunused]",
        "[WARN] retrying, as the last try failed",
        "W: Failed to fetch it",
        "npm warn deprecated x",
    ] {
        assert!(is_hit(line) && level(line) == Level::Warning, "{line}");
    }
    for line in [
        "error: 2 warnings emitted, treated as errors",
        "3 warnings and 1 error generated.",
        "a.c:3:5: error: no such thing",
        "main.go:12:5: undefined: x",
        "FAILED test_warns",
    ] {
        assert_eq!(level(line), Level::Error, "{line}");
    }
}

#[test]
fn lines_that_report_trouble_are_hits() {
    let lines = [
        "error: expected `;`",
        "error[E0308]: mismatched types",
        "\u{1b}[1m\u{1b}[31merror\u{1b}[0m: expected `;`",
        "warning: unused variable: `x`",
        "src/main.rs:3:5: error: x",
        "./main.go:12:5: undeclared name: x",
        "lib.py:1:1: F401 'os' imported but unused",
        "a.ts(12,5): error TS2322: Type 'string' is not assignable",
        "  12:5  error  'x' is not defined  no-undef",
        "test addition ... FAILED",
        "FAILED tests/test_a.py::test_b - assert 1 == 2",
        "E   assert 1 == 2",
        "E       AssertionError",
        "thread 'main' panicked at src/main.rs:2:5:",
        "panic: runtime error: index out of range",
        "--- FAIL: TestAdd (0.00s)",
        "FAIL\texample.com/pkg\t0.002s",
        "not ok 3 - adds",
        "  ✗ adds two numbers",
        "  ✕ adds two numbers (3 ms)",
        "npm ERR! code ELIFECYCLE",
        "npm error code E404",
        "Traceback (most recent call last):",
        "ValueError: invalid literal",
        "java.lang.NullPointerException: x",
        "Exception in thread \"main\" java.lang.Error",
        "Caused by: java.io.IOException",
        "Segmentation fault (core dumped)",
        "make: *** [Makefile:5: b] Error 1",
        "cat: x: No such file or directory",
        "bash: foo: command not found",
        "sh: 1: cannot open x: Permission denied",
        "fatal: not a git repository",
        "E: Unable to locate package foo",
        "E1118 12:00:00.000000       1 main.go:12] lost",
        "ERROR worker-3 job 12 failed",
        "level=error msg=\"x\"",
        "{\"level\":\"error\",\"msg\":\"x\"}",
        "time=12:00 level=CRITICAL disk full",
        "12 errors generated.",
        "10 failed, 3 passed",
        "Failures: 10, Errors: 0",
        "3 passed; 1 failed",
        "pod-1   0/1   CrashLoopBackOff   5",
        "Killed",
        "undefined reference to `foo'",
        "/usr/bin/python3: No module named pytest",
    ];
    let missed: Vec<_> = lines.iter().filter(|line| !is_hit(line)).collect();
    assert_eq!(missed, Vec::<&&str>::new());
}

#[test]
fn lines_that_only_have_such_words_are_not_hits() {
    let lines = [
        "0 errors",
        "0 errors, 0 warnings",
        "error: 0",
        "errors: 0, passed: 3",
        "Errors: 0 Failures: 0 Skipped: 1",
        "no errors found",
        "finished without errors",
        "finished without any errors",
        "100% tests passed, 0 tests failed out of 3",
        "test result: ok. 3 passed; 0 failed; 0 ignored",
        "test error_handling ... ok",
        "test a_test::fails ... ok",
        "test errors::panics - should panic ... ok",
        "tests/test_error.py::test_error PASSED [ 50%]",
        "ok 3 - handles errors",
        "  ✓ throws an error (2 ms)",
        "--- PASS: TestError (0.00s)",
        "   Compiling thiserror v2.0.0",
        "src/errors.rs",
        "src/error/mod.rs",
        "modified: crates/view/src/errors.rs",
        "gcc -Wall -Werror -Wno-error=foo -c main.c",
        "cargo test --no-fail-fast",
        "a fail-safe and error-prone way",
        "use std::error::Error;",
        "ok=3 changed=0 unreachable=0 failed=0 skipped=0",
        "{\"error\":null,\"errors\":[],\"failed\":false}",
        "failover to the second node",
        "the critical section begins",
        "it does not fail",
        "console.error()",
        "-rw-r--r-- 1 root root 12 Nov 18 12:00 error.log",
        "main.c:5:5: note: each undeclared identifier is reported once",
        "main.rs:12:    let x = 1;",
    ];
    let alarms: Vec<_> = lines.iter().filter(|line| is_hit(line)).collect();
    assert_eq!(alarms, Vec::<&&str>::new());
}

#[test]
fn two_lines_are_shown_around_each_hit_and_the_rest_is_counted() {
    let lines = (1..=20).map(|n| match n {
        5 | 7 | 17 => format!("error {n}\n"),
        _ => format!("this is the ordinary line {n}\n"),
    });
    let expected = "… 2 lines without errors …
3-this is the ordinary line 3
4-this is the ordinary line 4
5:error 5
6-this is the ordinary line 6
7:error 7
8-this is the ordinary line 8
9-this is the ordinary line 9
… 5 lines without errors …
15-this is the ordinary line 15
16-this is the ordinary line 16
17:error 17
18-this is the ordinary line 18
19-this is the ordinary line 19
… 1 line without errors …
";
    assert_eq!(show(&lines.collect::<String>()), expected);
}

#[test]
fn an_output_without_errors_is_one_line() {
    let shown = errors(&b"fine\nalso fine\n"[..], 1, Level::Warning, PLENTY).unwrap();
    let text = "… 2 lines without errors …\n".to_owned();
    assert_eq!(shown, Shown { text, consumed: 15, lines: 2, omitted: 2, omitted_bytes: 15 });
}

#[test]
fn a_short_line_is_shown_rather_than_counted() {
    assert_eq!(
        show("error\n1\n2\nx\n3\n4\nerror\n"),
        "1:error\n2-1\n3-2\n4-x\n5-3\n6-4\n7:error\n"
    );
}

#[test]
fn numbers_begin_with_that_of_the_first_line() {
    assert_eq!(
        errors(&b"a\nerror\n"[..], 41, Level::Warning, PLENTY).unwrap().text,
        "41-a\n42:error\n"
    );
}

#[test]
fn a_page_ends_before_a_group_that_does_not_fit() {
    let ordinary = |n: u32| (0..n).map(|n| format!("an ordinary line {n}\n")).collect::<String>();
    let first = format!("error: one\n{}", ordinary(20));
    let text = format!("{first}{}error: two {}\n", ordinary(2), "x".repeat(200));
    let shown = errors(text.as_bytes(), 1, Level::Warning, 300).unwrap();
    let expected =
        "1:error: one\n2-an ordinary line 0\n3-an ordinary line 1\n… 18 lines without errors …\n";
    assert_eq!(shown.text, expected);
    assert_eq!(
        (shown.consumed as usize, shown.lines),
        (first.len(), 21),
        "what is around it is on the next page"
    );
    let next = errors(&text.as_bytes()[first.len()..], 22, Level::Warning, 400).unwrap();
    assert!(
        next.text.starts_with("22-an ordinary line 0\n23-an ordinary line 1\n24:error: two"),
        "{}",
        next.text
    );
}

#[test]
fn a_long_line_around_a_hit_is_cut_but_a_hit_is_not() {
    let long = "x".repeat(1000);
    let text = show(&format!("{long}\nerror: {long}\n"));
    assert_eq!(text, format!("1-{}… 800 bytes more …\n2:error: {long}\n", "x".repeat(200)));
}

#[test]
fn a_compiler() {
    let text = show(include_str!("fixtures/gcc.txt"));
    assert_eq!(hits(&text), [2, 9, 13]);
}

#[test]
fn a_test_runner() {
    let text = show(include_str!("fixtures/rust.txt"));
    assert_eq!(hits(&text), [3, 8, 12, 13, 19, 22]);
    assert_eq!(hits(&show(include_str!("fixtures/node-tap.txt"))), [8, 12, 13, 15, 32]);
}

#[test]
fn a_traceback() {
    let expected = r#"1-loading
2:Traceback (most recent call last):
3-  File "<string>", line 4, in <module>
4-  File "t.py", line 3, in load
… 9 lines without errors …
14-    obj, end = self.scan_once(s, idx)
15-               ^^^^^^^^^^^^^^^^^^^^^^
16:json.decoder.JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)
"#;
    assert_eq!(show(include_str!("fixtures/python.txt")), expected);
}

#[test]
fn a_failed_build() {
    assert_eq!(hits(&show(include_str!("fixtures/make.txt"))), [3, 4]);
}

fn hits(text: &str) -> Vec<u32> {
    let number = |line: &str| line.split_once(':').and_then(|(number, _)| number.parse().ok());
    text.lines().filter_map(number).collect()
}
