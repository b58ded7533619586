//! Any text is judged, soon and without a panic, or refused for its size.
#![allow(clippy::unwrap_used, clippy::panic, dead_code, reason = "a test may panic")]

mod support;

use std::time::Instant;

use proptest::prelude::*;
use support::{allow, deny, is_allowed, judge};

#[test]
fn limits_are_kept() {
    let deep = |count: usize| format!("{}ls{}", "$(".repeat(count), ")".repeat(count));
    let policy = deny("zzz");
    assert!(is_allowed(&policy, &format!("echo {}", "x ".repeat(20_000))));
    assert!(!is_allowed(&policy, &format!("echo {}", "x ".repeat(40_000))), "64 KiB");
    assert!(is_allowed(
        &policy,
        &format!("echo {}", deep(20).replace("ls", "echo hi").replacen("$(", "$(echo ", 19))
    ));
    assert!(
        !is_allowed(&policy, &format!("echo {}", "$(echo ".repeat(40) + &")".repeat(40))),
        "depth"
    );
    assert!(is_allowed(&policy, &"true;".repeat(250)));
    assert!(!is_allowed(&policy, &"true;".repeat(300)), "commands");
    assert!(is_allowed(&policy, &format!("{}ls", "env ".repeat(8))));
    assert!(!is_allowed(&policy, &format!("{}ls", "env ".repeat(9))), "wrappers");
    // The parser reads each of these twice.
    assert!(!is_allowed(&policy, &format!("{}ls", "$((".repeat(200))));
}

#[test]
fn no_text_takes_long_to_judge() {
    let many = |count: usize, text: fn(usize) -> String| (0..count).map(text).collect::<String>();
    let allowed = [
        format!("git {} status", "-z ".repeat(20_000)),
        format!("git {} status", "-z status ".repeat(5_000)),
        format!("echo {{{}", "a".repeat(60_000)),
        format!("ls {{{}}}> f", "a".repeat(60_000)),
        format!("echo $(( $x {} ))", " ".repeat(60_000)),
        format!("for x in {}; do echo $x; done", many(11_000, |n| format!("{n} "))),
        format!("export {}", many(8_000, |n| format!("x={n} "))),
        format!("env {} ls", "- ".repeat(30_000)),
    ];
    let denied = [format!("{}ls", "npx ".repeat(16_000)), format!("{}ls", "uv run ".repeat(9_000))];
    let policy = deny("git push,git remote add,zzz");
    let start = Instant::now();
    assert!(is_allowed(&policy, &format!("ls {}", "a ".repeat(30_000))));
    let plain = start.elapsed();
    for (texts, expected) in [(&allowed[..], true), (&denied[..], false)] {
        for text in texts {
            let start = Instant::now();
            assert_eq!(is_allowed(&policy, text), expected, "{}", &text[..40]);
            let took = start.elapsed();
            assert!(took < 50 * plain, "{took:?}, and {plain:?} for plain words: {}", &text[..40]);
        }
    }
    assert!(is_allowed(&policy, &format!("{}ls", "npx ".repeat(8))));
}

/// Text made of tokens that matter to a shell.
fn shell_text() -> impl Strategy<Value = String> {
    let token = prop::sample::select(vec![
        "rm x",
        "ls",
        "echo",
        " ",
        "\n",
        ";",
        "&&",
        "||",
        "|",
        "&",
        "(",
        ")",
        "{",
        "}",
        "$(",
        "$((",
        "))",
        "${",
        "${x:-",
        "`",
        "'",
        "\"",
        "\\",
        "\\\n",
        "<",
        ">",
        "<<E",
        "<<'E'",
        "E\n",
        "<<<",
        "<(",
        "[[",
        "]]",
        "if",
        "then",
        "fi",
        "for",
        "in",
        "do",
        "done",
        "while",
        "case",
        "esac",
        ";;",
        "x=",
        "a[",
        "]",
        "#",
        "$x",
        "$'",
        "*",
        "~",
        "é",
        "time ",
        "! ",
        "coproc ",
        "env ",
        "sh -c ",
        "eval ",
        "f() ",
        "function ",
        "=~",
        "-eq",
        "$",
        "@P}",
    ]);
    prop::collection::vec(token, 0..40).prop_map(|tokens| tokens.concat())
}

proptest! {
    #[test]
    fn judging_never_panics(text in ".*") {
        judge(&deny("rm"), &text);
        judge(&allow("ls"), &text);
    }

    #[test]
    fn judging_what_looks_like_a_script_never_panics_and_ends(text in shell_text()) {
        judge(&deny("rm"), &text);
        deny("rm").judge(&text, "sh", &support::SCENE);
    }

    #[test]
    fn a_denied_first_command_never_passes(tail in shell_text()) {
        prop_assert!(!is_allowed(&deny("rm"), &["rm ", tail.as_str()].concat()));
        prop_assert!(!is_allowed(&deny("rm"), &["ls; rm ", tail.as_str()].concat()));
    }
}
