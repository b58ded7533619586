//! Where commands may start, and that nothing leads elsewhere.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use support::{MCPZ, Server};

/// A folder with `allowed/inside`, `also` and `outside` in it, of which the first and the second are
/// allowed.
struct Ground {
    folder: tempfile::TempDir,
}

impl Ground {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ground = Self { folder };
        for name in ["allowed/inside", "also/there", "outside"] {
            fs::create_dir_all(ground.at(name)).unwrap();
        }
        ground
    }

    /// The real path of a name.
    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn server(&self) -> Server {
        let config = self.at("config.toml");
        let text = format!(
            "[shell_tool]\nworking_dir = {0:?}\nallowed_directories = [{0:?}, {1:?}]\n",
            self.at("allowed"),
            self.at("also")
        );
        fs::write(&config, text).unwrap();
        Server::start(&["--tools", "all", "--config", config.to_str().unwrap()])
    }
}

fn pwd(server: &mut Server, directory: &str) -> Value {
    server.call(json!({"command": "pwd -P", "working_directory": directory}))
}

fn runs_in(server: &mut Server, directory: &str, place: &Path) {
    let reply = pwd(server, directory);
    assert_eq!(reply["output"], format!("{}\n", place.display()), "{directory}");
}

fn is_refused(server: &mut Server, directory: &str) {
    let reply = pwd(server, directory);
    let output = reply["output"].as_str().unwrap();
    let key = "; add it to allowed_directories to allow it";
    assert!(output.contains(" is outside of ") && output.ends_with(key), "{directory}: {reply}");
}

#[test]
fn a_directory_within_is_entered_however_it_is_called() {
    let ground = Ground::new();
    symlink("inside", ground.at("allowed/relative")).unwrap();
    symlink(ground.at("allowed/inside"), ground.at("allowed/absolute")).unwrap();
    symlink(ground.at("also/there"), ground.at("allowed/other")).unwrap();
    symlink(ground.at("allowed"), ground.at("way")).unwrap();
    let mut server = ground.server();
    let text = |name: &str| ground.at(name).to_str().unwrap().to_owned();
    let (root, inside) = (ground.at("allowed"), ground.at("allowed/inside"));
    assert_eq!(server.run("pwd -P")["output"], format!("{}\n", root.display()));
    for directory in [".", "inside/..", "./inside/../.", &text("allowed"), &text("way")] {
        runs_in(&mut server, directory, &root);
    }
    for directory in [
        "inside",
        "relative",
        "absolute",
        "../allowed/inside",
        "inside/../../allowed/inside/.",
        &text("allowed/inside"),
        &text("way/relative"),
        &text("outside/../allowed/inside"),
    ] {
        runs_in(&mut server, directory, &inside);
    }
    for directory in ["other", "../also/there", &text("also/there")] {
        runs_in(&mut server, directory, &ground.at("also/there"));
    }
}

#[test]
fn nothing_leads_out() {
    let ground = Ground::new();
    let names = ["link", "parent", "root", "magic", "own"];
    let targets =
        [&ground.at("outside"), Path::new(".."), Path::new("/"), Path::new("/proc/self/root")];
    for (name, target) in names.iter().zip(targets) {
        symlink(target, ground.at("allowed").join(name)).unwrap();
    }
    // Of the server, which is within: links of this kind are refused wherever they lead.
    symlink("/proc/self/cwd", ground.at("allowed/own")).unwrap();
    let mut server = ground.server();
    let outside = ground.at("outside");
    let magic = format!("/proc/self/root{}", ground.at("allowed").display());
    for directory in ["..", "/", "inside/../..", "../outside", outside.to_str().unwrap(), &magic] {
        is_refused(&mut server, directory);
    }
    for name in names {
        is_refused(&mut server, name);
        is_refused(&mut server, ground.at("allowed").join(name).to_str().unwrap());
    }
    for (directory, why) in [("nowhere", "No such file"), ("/no/such", "No such file")] {
        let reply = pwd(&mut server, directory);
        let output = reply["output"].as_str().unwrap();
        let begins = "Failed to execute: cannot enter the working directory ";
        assert!(output.starts_with(begins) && output.contains(why), "{reply}");
    }
    fs::write(ground.at("allowed/file"), "").unwrap();
    assert!(pwd(&mut server, "file")["output"].as_str().unwrap().contains("Not a directory"));
}

#[test]
fn a_refusal_names_the_link_that_leads_out() {
    let ground = Ground::new();
    fs::create_dir(ground.at("outside/deep")).unwrap();
    symlink(ground.at("outside"), ground.at("allowed/link")).unwrap();
    let mut server = ground.server();
    let (link, outside) = (ground.at("allowed/link"), ground.at("outside"));
    for below in ["", "deep"] {
        let named = Path::new("link").join(below);
        let reply = pwd(&mut server, named.to_str().unwrap());
        let expected = format!(
            "Failed to execute: {} (a symbolic link leads to {}) is outside of {}; add it to allowed_directories \
             to allow it",
            link.join(below).display(),
            outside
                .components()
                .chain(Path::new(below).components())
                .collect::<PathBuf>()
                .display(),
            ground.at("allowed").display()
        );
        assert_eq!(reply["output"], expected);
    }
}

/// Ends whoever looks, when it is over or has failed.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_link_swapped_in_while_commands_start_never_leads_out() {
    let ground = Ground::new();
    let (place, trap) = (ground.at("allowed/place"), ground.at("allowed/trap"));
    fs::create_dir_all(place.join("deep")).unwrap();
    fs::create_dir_all(ground.at("outside/deep")).unwrap();
    symlink(ground.at("outside"), &trap).unwrap();
    let mut server = ground.server();
    let over = AtomicBool::new(false);
    let (mut ran, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let flags = rustix::fs::RenameFlags::EXCHANGE;
                let (here, from) = (rustix::fs::CWD, &place);
                rustix::fs::renameat_with(here, from, here, &trap, flags).unwrap();
            }
        });
        let _over = Over(&over);
        let wanted = ["place", "place/deep", "place/../place", place.to_str().unwrap()];
        let calls: Vec<_> = (0..400)
            .map(|call| {
                let directory = wanted[call % wanted.len()];
                let arguments = json!({"command": "pwd -P", "working_directory": directory});
                server.ask("tools/call", json!({"name": "execute_command", "arguments": arguments}))
            })
            .collect();
        for call in calls {
            let answer = server.answer(call);
            let reply = &answer["result"]["structuredContent"];
            let output = reply["output"].as_str().unwrap();
            match reply["return_code"] == 0 {
                // It may have another name by then.
                true => {
                    let within = format!("{}/", ground.at("allowed").display());
                    assert!(output.starts_with(&within), "{reply}");
                    ran += 1;
                }
                false => {
                    assert!(output.starts_with("Failed to execute: "), "{reply}");
                    refused += 1;
                }
            }
        }
    });
    assert!(ran > 10 && refused > 10, "{ran} ran, {refused} were refused");
}

#[test]
fn an_allowed_directory_that_becomes_a_link_is_not_followed() {
    let ground = Ground::new();
    let mut server = ground.server();
    runs_in(&mut server, "inside", &ground.at("allowed/inside"));
    fs::rename(ground.at("allowed"), ground.at("moved")).unwrap();
    let gone = server.run("pwd -P");
    assert!(gone["output"].as_str().unwrap().contains("No such file"), "{gone}");
    symlink(ground.at("moved"), ground.at("allowed")).unwrap();
    for directory in ["inside", ".", ground.at("allowed/inside").to_str().unwrap()] {
        is_refused(&mut server, directory);
    }
    runs_in(&mut server, ground.at("also").to_str().unwrap(), &ground.at("also"));
    fs::remove_file(ground.at("allowed")).unwrap();
    fs::create_dir_all(ground.at("allowed/inside")).unwrap();
    runs_in(&mut server, "inside", &ground.at("allowed/inside"));
}

#[test]
fn an_allowed_directory_can_be_a_link_from_the_beginning() {
    let ground = Ground::new();
    let moved = ground.at("moved");
    fs::rename(ground.at("allowed"), &moved).unwrap();
    symlink(&moved, ground.at("allowed")).unwrap();
    let mut server = ground.server();
    runs_in(&mut server, "inside", &moved.join("inside"));
    runs_in(&mut server, ground.at("allowed/inside").to_str().unwrap(), &moved.join("inside"));
    // What it points to later was not allowed.
    fs::remove_file(ground.at("allowed")).unwrap();
    symlink(ground.at("outside"), ground.at("allowed")).unwrap();
    is_refused(&mut server, ".");
}

#[test]
fn another_tool_is_kept_within_by_handle_too() {
    let ground = Ground::new();
    symlink(ground.at("allowed/inside"), ground.at("allowed/absolute")).unwrap();
    symlink(ground.at("outside"), ground.at("allowed/out")).unwrap();
    let mut server = ground.server();
    let mut run = |directory: &str| {
        let arguments = json!({
            "command": "pwd -P", "directory": directory, "is_background": false,
        });
        server.tool("run_shell_command", arguments)["structuredContent"].clone()
    };
    for (directory, place) in [("inside", "inside"), ("absolute", "inside"), ("../also", "../also")]
    {
        let reply = run(directory);
        let place = ground.at("allowed").join(place).canonicalize().unwrap();
        assert_eq!(reply["stdout"], format!("{}\n", place.display()), "{reply}");
    }
    for directory in ["out", "../outside", ".."] {
        let reply = run(directory);
        let error = reply["error"].as_str().unwrap();
        let root = ground.at("allowed");
        let mut named = root.join(directory).display().to_string();
        if directory == "out" {
            named =
                format!("{named} (a symbolic link leads to {})", ground.at("outside").display());
        }
        let expected = format!(
            "Failed to execute: {named} is outside of {}; add it to allowed_directories to allow it",
            root.display()
        );
        assert_eq!(error, expected);
    }
}

#[test]
fn a_system_that_cannot_do_it_runs_nothing_in_a_directory_that_is_asked_for() {
    let ground = Ground::new();
    let traced = Command::new("strace").args(["-o", "/dev/null", "true"]).status();
    if !traced.is_ok_and(|status| status.success()) {
        return;
    }
    ground.server();
    for (errno, words) in
        [("ENOSYS", "Function not implemented"), ("EPERM", "Operation not permitted")]
    {
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=openat2", "-e"]);
        command.arg(format!("inject=openat2:error={errno}")).args([MCPZ, "server", "shell"]);
        command.arg("--config").arg(ground.at("config.toml"));
        let mut server = Server::from_command(&mut command);
        server.initialize("2025-11-25");
        let reply = pwd(&mut server, ".");
        let output = reply["output"].as_str().unwrap();
        let expected = "Failed to execute: cannot keep commands within the allowed directories";
        assert!(output.starts_with(expected) && output.contains(words), "{reply}");
        // Only the person who started the server has named the working directory.
        assert_eq!(server.run("pwd -P")["output"], format!("{}\n", ground.at("allowed").display()));
    }
}
