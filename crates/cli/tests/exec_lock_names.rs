//! Which file a name means to the lock, and with which arguments it may be executed.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};
use support::sandbox::warnings;
use support::{Server, audit};
use tempfile::TempDir;

/// Two folders with programs of the same names, of which the rules mean those in the first.
struct Place {
    state: TempDir,
    own: TempDir,
    other: TempDir,
}

fn program(folder: &Path, name: &str, says: &str) {
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join(name), format!("#!/bin/sh\necho \"{says} $*\"\n")).unwrap();
    std::fs::set_permissions(folder.join(name), PermissionsExt::from_mode(0o755)).unwrap();
}

impl Place {
    fn new() -> Self {
        let [state, own, other] = [(); 3].map(|()| support::plain_folder());
        program(&own.path().join("bin"), "tool", "own");
        program(&other.path().join("bin"), "tool", "other");
        Self { state, own, other }
    }

    fn server(&self, allow: &[&str]) -> Server {
        let (own, other) = (self.own.path(), self.other.path());
        let places = format!("working_dir = {own:?}\nallowed_directories = [{other:?}]\n");
        audit::start(&self.state, &format!("[shell_tool]\n{places}[policy]\nallow = {allow:?}\n"))
    }

    /// Runs a command in the first folder.
    fn run(&self, server: &mut Server, command: &str) -> Value {
        server.call(json!({"command": command, "working_directory": self.own.path()}))
    }
}

fn output(reply: &Value) -> &str {
    reply["output"].as_str().unwrap_or_default()
}

#[test]
fn a_relative_path_means_the_file_that_the_policy_took_it_for() {
    let place = Place::new();
    let allow = ["./bin/tool", "./links/*", "find", "timeout", "exec", "sh", "ln"];
    let mut server = place.server(&allow);
    for honest in [
        "./bin/tool",
        "timeout 5 ./bin/tool",
        "exec ./bin/tool",
        "sh -c './bin/tool'",
        "find . -maxdepth 0 -exec ./bin/tool \\;",
    ] {
        let reply = place.run(&mut server, honest);
        assert!(output(&reply).starts_with("own"), "{honest}: {reply}");
        assert_eq!(warnings(&reply), "", "{honest}: {reply}");
    }
    let folder = place.other.path();
    let elsewhere = json!({"command": "./bin/tool", "working_directory": folder});
    let reply = server.call(elsewhere);
    assert!(reply.to_string().contains("denied by security policy"), "{reply}");
    let other = folder.display();
    for command in [
        format!("find {other}/bin -maxdepth 0 -execdir ./bin/tool \\;"),
        format!("ln -s {other}/bin links; ./links/tool"),
    ] {
        let reply = place.run(&mut server, &command);
        assert!(!output(&reply).contains("other"), "{command}: {reply}");
    }
}

#[test]
fn after_a_cd_the_file_that_a_rule_allows_is_executed_and_no_other() {
    let place = Place::new();
    program(place.own.path(), "tool", "another");
    let mut server = place.server(&["./bin/*", "ls"]);
    let reply = place.run(&mut server, "cd bin && ./tool");
    assert_eq!((output(&reply), warnings(&reply).as_str()), ("own \n", ""), "{reply}");
    for command in
        ["cd bin; cd ..; ./tool", "cd bin; cd /; cd -; cd ..; ./tool", "(cd bin); ./tool"]
    {
        let reply = place.run(&mut server, command);
        assert!(!output(&reply).contains("another"), "{command}: {reply}");
    }
    std::fs::rename(place.own.path().join("bin"), place.own.path().join("away")).unwrap();
    let reply = place.run(&mut server, "cd bin; ./tool");
    assert!(!output(&reply).contains("another"), "{reply}");
    assert!(warnings(&reply).contains("was not allowed to execute `./tool`"), "{reply}");
}

#[test]
fn an_interpreter_with_certain_arguments_gets_no_variable_that_changes_what_it_does() {
    let place = Place::new();
    let folder = place.own.path();
    let mut server = place.server(&["git", "python3 -V", "env", "PYTHONUNBUFFERED=*"]);
    place.run(&mut server, "git init -q .");
    let config = folder.join(".git/config");
    let before = std::fs::read_to_string(&config).unwrap();
    let mut alias = |variable: &str| {
        let text = format!("{before}[alias]\n x = !env {variable} python3 -V\n");
        std::fs::write(&config, text).unwrap();
        place.run(&mut server, "env python3 -V; git x")
    };
    for honest in ["LANG=C", "PYTHONUNBUFFERED=1"] {
        let reply = alias(honest);
        assert_eq!(output(&reply).matches("Python 3").count(), 2, "{honest}: {reply}");
        assert_eq!(warnings(&reply), "", "{honest}: {reply}");
    }
    let reply = alias("LD_PRELOAD=/srv/x.so");
    assert_eq!(output(&reply).matches("Python 3").count(), 1, "{reply}");
    assert!(warnings(&reply).contains("the variable `LD_PRELOAD` could change"), "{reply}");
}

#[test]
fn a_program_gets_the_arguments_of_the_command_behind_whatever_starts_it() {
    let place = Place::new();
    let tool = place.own.path().join("bin/tool").display().to_string();
    let allow = [&format!("{tool} test"), "git", "timeout", "nice", "printf", "find", "xargs"];
    let mut server = place.server(&allow);
    place.run(&mut server, "git init -q .");
    let config = place.own.path().join(".git/config");
    let before = std::fs::read_to_string(&config).unwrap();
    let mut alias = |arguments: &str, command: &str| {
        let text = format!("{before}[alias]\n x = !{tool} {arguments}\n");
        std::fs::write(&config, text).unwrap();
        place.run(&mut server, &format!("{}; git x", command.replace("TOOL", &tool)))
    };
    for (command, honest, refused) in [
        ("timeout 5 TOOL test", "test", "test more"),
        ("nice TOOL test", "test", "test -x"),
        ("TOOL test \"$(printf a)\" end", "test b end", "test a b"),
        ("find . -maxdepth 0 -exec TOOL test {} end \\;", "test . end", "test . more"),
    ] {
        let reply = alias(honest, command);
        assert_eq!(warnings(&reply), "", "{command}: {reply}");
        assert!(output(&reply).ends_with(&format!("own {honest}\n")), "{command}: {reply}");
        let reply = alias(refused, command);
        assert!(!output(&reply).contains(&format!("own {refused}\n")), "{command}: {reply}");
    }
    // These add words of their own.
    for command in ["printf 'a b' | xargs TOOL test", "find . -maxdepth 0 -exec TOOL test {} +"] {
        let reply = alias("test", command);
        assert!(output(&reply).contains("own test "), "{command}: {reply}");
    }
}

#[test]
fn a_path_that_a_call_sets_does_not_add_folders() {
    let place = Place::new();
    program(&place.other.path().join("bin"), "ls", "other");
    let mut server = place.server(&["PATH=*", "ls"]);
    let path = format!("{}/bin:/usr/bin:/bin", place.other.path().display());
    let reply = server.call(json!({"command": "ls", "environment": {"PATH": path}}));
    assert!(!output(&reply).contains("other"), "{reply}");
    assert!(warnings(&reply).contains("was not allowed to execute"), "{reply}");
    assert_eq!(warnings(&server.run("ls /")), "");
}

#[test]
fn git_may_call_an_editor_that_does_nothing() {
    let place = Place::new();
    let mut server = place.server(&["git"]);
    let commit = "git init -q .; git config user.name a; git config user.email a@b; \
                  git commit -q --allow-empty -m x; git config core.editor true; \
                  git commit --amend --allow-empty";
    let reply = place.run(&mut server, commit);
    assert_eq!(warnings(&reply), "", "{reply}");
    assert_eq!(reply["return_code"], 0, "{reply}");
}

#[test]
fn what_a_relative_path_may_run_is_not_for_the_same_path_elsewhere() {
    let place = Place::new();
    let folder = place.own.path();
    for at in [folder.to_owned(), folder.join("sub")] {
        std::fs::create_dir_all(&at).unwrap();
        std::fs::write(at.join("rel"), "#!/bin/sh\nid -u\n").unwrap();
        std::fs::set_permissions(at.join("rel"), PermissionsExt::from_mode(0o755)).unwrap();
    }
    let settings = format!(
        "[shell_tool]\nworking_dir = {folder:?}\n[policy]\nallow = [\"./rel\", \"./sub/*\"]\n\
         [[policy.runs]]\nprogram = \"./rel\"\nmay_run = [\"id\"]\n"
    );
    let mut server = audit::start(&place.state, &settings);
    for (directory, command, runs) in
        [(".", "./rel", true), (".", "./sub/rel", false), ("sub", "./rel", false)]
    {
        let directory = folder.join(directory);
        let reply = server.call(json!({"command": command, "working_directory": directory}));
        assert_eq!(reply["return_code"] == json!(0), runs, "{reply}");
    }
}

#[test]
fn what_a_pattern_allows_is_not_what_it_is_called() {
    let place = Place::new();
    let script = place.own.path().join("scripts/make");
    std::fs::create_dir_all(script.parent().unwrap()).unwrap();
    std::fs::write(&script, "#!/bin/sh\nid -u\n").unwrap();
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
    for (rule, runs) in [("./scripts/*", false), ("./scripts/make", true), ("./*/make", true)] {
        let reply = place.run(&mut place.server(&[rule]), "./scripts/make");
        assert_eq!(reply["return_code"] == json!(0), runs, "{rule}: {reply}");
    }
    // Nor does it need what a program of that name needs.
    std::fs::write(&script, "#!/bin/sh\ngzip --version > /dev/null\n").unwrap();
    std::fs::rename(&script, script.with_file_name("tar")).unwrap();
    for (rule, runs) in [("./scripts/*", false), ("./scripts/tar", true)] {
        let reply = place.run(&mut place.server(&[rule]), "./scripts/tar");
        assert_eq!(reply["return_code"] == json!(0), runs, "{rule}: {reply}");
    }
    // Nor what a table allows to a program of that name.
    let folder = place.own.path();
    for (program, runs) in [("tar", false), ("./scripts/tar", true)] {
        let settings = format!(
            "[shell_tool]\nworking_dir = {folder:?}\n[policy]\nallow = [\"./scripts/*\"]\n\
             [[policy.runs]]\nprogram = {program:?}\nmay_run = [\"gzip\"]\n"
        );
        let reply = place.run(&mut audit::start(&place.state, &settings), "./scripts/tar");
        assert_eq!(reply["return_code"] == json!(0), runs, "{program}: {reply}");
    }
}
