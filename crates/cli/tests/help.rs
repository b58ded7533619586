//! What `--help` says.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

use std::process::Command;

const MCPZ: &str = env!("CARGO_BIN_EXE_mcpz");

/// Of a screen.
const LINES: usize = 40;
const COLUMNS: usize = 100;

fn mcpz(arguments: &[&str]) -> String {
    let output = Command::new(MCPZ).args(arguments).env_remove("COLUMNS").output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn help(command: &[&str]) -> String {
    mcpz(&[command, &["--help"]].concat())
}

/// Every command that help tells of, from `mcpz` itself down.
fn commands() -> Vec<Vec<String>> {
    let mut found = vec![Vec::new()];
    let mut next = 0;
    while let Some(command) = found.get(next).cloned() {
        let names: Vec<&str> = command.iter().map(String::as_str).collect();
        let text = help(&names);
        let (_, listed) = text.split_once("\nCommands:\n").unwrap_or_default();
        for line in listed.lines().take_while(|line| !line.is_empty()) {
            let name = line.split_whitespace().next().unwrap();
            if name != "help" {
                found.push([command.as_slice(), &[name.to_owned()]].concat());
            }
        }
        next += 1;
    }
    found
}

#[test]
fn the_help_of_every_command_is_one_screen() {
    let commands = commands();
    assert!(commands.contains(&vec!["server".into(), "shell".into()]), "{commands:?}");
    for command in commands {
        let names: Vec<&str> = command.iter().map(String::as_str).collect();
        let text = help(&names);
        assert!(text.lines().count() <= LINES, "{} lines:\n{text}", text.lines().count());
        assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
        for group in text.split("\n\n").filter(|group| group.contains("\n  ")) {
            assert!(group.lines().count() <= 16, "too many to be one group:\n{group}");
        }
    }
}

#[test]
fn the_flags_of_a_server_are_in_groups() {
    let text = help(&["server", "shell"]);
    let headings: Vec<&str> =
        text.lines().filter(|line| line.ends_with(':') && !line.starts_with(' ')).collect();
    assert_eq!(headings, ["Options:", "Running commands:", "What commands may do:", "HTTP:"]);
}

#[test]
fn a_command_with_exit_codes_of_its_own_says_so() {
    for (command, codes) in [
        (&[][..], &["0", "1", "2"][..]),
        (&["server", "shell"], &["0", "1", "2"]),
        (&["call"], &["124", "128", "130", "1"]),
        (&["check"], &["0", "1"]),
        (&["policy", "test"], &["0", "1"]),
        (&["audit", "verify"], &["0", "1"]),
        (&["jobs", "attach"], &["0", "128", "1"]),
        (&["doctor"], &["0", "1"]),
    ] {
        let text = help(command);
        let (_, said) = text.split_once("\nExit codes: ").unwrap_or_else(|| panic!("{text}"));
        let said: Vec<&str> = said.split(|letter: char| !letter.is_ascii_digit()).collect();
        assert!(codes.iter().all(|code| said.contains(code)), "{command:?}: {said:?}");
    }
}
