//! A command cannot put another file in place of a program that it may execute.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use support::sandbox::warnings;
use support::{MCPZ, Server, audit};
use tempfile::TempDir;

/// A project with a script and the interpreter that it names, and files that could take their places.
struct Project {
    state: TempDir,
    folder: TempDir,
}

/// Says who it is, whatever it is called and told.
const OTHER: &str = "#!/bin/sh\necho other\n";

fn script(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

impl Project {
    fn new() -> Self {
        let [state, folder] = [(); 2].map(|()| support::plain_folder());
        let at = |path: &str| folder.path().join(path);
        symlink("/bin/sh", at("interpreter")).unwrap();
        script(&at("tool"), &format!("#!{}\necho own\n", at("interpreter").display()));
        script(&at("other"), OTHER);
        script(&at("new/tool"), OTHER);
        script(&at("new/interpreter"), OTHER);
        for name in ["tool", "interpreter"] {
            let archive = at(&format!("{name}.tar"));
            let mut tar = Command::new("tar");
            tar.arg("-cf").arg(archive).arg("-C").arg(at("new")).arg(name);
            assert!(tar.status().unwrap().success());
        }
        Self { state, folder }
    }

    fn server(&self, allow: &[&str]) -> Server {
        let folder = self.folder.path();
        let settings =
            format!("[shell_tool]\nworking_dir = {folder:?}\n[policy]\nallow = {allow:?}\n");
        audit::start(&self.state, &settings)
    }

    /// A server that looks in this folder for programs first.
    fn server_with(&self, bin: &Path, allow: &[&str]) -> Server {
        let config = self.state.path().join("config.toml");
        let folder = self.folder.path();
        let settings =
            format!("[shell_tool]\nworking_dir = {folder:?}\n[policy]\nallow = {allow:?}\n");
        std::fs::write(&config, settings).unwrap();
        let mut command = Command::new(MCPZ);
        command.args(["server", "shell", "--config"]).arg(&config);
        command.env("XDG_STATE_HOME", self.state.path());
        command.env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
        let mut server = Server::from_command(&mut command);
        server.initialize("2025-11-25");
        server
    }
}

fn output(reply: &Value) -> &str {
    reply["output"].as_str().unwrap_or_default()
}

#[test]
fn what_runs_a_script_is_what_it_was_when_the_command_began() {
    for replace in [
        "cp -f other interpreter",
        "ln -sf other interpreter",
        "cat other > interpreter",
        "tee interpreter < other > /dev/null",
        "rm interpreter; ln -s new/interpreter interpreter",
        "tar -xf interpreter.tar",
    ] {
        let project = Project::new();
        // What is written through the link must not change the shell of this machine.
        let own = project.folder.path().join("interpreter");
        std::fs::remove_file(&own).unwrap();
        std::fs::copy("/bin/sh", &own).unwrap();
        let mut server = project.server(&["./tool", "cp", "ln", "cat", "tee", "rm", "tar"]);
        let reply = server.call(json!({"command": format!("./tool; {replace}; ./tool")}));
        assert!(output(&reply).starts_with("own\n"), "{replace}: {reply}");
        assert!(!output(&reply).contains("other"), "{replace}: {reply}");
        let told = warnings(&reply);
        assert!(told.contains("has changed since the command began"), "{replace}: {reply}");
        // What an earlier call has left is the project's own.
        let reply = server.call(json!({"command": "./tool"}));
        assert_eq!((output(&reply), warnings(&reply).as_str()), ("other\n", ""), "{reply}");
    }
}

#[test]
fn a_program_that_the_command_unpacks_is_not_executed_before_the_next_call() {
    let project = Project::new();
    let mut server = project.server(&["./tool", "./new/tool", "tar", "chmod", "mv"]);
    for command in ["tar -xf tool.tar; ./tool", "mv new old; mv old/tool .; ./tool"] {
        let reply = server.call(json!({"command": command}));
        assert!(!output(&reply).contains("other\n"), "{command}: {reply}");
    }
    let reply = server.call(json!({"command": "./tool"}));
    assert_eq!(output(&reply), "other\n", "{reply}");
}

#[test]
fn a_script_that_names_no_interpreter_is_held_although_bash_runs_it_by_itself() {
    let project = Project::new();
    let at = |path: &str| project.folder.path().join(path);
    script(&at("plain"), "echo own\n");
    script(&at("scripts/plain"), "echo other\n");
    let mut server = project.server(&["cp", "tar", "./plain", "./scripts/p*"]);
    // It runs its commands with bash.
    let mut run = |command: &str| {
        let arguments = json!({"command": command, "is_background": false});
        let reply = server.tool("run_shell_command", arguments);
        reply["structuredContent"]["stdout"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(run("./plain"), "own\n");
    assert!(!run("cp scripts/plain plain; ./plain").contains("other"));
    let of_other = ["echo other\n", "#!\necho other\n", "#! \t\necho other\n"];
    for text in of_other
        .map(str::to_owned)
        .into_iter()
        .chain([format!("#!{}\necho other\n", "x".repeat(300))])
    {
        script(&at("plain"), "echo own\n");
        script(&at("unpacked/plain"), &text);
        let mut tar = Command::new("tar");
        tar.args(["-C", at("unpacked").to_str().unwrap(), "-cf"]).arg(at("plain.tar")).arg("plain");
        assert!(tar.status().unwrap().success());
        assert!(!run("tar -xf plain.tar; ./plain").contains("other"), "{text}");
    }
    // Nor does the shell run what it may not execute.
    std::fs::set_permissions(at("plain"), PermissionsExt::from_mode(0o644)).unwrap();
    assert_eq!(run("./plain"), "");
    // What is here if a folder cannot be entered is another file.
    script(&at("part"), "echo own\n");
    script(&at("scripts/part"), "echo other\n");
    assert_eq!(run("cd scripts; ./part"), "other\n");
    assert!(!run("cd scripts x; ./part").contains("own"));
}

#[test]
fn a_program_is_executed_whose_rights_were_changed_or_that_was_built() {
    let project = Project::new();
    let mut server = project.server(&["./tool", "./made", "chmod", "make", "gcc"]);
    let folder = project.folder.path();
    std::fs::set_permissions(folder.join("tool"), PermissionsExt::from_mode(0o644)).unwrap();
    let reply = server.call(json!({"command": "chmod +x tool && ./tool"}));
    assert_eq!((output(&reply), warnings(&reply).as_str()), ("own\n", ""), "{reply}");

    std::fs::write(folder.join("Makefile"), "made: other\n\tcp other made\n").unwrap();
    let reply = server.call(json!({"command": "make -s && ./made"}));
    assert_eq!((output(&reply), warnings(&reply).as_str()), ("other\n", ""), "{reply}");

    std::fs::write(
        folder.join("made.c"),
        "#include <stdio.h>\nint main(void) { puts(\"built\"); }",
    )
    .unwrap();
    let reply = server.call(json!({"command": "gcc -o made made.c && ./made"}));
    assert_eq!((output(&reply), warnings(&reply).as_str()), ("built\n", ""), "{reply}");
}

#[test]
fn only_what_a_linker_has_made_counts_as_made() {
    let project = Project::new();
    let folder = project.folder.path();
    script(&folder.join("ld.sh"), "#!/bin/sh\n");
    let mut server = project.server(&["./tool", "./ld.sh", "tar", "gcc"]);
    let reply =
        server.call(json!({"command": "./ld.sh; gcc -Wl,--version; tar -xf tool.tar; ./tool"}));
    assert!(!output(&reply).contains("other\n"), "{reply}");
    assert!(warnings(&reply).contains("has changed since the command began"), "{reply}");
}

#[test]
fn what_something_else_has_made_while_a_linker_ran_does_not_count_as_made() {
    let project = Project::new();
    let folder = project.folder.path();
    let shell = |text: &str| {
        let mut shell = Command::new("sh");
        assert!(shell.args(["-c", text]).current_dir(folder).status().unwrap().success());
    };
    shell("cp /bin/echo demo; tar -cf demo.tar demo; mkfifo object");
    shell("ln -s /bin/echo link; tar -cf link.tar --transform s/link/demo/ link");
    let mut server = project.server(&["./demo", "tar", "ld", "echo"]);
    for unpacked in ["demo.tar", "link.tar"] {
        shell("rm demo; cp /bin/true demo");
        let command = format!(
            "ld -o unrelated object & tar -xf {unpacked}; echo > object; wait; ./demo other"
        );
        let reply = server.call(json!({"command": command}));
        assert!(!output(&reply).contains("other"), "{command}: {reply}");
        assert!(warnings(&reply).contains("has changed since the command began"), "{reply}");
    }
}

#[test]
fn a_script_does_not_have_the_loader_load_a_program() {
    let project = Project::new();
    let loaders = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"];
    let loader = loaders.into_iter().find(|path| Path::new(path).exists()).unwrap();
    script(&project.folder.path().join("tool"), &format!("#!{loader} /bin/echo\n"));
    let mut server = project.server(&["./tool"]);
    let reply = server.call(json!({"command": "./tool other"}));
    assert!(!output(&reply).contains("other\n"), "{reply}");
}

#[test]
fn a_linker_makes_no_interpreter() {
    let project = Project::new();
    let folder = project.folder.path();
    let own = folder.join("interpreter");
    std::fs::remove_file(&own).unwrap();
    std::fs::copy("/bin/sh", &own).unwrap();
    let mut server = project.server(&["./tool", "ld"]);
    let command = "ld -b binary --oformat binary -Ttext 0 -o interpreter /bin/cat; ./tool";
    let reply = server.call(json!({"command": command}));
    assert_ne!(std::fs::read(&own).unwrap(), std::fs::read("/bin/sh").unwrap(), "{reply}");
    assert!(warnings(&reply).contains("has changed since the command began"), "{reply}");
}

#[test]
fn in_a_session_each_call_is_held_even_after_one_that_could_make_programs() {
    let project = Project::new();
    std::fs::write(project.folder.path().join("Makefile"), "all:\n\ttrue\n").unwrap();
    let mut server = project.server(&["./tool", "make", "tar"]);
    let own = project.folder.path().join("interpreter");
    for command in ["make; tar -xf tool.tar; ./tool", "tar -xf tool.tar; make; ./tool"] {
        let reply = server.call(json!({"command": command, "session": "work"}));
        assert!(!output(&reply).contains("other\n"), "{command}: {reply}");
        let text = format!("#!{}\necho own\n", own.display());
        script(&project.folder.path().join("tool"), &text);
    }
    server.call(json!({"command": "make", "session": "work"}));
    let reply = server.call(json!({"command": "tar -xf tool.tar; ./tool", "session": "work"}));
    assert!(!output(&reply).contains("other\n"), "{reply}");
    assert!(warnings(&reply).contains("has changed since the command began"), "{reply}");
    let reply = server.call(json!({"command": "./tool", "session": "work"}));
    assert_eq!((output(&reply), warnings(&reply).as_str()), ("other\n", ""), "{reply}");
}

#[test]
fn what_a_call_in_a_session_has_left_running_is_held_to_what_was_there_when_that_began() {
    let project = Project::new();
    let mut server = project.server(&["./tool", "tar", "cat", "mkfifo", "rm"]);
    let mut run = |command: &str| {
        let reply = server.call(json!({"command": command, "session": "s"}));
        output(&reply).to_owned()
    };
    run("mkfifo go; (tar -xf tool.tar; cat go; ./tool) >told 2>&1 &");
    // The first of these calls that begins after tar has ended runs what that has unpacked.
    assert!((0..200).any(|_| run("./tool") == "other\n"));
    run("cat /dev/null > go; wait");
    let told = std::fs::read_to_string(project.folder.path().join("told")).unwrap();
    assert!(!told.contains("other") && !told.is_empty(), "{told}");
    assert_eq!(run("./tool"), "other\n");
    // With nothing left, the next call begins as usual.
    run("rm go");
    assert_eq!(run("./tool"), "other\n");
}

#[test]
fn what_a_builtin_changes_after_a_program_that_could_make_programs_has_ended_is_not_executed() {
    let project = Project::new();
    let bin = project.folder.path().join("bin");
    script(&bin.join("mytool"), "#!/bin/sh\necho own\n");
    std::fs::write(project.folder.path().join("Makefile"), "all:\n\ttrue\n").unwrap();
    let mut server = project.server_with(&bin, &["mytool", "make", "printf *"]);
    let mut call = |command: &str| server.call(json!({"command": command, "session": "work"}));
    for command in ["make", "mytool", "make"] {
        assert_eq!(warnings(&call(command)), "");
    }
    let change = format!("printf '#!/bin/sh\\necho other\\n' > {}/mytool; mytool", bin.display());
    let reply = call(&change);
    assert!(!output(&reply).contains("other\n"), "{reply}");
    assert!(warnings(&reply).contains("has changed since the command began"), "{reply}");
}

#[test]
fn no_link_on_the_way_to_what_a_program_needs_is_changed() {
    let project = Project::new();
    let at = |path: &str| project.folder.path().join(path);
    script(&at("v1/helper"), "#!/bin/sh\necho own\n");
    symlink("v1", at("current")).unwrap();
    symlink("current", at("latest")).unwrap();
    let helper = at("latest/helper");
    script(&at("release"), &format!("#!/bin/sh\n{}\n", helper.display()));
    for may_run in [helper.display().to_string(), at("latest/help*").display().to_string()] {
        let folder = project.folder.path();
        let settings = format!(
            "[shell_tool]\nworking_dir = {folder:?}\n[policy]\nallow = [\"./release\", \"ln\"]\n[[policy.runs]]\n\
             program = \"release\"\nmay_run = [{may_run:?}]\n"
        );
        let mut server = audit::start(&project.state, &settings);
        let reply = server.call(json!({"command": "./release"}));
        assert_eq!((output(&reply), warnings(&reply).as_str()), ("own\n", ""), "{reply}");
        script(&at("v2/helper"), OTHER);
        let reply = server.call(json!({"command": "ln -sfn v2 current; ./release"}));
        assert!(!output(&reply).contains("other\n"), "{may_run}: {reply}");
        assert!(warnings(&reply).contains("has changed since the command began"), "{reply}");
        // The next command finds the way as it is then.
        for version in ["v2", "v1"] {
            server.call(json!({"command": format!("ln -sfn {version} current")}));
            let reply = server.call(json!({"command": "./release"}));
            let printed = if version == "v1" { "own\n" } else { "other\n" };
            assert_eq!((output(&reply), warnings(&reply).as_str()), (printed, ""), "{reply}");
        }
    }
}

#[test]
fn a_folder_on_the_way_is_the_one_that_this_command_finds() {
    let project = Project::new();
    let at = |path: &str| project.folder.path().join(path);
    script(&at("tools/helper"), OTHER);
    script(&at("good/helper"), "#!/bin/sh\necho own\n");
    let helper = at("tools/helper");
    script(&at("release"), &format!("#!/bin/sh\n[ ! -e go ] || {}\n", helper.display()));
    let folder = project.folder.path();
    let may_run = at("tools/*");
    let settings = format!(
        "[shell_tool]\nworking_dir = {folder:?}\n[policy]\nallow = [\"./release\", \"mv\", \"touch\"]\n\
         [[policy.runs]]\nprogram = \"release\"\nmay_run = [{may_run:?}]\n"
    );
    let mut server = audit::start(&project.state, &settings);
    for command in ["./release", "mv tools old; mv good tools"] {
        let reply = server.call(json!({"command": command}));
        assert_eq!((&reply["return_code"], warnings(&reply).as_str()), (&json!(0), ""), "{reply}");
    }
    let reply = server.call(json!({"command": "touch go; mv tools t; mv old tools; ./release"}));
    assert!(!output(&reply).contains("other\n"), "{reply}");
    assert!(warnings(&reply).contains("has changed since the command began"), "{reply}");
}

#[test]
fn what_is_installed_between_two_commands_is_executed() {
    let project = Project::new();
    let bin = project.folder.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let mut server = project.server_with(&bin, &["mytool", "echo"]);
    let mut call = || {
        let reply = server.call(json!({"command": "mytool 2>/dev/null || echo none"}));
        assert_eq!(warnings(&reply), "", "{reply}");
        output(&reply).lines().last().unwrap_or_default().to_owned()
    };
    assert_eq!(call(), "none");
    script(&bin.join("mytool"), "#!/bin/sh\necho first\n");
    assert_eq!(call(), "first");
    // Binaries need nothing else, so they are only confirmed.
    std::fs::copy("/bin/echo", bin.join("mytool")).unwrap();
    assert_eq!((call(), call()), (String::new(), String::new()));
    std::fs::rename(bin.join("mytool"), bin.join("old")).unwrap();
    assert_eq!(call(), "none");
    std::fs::copy("/bin/pwd", bin.join("new")).unwrap();
    std::fs::rename(bin.join("new"), bin.join("mytool")).unwrap();
    assert!(call().starts_with('/'));
    std::fs::rename(&bin, bin.with_extension("old")).unwrap();
    assert_eq!(call(), "none");
    script(&bin.join("mytool"), "#!/bin/sh\necho last\n");
    assert_eq!(call(), "last");
}

#[test]
fn nothing_is_mounted_over_a_program() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let project = Project::new();
    let folder = project.folder.path();
    script(&folder.join("inside"), MOUNTS_INSIDE);
    let mut server = project.server(&["./tool", "./inside", "mount", "umount"]);
    let reply = server.call(json!({"command": "mount --bind other tool; ./tool"}));
    assert!(output(&reply).contains("own"), "{reply}");
    assert!(warnings(&reply).contains("`mount` (mount --bind other tool)"), "{reply}");
    assert!(warnings(&reply).contains("change what is mounted"), "{reply}");
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(!mounts.contains(folder.to_str().unwrap()), "{mounts}");
    // In a namespace of its own, a program sees what it mounts, and nobody else does.
    let reply = server.call(json!({"command": "./inside new"}));
    assert_eq!((output(&reply), warnings(&reply).as_str()), ("mounted 0\n", ""), "{reply}");
}

/// Mounts the formats, with one that is switched off.
const FORMATS: &str = r#"mount -t binfmt_misc none "$0" && echo ':off:M::#!::/bin/echo:' > "$0/register" &&
echo 0 > "$0/off" && exec "$@""#;

/// Older kernels have one table of formats for all, where only root of the machine may write.
#[test]
fn the_kernel_gets_no_other_interpreter_wherever_its_formats_are_mounted() {
    let project = Project::new();
    let folder = project.folder.path();
    let formats = folder.join("formats");
    std::fs::create_dir(&formats).unwrap();
    let mut inside = Command::new("unshare");
    inside.args(["-Urm", "sh", "-c", FORMATS]).arg(&formats);
    let config = project.state.path().join("config.toml");
    let settings = format!(
        "[shell_tool]\nworking_dir = {folder:?}\n[policy]\nallow = [\"./tool\", \"echo\"]\n"
    );
    std::fs::write(&config, settings).unwrap();
    if !Command::new(inside.get_program())
        .args(inside.get_args())
        .arg("true")
        .status()
        .unwrap()
        .success()
    {
        eprintln!("skipped: no formats can be mounted in a namespace");
        return;
    }
    inside.args([MCPZ, "server", "shell", "--tools", "all", "--config"]).arg(config);
    let mut server = Server::from_command(&mut inside);
    server.initialize("2025-11-25");
    for change in ["1 >> formats/off", "':x:M::#!::/bin/echo:' > formats/register"] {
        let reply = server.call(json!({"command": format!("echo {change}; ./tool")}));
        assert!(!output(&reply).contains("/tool\n"), "{reply}");
        assert!(warnings(&reply).contains("was not allowed to execute"), "{reply}");
        server.call(json!({"command": "echo 0 > formats/off"}));
    }
}

const MOUNTS_INSIDE: &str = r#"#!/usr/bin/python3
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
assert libc.unshare(0x10000000 | 0x20000) == 0
print("mounted", libc.mount(b"none", sys.argv[1].encode(), b"tmpfs", 0, None))
"#;
