//! What people read and shells complete: help, pages for man, completions.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;
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
        (&["health"], &["0", "1"]),
    ] {
        let text = help(command);
        let (_, said) = text.split_once("\nExit codes: ").unwrap_or_else(|| panic!("{text}"));
        let said: Vec<&str> = said.split(|letter: char| !letter.is_ascii_digit()).collect();
        assert!(codes.iter().all(|code| said.contains(code)), "{command:?}: {said:?}");
    }
}

/// What bash offers after a line, of which the last word is being typed.
fn offered(words: &[&str]) -> Vec<String> {
    let script = r#"
        source <("$MCPZ" completions bash) || exit
        function=$(complete -p mcpz | sed 's/.*-F \([^ ]*\).*/\1/')
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        "$function" mcpz "${@: -1}" "${@: -2:1}"
        printf '%s\n' "${COMPREPLY[@]}""#;
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", script, "bash"]).args(words).env("MCPZ", MCPZ);
    let output = bash.output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_flags_and_values() {
    assert_eq!(offered(&["mcpz", "se"]), ["server"]);
    assert_eq!(offered(&["mcpz", "jobs", "at"]), ["attach"]);
    assert_eq!(offered(&["mcpz", "server", "shell", "--sand"]), ["--sandbox"]);
    let modes = offered(&["mcpz", "server", "shell", "--sandbox", ""]);
    assert_eq!(modes, ["off", "read-only", "workspace"]);
    assert!(!offered(&["mcpz", ""]).contains(&"agent".to_owned()));
}

#[test]
fn zsh_understands_its_completions() {
    let folder = tempfile::tempdir().unwrap();
    let text = mcpz(&["completions", "zsh"]);
    assert!(text.starts_with("#compdef mcpz\n"), "{text}");
    let file = folder.path().join("_mcpz");
    std::fs::write(&file, text).unwrap();
    let output = Command::new("zsh").args(["-f", "-n"]).arg(&file).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn every_other_shell_has_completions_too() {
    for shell in ["elvish", "fish", "powershell"] {
        assert!(mcpz(&["completions", shell]).contains("working-dir"), "{shell}");
    }
}

/// What man would show of a page, on one line.
fn shown(page: &Path) -> String {
    let mut groff = Command::new("groff");
    groff.args(["-man", "-Tascii", "-ww", "-P-cbou", "-rLL=500n"]).arg(page);
    let output = groff.output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{page:?}: {output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn every_command_has_a_page_for_man() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("share/man1");
    mcpz(&["man", pages.to_str().unwrap()]);
    let mut names: Vec<String> = commands()
        .iter()
        .map(|command| ["mcpz"].into_iter().chain(command.iter().map(String::as_str)).collect())
        .map(|words: Vec<&str>| words.join("-") + ".1")
        .collect();
    for name in &names {
        let text = shown(&pages.join(name));
        assert!(text.contains("SYNOPSIS") && text.contains("--help"), "{text}");
    }
    let text = shown(&pages.join("mcpz-call.1"));
    assert!(text.contains("Exit codes: the command's own, 124 after a timeout"), "{text}");
    let mut written: Vec<String> = std::fs::read_dir(&pages)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    written.sort();
    assert_eq!(written, names);
    std::fs::write(pages.join("printed"), mcpz(&["man"])).unwrap();
    assert!(shown(&pages.join("printed")).contains("mcpz-server(1) Run a built-in MCP server"));
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let output = Command::new(MCPZ).args(["man", "/proc/nowhere"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("mcpz: cannot write the man pages to /proc/nowhere: "), "{said}");
    assert_eq!(output.status.code(), Some(1));
}
