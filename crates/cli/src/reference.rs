//! `docs/settings.md`, made from the table of settings and the command line.
//!
//!     commands and flags ─▶ clap ──┐
//!     settings ──────▶ rows ───────┼─▶ page ─▶ compared with docs/settings.md, or written there
//!     other variables ─────────────┘

mod truth;
mod variables;

use std::fmt::Write;
use std::path::Path;

use clap::{Args as _, CommandFactory};

use crate::args::{Args, ShellFlags, StdioFlags};
use crate::settings::{Row, Settings};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/settings.md");

const BEGINNING: &str = "\
# Settings

<!-- Made from the code: UPDATE_DOCS=1 cargo test -p mcpz --bin mcpz --test docs the_page_of -->

Flags override [environment variables](#environment-variables), which override the
[configuration file](#the-configuration-file). [The other pages](README.md) explain how to use the settings.
";

const FILE: &str = "
## The configuration file

mcpz reads one file: the one that `--config` or `$MCPZ_CONFIG` names, or else `mcpz/config.toml` in `$XDG_CONFIG_HOME`
(`~/.config`), or else `/etc/mcpz/config.toml`. It never looks in the working directory, where a model can write. With
an unknown key or an invalid value, the server does not start.

A size is a number of bytes, or a string such as `\"10MB\"` or `\"64KiB\"`.
";

const VARIABLES: &str = "
## Environment variables

An empty variable counts as unset.

| variable | |
|---|---|
";

#[test]
fn the_page_of_settings_has_every_flag_every_key_and_every_variable() {
    let mut page = BEGINNING.to_owned();
    let mut root = Args::command();
    root.build();
    page += "\n## Flags\n";
    commands(&root, &mut page);
    page += FILE;
    tables(&mut page);
    page += VARIABLES;
    for (name, meaning) in variables::all() {
        let _ = writeln!(page, "| `{name}` | {meaning} |");
    }
    page += "\n## Exit codes\n\n| command | |\n|---|---|\n";
    codes(&root, &mut page);
    check(Path::new(PAGE), &page);
}

/// Compares a page with what it should be, or writes it.
fn check(path: &Path, page: &str) {
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, page).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        written == page,
        "docs/settings.md is not up to date. Update it with\n\n    \
         UPDATE_DOCS=1 cargo test -p mcpz --bin mcpz --test docs the_page_of\n"
    );
}

/// A command and its subcommands, each with its flags. The flags of a server are listed once.
fn commands(command: &clap::Command, page: &mut String) {
    let path = command.get_bin_name().unwrap_or("mcpz");
    // The help of a command has no room for all flags, but this page has.
    let is_flag = |flag: &&clap::Arg| !flag.is_hide_set() || flag.get_long().is_some();
    let flags: Vec<_> = command
        .get_arguments()
        .filter(|flag| is_flag(flag) && !matches!(flag.get_id().as_str(), "help" | "version"))
        .collect();
    if !command.has_subcommands() || !flags.is_empty() && path != "mcpz" {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(page, "\n### {path}\n\n{about}.");
    }
    let stdio = StdioFlags::augment_args(clap::Command::new("stdio"));
    let shell = ShellFlags::augment_args(clap::Command::new("shell"));
    let has = |command: &clap::Command, flag: &clap::Arg| {
        command.get_arguments().any(|one| one.get_id() == flag.get_id())
    };
    let has_all = |other: &clap::Command| other.get_arguments().all(|flag| has(command, flag));
    let except = match path {
        "mcpz server shell" => None,
        _ if has_all(&stdio) => Some("those for HTTP"),
        _ if has_all(&shell) => Some("`--finish-time` and those for HTTP"),
        _ => None,
    };
    let own: Vec<_> = flags.iter().filter(|flag| except.is_none() || !has(&stdio, flag)).collect();
    if !own.is_empty() {
        *page += "\n| | |\n|---|---|\n";
    }
    for flag in own {
        let help = flag.get_help().map(ToString::to_string).unwrap_or_default();
        assert!(!help.is_empty(), "{path}: {} is not explained", flag.get_id());
        let default = flag.get_default_values().iter().map(|value| value.to_string_lossy());
        let default = default.filter(|_| flag.get_action().takes_values());
        let default: String = default.map(|value| format!(" [default: {value}]")).collect();
        let _ = writeln!(page, "| `{}` | {}{default} |", shown(flag), cell(&help));
    }
    if let Some(except) = except {
        let server = "[`mcpz server shell`](#mcpz-server-shell)";
        let _ = writeln!(page, "\nIt also has the flags of {server}, except {except}.");
    }
    let visible = |command: &&clap::Command| !command.is_hide_set() && command.get_name() != "help";
    for below in command.get_subcommands().filter(visible) {
        commands(below, page);
    }
}

fn shown(flag: &clap::Arg) -> String {
    let value = flag.get_value_names().into_iter().flatten().map(ToString::to_string).next();
    let value = value.filter(|_| flag.get_action().takes_values()).unwrap_or_default();
    let long = flag.get_long().map(|long| format!("--{long}"));
    let short = flag.get_short().map(|short| format!("-{short}"));
    let names: Vec<_> = short.into_iter().chain(long).collect();
    match names.is_empty() {
        true => value,
        false => format!("{} {value}", names.join(", ")).trim_end().to_owned(),
    }
}

fn codes(command: &clap::Command, page: &mut String) {
    if let Some(text) = command.get_after_help().map(ToString::to_string) {
        let path = command.get_bin_name().unwrap_or("mcpz");
        let _ = writeln!(page, "| `{path}` | {} |", cell(text.trim_start_matches("Exit codes: ")));
    }
    command.get_subcommands().for_each(|below| codes(below, page));
}

/// Every table of the file, with its keys.
fn tables(page: &mut String) {
    for section in Settings::sections() {
        let Some(table) = section.table else { continue };
        let _ = writeln!(page, "\n### `[{table}]`\n\n{}", section.about.trim());
        keys(table, section.rows, page);
    }
}

fn keys(table: &str, rows: Vec<Row>, page: &mut String) {
    *page += "\n| key | value | default | |\n|---|---|---|---|\n";
    for row in &rows {
        let key = row.key.trim_start_matches("r#");
        let (kind, default, about) = ((row.kind)(), default(row), cell(row.about.trim()));
        let _ = writeln!(page, "| `{key}` | {kind} | {default} | {about} |");
    }
    for row in rows {
        let inner = (row.inner)();
        let path = format!("{table}.{}", row.key);
        let heading = match path.as_str() {
            _ if inner.is_empty() => continue,
            "policy.allow" => "`[[policy.allow]]` and `[[policy.deny]]`".to_owned(),
            "policy.deny" => continue,
            "policy.runs" => "`[[policy.runs]]`".to_owned(),
            _ => format!("`[{path}]`"),
        };
        let _ = writeln!(page, "\n#### {heading}");
        keys(&path, inner, page);
    }
}

/// The default of a row, as the page shows it.
fn default(row: &Row) -> String {
    match (row.words, (row.default)()) {
        (Some(words), _) => words(),
        (None, Some(value)) => format!("`{value}`"),
        (None, None) => "none".to_owned(),
    }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
