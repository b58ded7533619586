//! Colours are for terminals that have them, and for people who want them.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

use std::process::{Command, Stdio};

const MCPZ: &str = env!("CARGO_BIN_EXE_mcpz");

/// All commands that print colours, one that never does, and one whose flags are wrong.
const COMMANDS: &[(&str, bool)] = &[
    ("--help", true),
    ("server shell --help", true),
    ("check --deny 'rm*' 'rm x'", true),
    ("doctor", true),
    ("server shell --nonsense", true),
    // Its progress, if it takes long, is not about colours.
    ("call execute_command command='echo error: x' 2>/dev/null", true),
    ("call --json execute_command command='echo x' 2>/dev/null", true),
    ("call execute_command command='echo plain' 2>/dev/null", false),
    ("jobs list", false),
    ("audit tail", false),
];

/// What is printed with these variables, on a terminal or not.
fn printed(arguments: &str, variables: &[(&str, &str)], terminal: bool) -> String {
    let line = format!("'{MCPZ}' {arguments}");
    let mut command = match terminal {
        true => Command::new("script"),
        false => Command::new("sh"),
    };
    let state = tempfile::tempdir().unwrap();
    for unset in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CI", "MCPZ_CONFIG"] {
        command.env_remove(unset);
    }
    command
        .args(if terminal { ["-qec", &line, "/dev/null"] } else { ["-c", &line, "sh"] })
        .envs([("TERM", "xterm"), ("XDG_CONFIG_HOME", "/nonexistent")])
        .env("XDG_STATE_HOME", state.path())
        .envs(variables.iter().copied())
        .stdin(Stdio::null());
    let output = command.output().unwrap();
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

fn is_coloured(text: &str) -> bool {
    assert!(!text.trim().is_empty());
    text.contains("\x1b[")
}

#[test]
fn a_terminal_gets_colours_and_nothing_else_does() {
    for (arguments, colours) in COMMANDS {
        let text = printed(arguments, &[], true);
        assert_eq!(is_coloured(&text), *colours, "{arguments}: {text:?}");
        let text = printed(arguments, &[], false);
        assert!(!is_coloured(&text), "{arguments}: {text:?}");
    }
}

#[test]
fn whoever_wants_no_colours_gets_none() {
    let wishes: [&[(&str, &str)]; 4] = [
        &[("NO_COLOR", "1")],
        &[("TERM", "dumb")],
        &[("TERM", "dumb"), ("CI", "1")],
        &[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")],
    ];
    for (arguments, _) in COMMANDS {
        for variables in wishes {
            let text = printed(arguments, variables, true);
            assert!(!is_coloured(&text), "{arguments} with {variables:?}: {text:?}");
        }
    }
}

#[test]
fn an_empty_no_color_says_nothing_and_clicolor_force_wants_colours_anywhere() {
    for arguments in ["--help", "check ls"] {
        assert!(is_coloured(&printed(arguments, &[("NO_COLOR", "")], true)), "{arguments}");
        assert!(is_coloured(&printed(arguments, &[("CLICOLOR_FORCE", "1")], false)), "{arguments}");
        assert!(
            !is_coloured(&printed(arguments, &[("CLICOLOR_FORCE", "0")], false)),
            "{arguments}"
        );
        let nowhere = [("CLICOLOR_FORCE", "1"), ("TERM", "")];
        assert!(is_coloured(&printed(arguments, &nowhere, false)), "{arguments}");
    }
}

/// A line that makes a detached job, and prints what it has printed.
fn logs(command: &str, flags: &str) -> String {
    format!(
        "call execute_command command='{command}' detach=true >/dev/null 2>&1; \
         '{MCPZ}' jobs logs {flags} $('{MCPZ}' jobs list | tail -n 1 | cut -d ' ' -f 1)"
    )
}

#[test]
fn what_a_command_printed_is_highlighted_on_a_terminal() {
    let error = "a.c:3:1: error: no x";
    let shown = "\x1b[36ma.c:3:1\x1b[0m: \x1b[1;31merror\x1b[0m: no x\r\n";
    let call = format!("call execute_command command='echo {error}' 2>/dev/null");
    for line in [call, logs(&format!("echo {error}"), ""), logs(&format!("echo {error}"), "-f")] {
        assert_eq!(printed(&line, &[], true), shown, "{line}");
        assert_eq!(printed(&line, &[("NO_COLOR", "1")], true), format!("{error}\r\n"));
        // Forced or not: whatever reads a pipe wants what the command printed.
        assert_eq!(printed(&line, &[("CLICOLOR_FORCE", "1")], false), format!("{error}\n"));
    }
    let apart = "call --tools all shell command='echo error: x >&2'";
    let text = printed(apart, &[], true);
    assert!(text.ends_with("\x1b[1;31merror\x1b[0m: x\r\n"), "stderr too: {text:?}");
}

#[test]
fn diffs_json_and_paths_are_highlighted() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("new.txt"), "b\n").unwrap();
    let command =
        r#"printf "%s\n" "@@ -1 +1 @@" -a +b "- c" "{\"n\": 1}" "see ./new.txt or ./old.txt""#;
    let line = format!("call -w '{}' execute_command command='{command}'", folder.path().display());
    let text = printed(&format!("{line} 2>/dev/null"), &[], true);
    let expected = [
        "\x1b[36m@@ -1 +1 @@\x1b[0m",
        "\x1b[31m-a\x1b[0m",
        "\x1b[32m+b\x1b[0m",
        "- c",
        "{\x1b[34m\"n\"\x1b[0m: \x1b[36m1\x1b[0m}",
        "see \x1b[4m./new.txt\x1b[0m or ./old.txt",
        "",
    ];
    assert_eq!(text, expected.join("\r\n"));
}

#[test]
fn output_with_colours_of_its_own_is_shown_as_it_is() {
    let line = logs(r#"printf "error: a\033[32m\nerror: b\033[0m\n""#, "");
    assert_eq!(printed(&line, &[], true), "error: a\x1b[32m\r\nerror: b\x1b[0m\r\n");
}
