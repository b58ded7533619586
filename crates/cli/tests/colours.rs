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
