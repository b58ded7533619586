//! What commands in a sandbox may read, write and reach, and what is said of what they may not.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::fs::{self, Permissions};
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use support::sandbox::{
    NOBODY, Place, fails, programs_without, refused, tool, visible_folder, warnings, works,
};
use support::{MCPZ, Server, audit, wait_until};

const WORKSPACE: [&str; 2] = ["--sandbox", "workspace"];

#[test]
fn what_is_refused_is_explained_and_on_record() {
    let place = Place::new();
    place.write(".ssh/id_ed25519", "hunter2");
    place.write("work/.git/config", "[core]\n");
    place.write(".tool/data/x", "");
    let mut server = place.start_at_home(&WORKSPACE, "");
    let home = place.home();
    let tool_folder = format!("`--write {}` (`write_dirs`", home.join(".tool").display());
    let elsewhere = format!("commands can write in {} and /tmp", home.join("work").display());
    for (command, path, setting) in [
        ("touch ~/new", home.join("new"), &*elsewhere),
        ("touch ~/.tool/data/new", home.join(".tool/data/new"), &tool_folder),
        ("mkdir ~/.tool/data/a", home.join(".tool/data/a"), &tool_folder),
        ("cat ~/.ssh/id_ed25519", home.join(".ssh/id_ed25519"), "`deny_read`"),
        (
            "echo x >> .git/config",
            home.join("work/.git/config"),
            "`--unprotect .git` (`unprotected`",
        ),
        ("mkdir .vscode; false", home.join("work/.vscode"), "`--unprotect .vscode` (`unprotected`"),
    ] {
        let reply = fails(&mut server, command);
        let said = warnings(&reply);
        assert!(said.contains(path.to_str().unwrap()) && said.contains(setting), "{reply}");
    }
    let fine = server.run("touch file; chmod 0 file; cat /nonexistent; false");
    assert!(fine["warnings"].is_null(), "{fine}");
    // It succeeds as a whole.
    let chained = server.run("touch ~/new; mkdir -p ~/.tool/data/a; cat /nonexistent; true");
    let said = warnings(&chained);
    assert_eq!(chained["return_code"], 0, "{chained}");
    assert!(said.contains(&elsewhere) && said.contains(&tool_folder), "{chained}");
    let harmless = server.run("echo '/etc/x: Read-only file system'; ls /root; true");
    assert!(harmless["warnings"].is_null(), "{harmless}");
    // So does this, although it could not read what is hidden.
    let hidden = home.join(".ssh/id_ed25519");
    let read = server.run("cat ~/.ssh/id_ed25519 | head -1");
    assert_eq!(read["return_code"], 0, "{read}");
    assert!(warnings(&read).contains(&format!("{} is hidden", hidden.display())), "{read}");
    let session = server.call(json!({"command": "cd ~; echo x > new", "session": "s"}));
    assert!(warnings(&session).contains(home.join("new").to_str().unwrap()), "{session}");
    let job = server.call(json!({"command": "touch ~/.tool/new", "background": true}));
    let ended = json!({"job_id": job["job_id"], "wait_for": "exit"});
    assert!(warnings(&tool(&mut server, "read_job", ended)).contains(&tool_folder));
    let url = server.run("echo 'tool error EACCES https://registry.example/left-pad'; false");
    assert!(url["warnings"].is_null(), "{url}");
    drop(server);
    let trail = fs::read_to_string(place.state().join("mcpz/audit.jsonl")).unwrap();
    let records = trail.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    assert_eq!(records.filter(|record| !record["refused"].is_null()).count(), 10, "{trail}");
}

#[test]
fn flags_open_hide_and_unprotect_more() {
    let place = Place::new();
    place.write("notes/x", "");
    place.write("private/x", "secret");
    place.write("private2/x", "secret");
    let [notes, private] =
        ["notes", "private"].map(|name| place.home().join(name).display().to_string());
    let flags =
        ["--sandbox", "workspace", "--write", &notes, "--hide", &private, "--unprotect", ".vscode"];
    // A flag adds to the file.
    let mut server = place.start_at_home(&flags, "[sandbox]\ndeny_read = [\"~/private2\"]\n");
    let done = server.run(
        "echo y > ~/notes/x && mkdir .vscode && echo z > .vscode/settings.json && cat ~/notes/x",
    );
    assert_eq!(done["output"], "y\n", "{done}");
    fails(&mut server, "cat ~/private/x");
    fails(&mut server, "cat ~/private2/x");
    for flag in ["--write", "--hide", "--unprotect", "--net"] {
        let call = Command::new(MCPZ)
            .args(["call", flag, "x", "execute_command", "command=true"])
            .output();
        let said = String::from_utf8(call.unwrap().stderr).unwrap();
        assert!(said.contains(&format!("{flag} needs a sandbox")), "{said}");
    }
}

/// Tries every system call that could set the bits of a mode, and prints those that did.
const SET_IDS: &str = r#"
import ctypes, os, platform, stat
libc = ctypes.CDLL(None, use_errno=True)
at, here = 0o100 | os.O_WRONLY, -100
how = (ctypes.c_ulonglong * 3)(at, 0o4755, 0)
calls = {
    "chmod": lambda name: os.chmod(name, MODE),
    "fchmod": lambda name: os.fchmod(os.open(name, os.O_RDONLY), MODE),
    "fchmodat": lambda name: os.chmod(os.path.basename(name), MODE, dir_fd=os.open(".", os.O_RDONLY)),
    "fchmodat2": lambda name: libc.syscall(452, here, name.encode(), MODE, 0),
    "open": lambda name: os.open(name + "-new", at, MODE),
    "openat2": lambda name: libc.syscall(437, here, (name + "-new").encode(), how, 24),
    "mknod": lambda name: os.mknod(name + "-new", stat.S_IFREG | MODE),
    "mkdir": lambda name: os.mkdir(name + "-new", MODE),
}
if platform.machine() == "x86_64":
    calls["old open"] = lambda name: libc.syscall(2, (name + "-new").encode(), at, MODE)
    calls["creat"] = lambda name: libc.syscall(85, (name + "-new").encode(), MODE)
    calls["old mknod"] = lambda name: libc.syscall(133, (name + "-new").encode(), stat.S_IFREG | MODE, 0)
os.umask(0)
for MODE in 0o4755, 0o6711, 0o104755:
    for call, act in calls.items():
        name = "file-%o-%s" % (MODE, call)
        open(name, "w").close()
        try: act(name)
        except OSError: pass
for name in os.listdir("."):
    mode = os.stat(name).st_mode
    if mode & 0o4000 or (mode & 0o2000 and not stat.S_ISDIR(mode)): print(name)
"#;

#[test]
fn no_command_makes_a_program_that_runs_as_our_user_for_others() {
    let place = Place::new();
    place.write("work/set_ids.py", SET_IDS);
    let mut server = place.workspace();
    assert_eq!(works(&mut server, "mkdir set && cd set && python3 ../set_ids.py"), "");
    let told = fails(&mut server, "touch file && chmod u+s file");
    assert!(told["output"].as_str().unwrap().contains("Operation not permitted"), "{told}");
    fails(&mut server, "install -m 4755 /bin/true copy");
    // Everything else that people do with modes.
    works(&mut server, "chmod 700 file && chmod +t,g+w,o=r . && install -m 755 /bin/true copy");
    works(&mut server, "mkdir -m 2775 shared && chmod g+s . && touch shared/file");
    works(&mut server, "git init -q --shared=group repository && cp -a repository copied");
}

#[test]
fn a_reader_writes_nothing_but_its_own_temporary_files() {
    let place = Place::new();
    place.write("work/file", "seen");
    let mut server = place.start(&["--sandbox", "read-only"], "");
    assert_eq!(works(&mut server, "cat file"), "seen");
    works(&mut server, "echo x > /tmp/x && echo y > /var/tmp/y && mktemp");
    assert_eq!(works(&mut server, "cat /tmp/x"), "x\n");
    let refused = fails(&mut server, "echo x > file");
    assert!(warnings(&refused).contains("`--sandbox workspace`"), "{refused}");
    drop(server);
    assert_eq!(place.left(), ["file"]);
}

#[test]
fn what_the_configuration_allows_and_hides_is_so() {
    let place = Place::new();
    place.write("other/file", "");
    place.write("notes/private.txt", "hunter2");
    place.write("work/.env", "hunter2");
    let config = format!(
        "[sandbox]\nmode = \"workspace\"\nwrite_dirs = [\"~/other\"]\ntmp_size = \"1MB\"\n\
         deny_read = [{:?}, \".env\"]\n",
        place.home().join("notes")
    );
    let mut server = place.start_at_home(&[], &config);
    works(&mut server, "echo x > ../other/new");
    fails(&mut server, "cat ../notes/private.txt");
    let hidden = fails(&mut server, "cat .env");
    assert!(!hidden.to_string().contains("hunter2"), "{hidden}");
    fails(&mut server, "echo x > ../other/.vscode/settings.json");
    let full = fails(&mut server, "head -c 3000000 /dev/zero > /tmp/large");
    assert!(full["output"].as_str().unwrap().contains("No space left"), "{full}");
}

#[test]
fn what_is_in_somebodys_closed_folder_keeps_no_sandbox_from_being_made_and_stays_hidden() {
    let (place, theirs) = (Place::new(), visible_folder());
    let [secret, socket] = ["secret", "their.sock"].map(|name| theirs.path().join(name));
    fs::write(&secret, "hunter2").unwrap();
    let _listener = UnixListener::bind(&socket).unwrap();
    fs::set_permissions(theirs.path(), Permissions::from_mode(0o700)).unwrap();
    if rustix::process::geteuid().is_root() {
        chown(theirs.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let config = format!("[sandbox]\ndeny_read = [{secret:?}]\n");
    let mut server = place.start(&WORKSPACE, &config);
    works(&mut server, "true");
    fs::set_permissions(theirs.path(), Permissions::from_mode(0o777)).unwrap();
    fails(&mut server, &format!("cat {secret:?}"));
    let connect = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])";
    fails(&mut server, &format!("python3 -c '{connect}' {socket:?}"));
}

#[test]
fn what_configures_other_programs_cannot_be_written_nor_stay_where_it_was_not() {
    let place = Place::new();
    place.git(&["init", "-q"]);
    fs::remove_dir_all(place.work().join(".git/hooks")).unwrap();
    place.write("work/.bashrc", "");
    place.write("work/.envrc", "");
    let mut server = place.workspace();
    for command in
        ["git config core.fsmonitor x", "echo x >> .bashrc", "rm -f .envrc", "mv .git elsewhere"]
    {
        fails(&mut server, command);
    }
    for (command, name) in [
        ("mkdir -p .git/hooks; echo x > .git/hooks/pre-commit", ".git/hooks/pre-commit"),
        ("mkdir -p .vscode; echo x > .vscode/tasks.json", ".vscode"),
        ("echo '{}' > .mcp.json", ".mcp.json"),
    ] {
        let reply = server.run(command);
        let said = warnings(&reply);
        let moved = format!("{} was moved to ", place.work().join(name).display());
        assert!(said.contains(&moved) && said.contains("/quarantine/"), "{reply}");
        assert!(place.work().join(name).symlink_metadata().is_err());
    }
    drop(server);
    assert_eq!(place.left(), [".bashrc", ".envrc", ".git"]);
}

#[test]
fn what_is_replaced_outside_is_protected_in_the_next_command() {
    let place = Place::new();
    place.write("work/.mcp.json", "{}");
    let mut server = place.workspace();
    let job = server.call(json!({"command": "cat", "background": true}))["job_id"].clone();
    for round in 0..3 {
        fails(&mut server, "echo x >> .mcp.json");
        // An even number of times: what is free again is the number of the next but one.
        for new in 0..4 {
            place.write("new", &format!("{round} {new}"));
            fs::rename(place.home().join("new"), place.work().join(".mcp.json")).unwrap();
        }
        let reply = fails(&mut server, "echo x >> .mcp.json");
        assert!(warnings(&reply).contains(".mcp.json changed; /tmp is empty now"), "{reply}");
        let kept = fs::read_to_string(place.work().join(".mcp.json")).unwrap();
        assert_eq!(kept, format!("{round} 3"));
    }
    // What ran before goes on.
    let typed = json!({"job_id": job, "text": "still\n", "wait_for": "text", "pattern": "still"});
    assert_eq!(tool(&mut server, "write_job", typed)["matched"], "still");
}

#[test]
fn a_git_configuration_that_is_replaced_outside_takes_no_new_sandbox() {
    let place = Place::new();
    place.git(&["init", "-q"]);
    let config = place.work().join(".git/config");
    let mut server = place.workspace();
    works(&mut server, "touch /tmp/lasting");
    for round in 0..4 {
        place.git(&["config", "alias.outside", &format!("!echo {round}")]);
    }
    assert_eq!(works(&mut server, "git outside && cat /tmp/lasting"), "3\n");
    let before = fs::read(&config).unwrap();
    for command in ["git config alias.outside '!evil'", "echo '[core] pager = x' >> .git/config"] {
        let reply = server.run(command);
        assert!(warnings(&reply).contains("config was put back"), "{reply}");
        assert_eq!(fs::read(&config).unwrap(), before);
    }
    works(&mut server, "git config branch.inside.merge x");
    // Also while something runs that could have done it.
    server.call(json!({"command": "cat", "background": true}));
    place.git(&["config", "branch.outside.merge", "x"]);
    works(&mut server, "git config branch.again.merge x && cat /tmp/lasting");
    let merges = place.git(&["config", "--get-regexp", "branch.*merge"]);
    assert_eq!(merges, "branch.inside.merge x\nbranch.outside.merge x\nbranch.again.merge x\n");
}

#[test]
fn a_secret_that_comes_later_is_hidden_from_the_next_command() {
    let place = Place::new();
    let mut server = place.start_at_home(&WORKSPACE, "");
    works(&mut server, "true");
    place.write(".netrc", "hunter2");
    let reply = fails(&mut server, "cat ~/.netrc");
    assert!(!reply.to_string().contains("hunter2"), "{reply}");
}

#[test]
fn without_a_list_nothing_is_reached_and_the_reason_is_told() {
    let place = Place::new();
    let fetch = |host: &str| format!("curl -sS --max-time 20 https://{host}/");
    let mut server = place.workspace();
    let reply = fails(&mut server, &fetch("example.com"));
    let said = warnings(&reply);
    assert!(said.contains("no connection to example.com port 443"), "{reply}");
    assert!(said.contains("`--net example.com` would allow it"), "{reply}");
    // Not by going around the proxy either.
    fails(&mut server, "curl -sS --noproxy '*' --max-time 20 https://1.1.1.1/");
    drop(server);

    let state = support::state();
    let list = [&WORKSPACE[..], &["--net", "*.example.org"]].concat();
    let mut command = place.command(&list, "");
    let mut server = Server::from_command(command.env("XDG_STATE_HOME", state.path()));
    server.initialize("2025-11-25");
    for (host, reason) in [
        ("example.com", "the host is not in the list"),
        ("127.0.0.1", "127.0.0.1 is a loopback address"),
        ("a.example.org:22", "not with this port"),
    ] {
        // Their own loopback is not what they ask for here.
        let reply = fails(&mut server, &format!("unset no_proxy NO_PROXY; {}", fetch(host)));
        assert!(warnings(&reply).contains(reason), "{reply}");
    }
    drop(server);
    let refused = |record: &Value| record["refused"][0].as_str().map(str::to_owned);
    let refused: Vec<_> = audit::settled(&state).iter().filter_map(refused).collect();
    assert_eq!(refused.len(), 3, "{refused:?}");
    assert!(refused[0].contains("example.com"), "{refused:?}");
}

#[test]
fn with_the_network_on_what_others_serve_is_reached() {
    let place = Place::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let reach = format!("bash -c ': < /dev/tcp/127.0.0.1/{}'", address.port());
    fails(&mut place.workspace(), &reach);
    works(&mut place.start(&[&WORKSPACE[..], &["--net", "on"]].concat(), ""), &reach);
}

#[test]
fn a_confined_command_starts_in_the_working_directory_or_below() {
    let place = Place::new();
    fs::create_dir(place.work().join("below")).unwrap();
    std::os::unix::fs::symlink("/etc", place.work().join("out")).unwrap();
    let work = place.work().to_str().unwrap().to_owned();
    let mut server = place.start(&[&WORKSPACE[..], &["--working-dir", &work]].concat(), "");
    let mut pwd = |directory: &str| {
        let arguments = json!({"command": "pwd -P", "working_directory": directory});
        server.call(arguments)["output"].as_str().unwrap().to_owned()
    };
    assert_eq!(pwd("below"), format!("{work}/below\n"));
    for outside in ["out", "..", "/etc"] {
        let said = pwd(outside);
        assert!(said.contains(&format!("is outside of {work}; add it to allowed_dir")), "{said}");
    }
}

#[test]
fn what_cannot_be_is_an_error_at_the_start() {
    let place = Place::new();
    let with = |more: &[&'static str]| [&WORKSPACE[..], more].concat();
    for directory in ["/", "/tmp", place.home().to_str().unwrap()] {
        let flags = [&WORKSPACE[..], &["--working-dir", directory]].concat();
        let said = refused(place.command(&flags, "").env("HOME", place.home()));
        let wide = format!("{directory} is too broad to be writable; choose a project folder");
        assert!(said.contains(&wide), "{said}");
    }
    for (net, named) in [("exa mple.com", "exa mple.com"), ("a.org,*.*", "*.*"), ("", "--net")] {
        let said = place.refused(&with(&["--net", net]), "");
        assert!(said.contains("--net is invalid") && said.contains(named), "{said}");
    }
    let said = place.refused(&["--net", "github.com"], "");
    assert!(said.contains("--sandbox workspace"), "{said}");
    let said = place.refused(&WORKSPACE, "[sandbox]\nwrite_dirs = [\"/nonexistent\"]\n");
    assert!(said.contains("cannot find /nonexistent"), "{said}");
    std::os::unix::fs::symlink("/etc", place.work().join(".vscode")).unwrap();
    let said = place.refused(&WORKSPACE, "");
    assert!(said.contains(".vscode is a link") && said.contains("`unprotected`"), "{said}");
}

#[test]
fn without_bubblewrap_there_is_less_which_is_said_or_nothing() {
    let place = Place::new();
    place.write("work/file", "seen");
    let programs = programs_without("bwrap");
    let command = |flags: &[&str]| {
        let mut command = place.command(flags, "");
        command.env("PATH", programs.path());
        command
    };
    let said = refused(&mut command(&WORKSPACE));
    assert!(said.contains("only bubblewrap can protect it"), "{said}");
    assert!(said.contains("bwrap is not on PATH: install the package bubblewrap"), "{said}");
    let said = refused(&mut command(&["--sandbox", "read-only", "--net", "github.com"]));
    assert!(said.contains("--net needs bubblewrap"), "{said}");
    assert!(said.contains("bwrap is not on PATH: install the package bubblewrap"), "{said}");

    let mut reading = command(&["--sandbox", "read-only"]);
    let mut server = Server::from_command(reading.stderr(Stdio::piped()));
    server.initialize("2025-11-25");
    assert_eq!(works(&mut server, "cat file"), "seen");
    fails(&mut server, "echo x > file");
    fails(&mut server, "python3 -c 'import socket; socket.socket()'");
    let own = works(&mut server, "echo x > $TMPDIR/x && echo $TMPDIR");
    server.close_stdin();
    server.wait();
    let mut said = String::new();
    server.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("warning: only Landlock and seccomp confine commands"), "{said}");
    assert!(said.contains("install the package bubblewrap"), "{said}");
    wait_until("its own folder is gone", || (!fs::exists(own.trim()).unwrap()).then_some(()));
}

#[test]
fn without_bubblewrap_a_folder_is_written_where_nothing_in_it_needs_protection() {
    let place = Place::new();
    let programs = programs_without("bwrap");
    let names =
        ".git .mcp.json .claude .codex .cursor .gemini .idea .kiro .qwen .vscode .windsurf .zed";
    let names: Vec<_> = names.split(' ').collect();
    let mut command = place.command(&WORKSPACE, &format!("[sandbox]\nunprotected = {names:?}\n"));
    command.env("PATH", programs.path()).stderr(Stdio::null());
    let mut server = Server::from_command(&mut command);
    server.initialize("2025-11-25");
    works(&mut server, "echo x > file");
    fails(&mut server, "python3 -c 'import os; os.open(\"set\", os.O_CREAT, 0o4755)'");
    let refused = fails(&mut server, "echo x > ../file");
    assert!(warnings(&refused).contains("`write_dirs`"), "{refused}");
}
