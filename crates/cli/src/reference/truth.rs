//! What the table of settings says is true: defaults are real, flags reach their settings.
//!
//! That every setting has a user, the compiler checks: the method of a row that nobody calls is a warning.

use std::fs;

use clap::{Arg, CommandFactory, Parser};
use mcpz_agent::{Limits, Memory};
use mcpz_sandbox::Mode;

use crate::args::{Args, Command, Server};
use crate::http::Http;
use crate::settings::{self, Scope, Settings};
use crate::setup::Setup;

/// Without these, a machine or chance would decide what a server does.
const FIXED: &str = "http.tokens.me = \"0123456789abcdef\"\naudit.folder = \"/nonexistent\"\n\
                     places.NAME.kind = \"container\"\nplaces.NAME.image = \"x\"\n";

fn settings(text: &str) -> Settings {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    fs::write(&path, format!("{FIXED}{text}\n")).unwrap();
    settings::load_file(Some(path)).unwrap()
}

/// What a server with these settings would be built from.
fn effects(settings: &Settings) -> String {
    let setup = Setup::new(settings, None).unwrap();
    let sandbox = (setup.sandbox.mode(), setup.sandbox.view(Mode::Workspace, "off", &setup.engine));
    let http = Http::new(settings).unwrap();
    let Setup { engine, tools, faces, no_stderr, verbose, finish_time, log, memory, .. } = setup;
    let others = (no_stderr, verbose, finish_time, log, memory);
    format!("{engine:#?}\n{tools:#?}\n{faces:#?}\n{others:#?}\n{sandbox:#?}\n{http:#?}")
}

/// The settings of a server with these flags, unless one of them has a value that it does not accept.
fn parse(flags: &[&str]) -> Result<Settings, clap::Error> {
    let all = [&["mcpz", "server", "shell"], flags].concat();
    match Args::try_parse_from(all)?.command {
        Command::Server { server: Server::Shell(flags) } => Ok(flags.settings),
        other => panic!("{other:?}"),
    }
}

fn flags(flags: &[&str]) -> Settings {
    parse(flags).unwrap()
}

/// The settings with one more flag. Its value is one of its choices or, if it has none, the first sample that its
/// parser accepts.
fn with_flag(before: &[&str], flag: &Arg) -> Settings {
    let name = format!("--{}", flag.get_long().unwrap());
    if !flag.get_action().takes_values() {
        return flags(&[before, &[&name]].concat());
    }
    let choices = flag.get_value_parser().possible_values().into_iter().flatten();
    let choices: Vec<_> = choices.map(|choice| choice.get_name().to_owned()).collect();
    let mut values = choices.iter().map(String::as_str).chain(["7000", "2GB", "a,b"]);
    let accepted = values.find_map(|value| parse(&[before, &[&name, value]].concat()).ok());
    accepted.unwrap_or_else(|| panic!("{name} accepts no sample value"))
}

#[test]
fn setting_a_documented_default_changes_nothing() {
    let unset = effects(&settings(""));
    let mut tried = 0;
    for section in Settings::sections() {
        let Some(table) = section.table else { continue };
        for row in section.rows.iter().filter(|row| row.words.is_none()) {
            let Some(default) = (row.default)() else { continue };
            let text = format!("{table}.{} = {default}", row.key);
            let mut set = effects(&settings(&text));
            // Tools tell a limit that was chosen from the default, even if it is the same.
            if row.key == "max_answer" {
                set = set.replace("chosen: true", "chosen: false");
            }
            assert_eq!(set, unset, "{text}");
            tried += 1;
        }
    }
    assert!(tried > 40, "{tried}");
}

#[test]
fn defaults_in_words_are_what_the_engine_does() {
    let setup = Setup::new(&settings(""), None).unwrap();
    let (limits, engine) = (setup.engine.limits, &setup.engine);
    assert_eq!((limits.memory, limits.per_owner.memory), (Memory::Most, Memory::Most));
    assert_eq!((limits.open_files, limits.file_size, limits.cpu_time), (None, None, None));
    assert_eq!(limits, Limits::default());
    assert_eq!(engine.spill.per_owner, engine.spill.total / 2);
    assert_eq!(setup.memory.per_client, setup.memory.total / 4);
    assert_eq!(setup.faces.background_after, None);
    assert!(!engine.stays_within && engine.allowed_directories.is_empty());
}

#[test]
fn every_flag_reaches_its_setting() {
    let scopes = [Scope::Shell, Scope::Stdio, Scope::Server];
    for flag in scopes.into_iter().flat_map(Settings::flags) {
        // The other flags under this heading need `--http`.
        let http = flag.get_help_heading() == Some("HTTP") && flag.get_id() != "http";
        let before: &[&str] = if http { &["--http"] } else { &[] };
        let (set, unset) = (with_flag(before, &flag), flags(before));
        assert_ne!(format!("{set:?}"), format!("{unset:?}"), "--{}", flag.get_id());
    }
}

#[test]
fn flags_count_before_the_file_and_the_timeout_of_all_tools_before_that_of_one() {
    let file = settings("shell_tool.timeout = 5\nshell_tool.default_timeout = 6");
    let merged = Settings::merge(&flags(&["--timeout", "7"]), file.clone()).unwrap();
    let faces = Setup::new(&merged, None).unwrap().faces;
    assert_eq!((faces.timeout.as_secs(), faces.shell.default_timeout.as_secs()), (7, 7));
    let merged = Settings::merge(&flags(&[]), file).unwrap();
    let faces = Setup::new(&merged, None).unwrap().faces;
    assert_eq!((faces.timeout.as_secs(), faces.shell.default_timeout.as_secs()), (5, 6));
}

#[test]
fn clap_accepts_all_flags() {
    Args::command().debug_assert();
}
