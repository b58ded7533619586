//! A sandbox goes on whatever changes in a home: secrets stay hidden, and all else is seen as it is.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;

use serde_json::json;
use support::sandbox::{Place, fails, works};
use support::{Server, children, kill, name, wait_until};

const FLAGS: [&str; 2] = ["--sandbox", "workspace"];

/// A place with a home that has secrets and other files, all readable by everybody.
fn place(place: Place) -> Place {
    for name in [".ssh/id", ".claude.json", ".config/gh/hosts.yml", ".bash_history"] {
        write(&place, name, "secret");
    }
    for name in [".gitconfig", ".config/htop/htoprc", "notes"] {
        write(&place, name, "plain");
    }
    place
}

fn write(place: &Place, name: &str, text: &str) {
    let path = place.write(name, text);
    open_up(&path, 0o644);
    path.ancestors()
        .skip(1)
        .take_while(|it| **it != place.home())
        .for_each(|it| open_up(it, 0o755));
}

fn open_up(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Writes a file in the way that most programs do.
fn replace(place: &Place, name: &str, text: &str) {
    let new = format!("{name}.new");
    write(place, &new, text);
    fs::rename(place.home().join(new), place.home().join(name)).unwrap();
}

/// Leaves something in the sandbox by which it is known again.
fn mark(server: &mut Server) {
    works(server, "echo marked > /tmp/mark");
}

fn is_the_same(server: &mut Server) -> bool {
    let reply = server.run("cat /tmp/mark");
    assert!(reply["warnings"].is_null(), "{reply}");
    reply["output"] == "marked\n"
}

#[test]
fn secrets_that_come_or_are_replaced_stay_hidden_in_the_same_sandbox() {
    for place in [place(Place::new()), place(Place::ordinary())] {
        let mut server = place.start_at_home(&FLAGS, "[sandbox]\ndeny_read = [\"~/private\"]\n");
        mark(&mut server);
        let secrets = [
            ".ssh/id",
            ".claude.json",
            ".claude.json.mcpz-backup",
            ".config/gh/hosts.yml",
            ".bash_history",
            ".netrc",
            ".aws/credentials",
            ".config/op/config",
            "private",
        ];
        for round in 0..3 {
            for secret in secrets {
                let reply = fails(&mut server, &format!("cat ~/{secret}"));
                assert!(!reply.to_string().contains("secret\\n"), "{round}: {reply}");
            }
            for secret in secrets {
                replace(&place, secret, "secret");
            }
        }
        for secret in [".ssh", ".config/gh"] {
            fs::rename(place.home().join(secret), place.home().join("elsewhere")).unwrap();
            write(&place, &format!("{secret}/new"), "secret");
            fails(&mut server, &format!("cat ~/{secret}/new"));
            fails(&mut server, &format!("ls ~/{secret}"));
            fs::remove_dir_all(place.home().join("elsewhere")).unwrap();
        }
        assert!(is_the_same(&mut server));
    }
}

#[test]
fn other_files_are_seen_as_they_are_in_the_same_sandbox() {
    for place in [place(Place::new()), place(Place::ordinary())] {
        let mut server = place.start_at_home(&FLAGS, "");
        mark(&mut server);
        for text in ["plain", "new", "newer"] {
            for name in [".gitconfig", ".config/htop/htoprc", "notes"] {
                assert_eq!(works(&mut server, &format!("cat ~/{name}")), text, "{name}");
            }
            let next = if text == "plain" { "new" } else { "newer" };
            replace(&place, ".gitconfig", next);
            replace(&place, ".config/htop/htoprc", next);
            write(&place, "notes", next);
        }
        write(&place, "later/file", "later");
        std::os::unix::fs::symlink("notes", place.home().join("link")).unwrap();
        fs::remove_file(place.home().join("notes")).unwrap();
        write(&place, "notes", "again");
        write(&place, ".local/share/app/data", "data");
        let all = "cat ~/later/file ~/link ~/.local/share/app/data 2>&1";
        // What is new is shown once it is a second old.
        wait_until("it is shown", || (server.run(all)["output"] == "lateragaindata").then_some(()));
        fs::remove_dir_all(place.home().join("later")).unwrap();
        fails(&mut server, "ls ~/later");
        assert_eq!(works(&mut server, "echo x > file; cat file; cat ~/work/file"), "x\nx\n");
        fails(&mut server, "touch ~/new");
        fails(&mut server, "rm ~/link");
        assert!(is_the_same(&mut server));
    }
}

#[test]
fn a_command_that_looks_all_the_time_never_sees_a_secret() {
    let place = place(Place::ordinary());
    let mut server = place.start_at_home(&FLAGS, "");
    let look = "echo ready; while [ ! -e end ]; do cat ~/.claude.json ~/.claude.json.new 2>/dev/null; done; echo done";
    let call = server.start_call(json!({"command": look, "timeout": 100}));
    server.wait_for_output(call, "ready");
    for _ in 0..300 {
        replace(&place, ".claude.json", "secret");
        // Other commands have the homes renewed meanwhile.
        works(&mut server, "true");
    }
    fs::write(place.work().join("end"), "").unwrap();
    let reply = server.answer(call)["result"]["structuredContent"].clone();
    assert_eq!(reply["output"], "ready\ndone\n", "{reply}");
}

#[test]
fn a_helper_that_is_stopped_is_woken_and_does_not_outlive_its_server() {
    let place = place(Place::new());
    let mut server = place.start_at_home(&FLAGS, "");
    works(&mut server, "true");
    for text in ["new", "newer"] {
        kill("STOP", helper(&server));
        replace(&place, ".gitconfig", text);
        assert_eq!(works(&mut server, "cat ~/.gitconfig"), text);
    }
    let helper = helper(&server);
    kill("STOP", helper);
    server.signal("KILL");
    server.wait();
    wait_until("it has ended", || (name(helper) != "mcpz-homes").then_some(()));
}

fn helper(server: &Server) -> u32 {
    let below = children(server.child.id());
    below.into_iter().find(|pid| name(*pid) == "mcpz-homes").unwrap()
}

#[test]
fn in_a_home_with_too_many_files_secrets_are_hidden_one_by_one() {
    let place = place(Place::new());
    for number in 0..20_001 {
        fs::write(place.home().join(number.to_string()), "").unwrap();
    }
    let mut server = place.start_at_home(&FLAGS, "");
    fails(&mut server, "cat ~/.claude.json ~/.ssh/id ~/.config/gh/hosts.yml");
    assert_eq!(works(&mut server, "cat ~/.gitconfig; ls ~ | wc -l"), "plain20003\n");
    replace(&place, ".claude.json", "secret");
    let reply = fails(&mut server, "cat ~/.claude.json");
    assert!(reply["warnings"].to_string().contains("sandbox recreated"), "{reply}");
}

#[test]
fn a_helper_that_is_killed_costs_the_sandbox_and_nothing_else() {
    let place = place(Place::new());
    let mut server = place.start_at_home(&FLAGS, "");
    mark(&mut server);
    kill("KILL", helper(&server));
    replace(&place, ".gitconfig", "new");
    replace(&place, ".claude.json", "secret");
    let reply = server.run("cat ~/.gitconfig; ls /tmp");
    assert_eq!(reply["output"], "new", "{reply}");
    fails(&mut server, "cat ~/.claude.json");
    drop(server);
}

#[test]
fn a_socket_that_is_bound_later_is_hidden_from_later_commands() {
    let place = Place::new();
    place.write("other/file", "");
    let mut server = place.start_at_home(&["--sandbox", "workspace"], "");
    works(&mut server, "true");
    let path = place.home().join("other/late.sock");
    let _listener = UnixListener::bind(&path).unwrap();
    let connect = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])";
    let command = format!("python3 -c '{connect}' {path:?}");
    // Nobody looks for sockets before every command.
    wait_until("the socket is hidden", || (server.run(&command)["return_code"] != 0).then_some(()));
    // One that takes its place is, too.
    fs::remove_file(&path).unwrap();
    let _another = UnixListener::bind(&path).unwrap();
    wait_until("the other socket is hidden", || {
        (server.run(&command)["return_code"] != 0).then_some(())
    });
}
