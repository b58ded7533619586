//! A denied program is recognised whatever file leads the kernel to it.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::process::Command;

use serde_json::json;
use support::locked::{Programs, has_run};
use support::sandbox::warnings;

/// A program that needs no loader, and says that it has run.
const ALONE: &str = r#"
static long call(long number, long a, const void *b, long c) {
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
}
void _start(void) {
    call(1, 1, "speaker ran\n", 12);
    call(60, 0, 0, 0);
}
"#;

#[test]
fn a_program_without_a_shell_is_checked_by_its_file() {
    let place = Programs::new();
    let mut server = place.server("deny = [\"id\", \"speaker push\"]");
    let folder = place.folder();
    std::os::unix::fs::symlink("/usr/bin/id", folder.join("soft")).unwrap();
    std::fs::copy("/usr/bin/id", folder.join("copy")).unwrap();
    std::os::unix::fs::symlink(folder.join("speaker"), folder.join("talker")).unwrap();
    place.file("greet", "#!/usr/bin/id\n");
    let mut run = |name: &str, words: &[&str]| {
        server.tool("execute", json!({"command": name, "args": words})).to_string()
    };
    let absolute = folder.join("soft").display().to_string();
    for name in ["soft", "copy", "greet", &absolute] {
        let reply = run(name, &["-u"]);
        assert!(reply.contains("a rule denies what it leads to"), "{name}: {reply}");
    }
    assert!(run("talker", &["push"]).contains("a rule denies what it leads to"));
    let reply = run("talker", &["pull"]);
    assert!(reply.contains("speaker ran: pull"), "{reply}");
    assert!(!run("no-such-program", &[]).contains("a rule denies"));
}

#[test]
fn the_first_line_of_a_script_is_read_as_the_kernel_reads_it() {
    let place = Programs::new();
    let mut server = place.server("deny = [\"id\", \"speaker push\"]");
    let folder = place.folder().display();
    let speaker = format!("{folder}/speaker");
    // With a name that ends with a carriage return.
    let hidden = place.folder().join("harmless\r");
    std::os::unix::fs::symlink("/usr/bin/id", hidden).unwrap();
    std::os::unix::fs::symlink("/bin/true", place.folder().join("harmless")).unwrap();
    // Without a newline, the kernel takes all but the last of the bytes that it reads.
    let blanks = " ".repeat(255 - "#!".len() - speaker.len() - "push".len());
    let long = format!("#!{speaker}{blanks}pushy{}", "y".repeat(100));
    for (name, text) in [("crlf", format!("#!{folder}/harmless\r\n")), ("long", long)] {
        place.file(name, &text);
        let text = format!("import subprocess\nsubprocess.run(['{name}'])");
        let reply = place.python(&mut server, &text);
        assert!(warnings(&reply).contains("denies it"), "{name}: {reply}");
    }
}

#[test]
fn a_binary_whose_loader_is_a_denied_program_is_not_executed() {
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    let place = Programs::new();
    let alone = place.folder().join("alone");
    let compile = |source: &str, program: &str, options: &[&str]| {
        let path = place.file("program.c", source);
        let mut command = Command::new("cc");
        command.args(options).arg("-o").arg(place.folder().join(program)).arg(path);
        assert!(command.status().unwrap().success());
    };
    compile(ALONE, "alone", &["-nostdlib", "-static", "-fno-stack-protector"]);
    let loader = format!("-Wl,--dynamic-linker={}", alone.display());
    compile("int main(void) { return 0; }", "loaded", &[&loader]);
    let text = "import subprocess\nsubprocess.run(['loaded'])";
    let mut free = place.server("deny = [\"other\"]");
    assert!(has_run(&place.python(&mut free, text)));
    let mut server = place.server("deny = [\"alone\"]");
    let reply = place.python(&mut server, text);
    assert!(!has_run(&reply), "{reply}");
    assert!(warnings(&reply).contains("the rule `alone` denies it"), "{reply}");
}

#[test]
fn what_cannot_be_looked_at_is_not_executed() {
    let place = Programs::new();
    let mut server = place.server("deny = [\"id\", \"speaker -rf\"]");
    let loader = std::fs::canonicalize("/lib64/ld-linux-x86-64.so.2");
    if let Ok(loader) = loader {
        let text = format!(
            "import os\npath = '/proc/%d/root/usr/bin/id' % os.getpid()\n\
             os.execv('{}', ['x', path])",
            loader.display()
        );
        let reply = place.python(&mut server, &text);
        assert!(!reply["output"].as_str().unwrap().contains("uid="), "{reply}");
    }
    // Memory of the kernel's own, which it can read, and we cannot.
    let text = "import ctypes, os\n\
        maps = [line for line in open('/proc/self/maps') if '[vvar]' in line]\n\
        place = int(maps[0].split('-')[0], 16)\n\
        words = (ctypes.c_void_p * 4)()\n\
        name, option = ctypes.create_string_buffer(b'speaker'), ctypes.create_string_buffer(b'-rf')\n\
        words[0], words[1] = ctypes.addressof(name), place\n\
        words[2], words[3] = ctypes.addressof(option), None\n\
        environment = (ctypes.c_char_p * 1)(None)\n\
        path = os.path.join(os.path.dirname(__file__), 'speaker').encode()\n\
        ctypes.CDLL(None).execve(path, words, environment)";
    let reply = place.python(&mut server, text);
    assert!(!has_run(&reply), "{reply}");
}

#[test]
fn a_copy_is_recognised_when_its_original_is_gone() {
    let place = Programs::new();
    std::fs::copy("/usr/bin/id", place.folder().join("original")).unwrap();
    let mut server = place.server("deny = [\"original\"]");
    let begin = "import os, shutil, subprocess\nos.chdir(os.path.dirname(__file__))\n\
                 shutil.copy('original', 'copy'); os.remove('original')\n";
    for then in ["", "os.mkfifo('original')\n"] {
        let reply = place.python(&mut server, &format!("{begin}{then}os.execv('copy', ['copy'])"));
        assert!(warnings(&reply).contains("the rule `original` denies it"), "{reply}");
        std::fs::remove_file(place.folder().join("original")).ok();
        std::fs::copy("/usr/bin/id", place.folder().join("original")).unwrap();
    }
    let text = format!(
        "{begin}kept = os.open('copy', os.O_RDONLY); os.remove('copy')\n\
         os.execve(kept, ['copy'], {{}})"
    );
    assert!(warnings(&place.python(&mut server, &text)).contains("denies it"));
}

#[test]
fn a_program_that_is_installed_while_the_command_runs_is_recognised() {
    let place = Programs::new();
    let mut server = place.server("deny = [\"late\"]");
    let text = "import os, shutil\nos.chdir(os.path.dirname(__file__))\n\
                shutil.copy('/usr/bin/id', 'late'); os.link('late', 'other')\n\
                os.execv('other', ['other'])";
    let reply = place.python(&mut server, text);
    assert!(warnings(&reply).contains("the rule `late` denies it"), "{reply}");
}

#[test]
fn a_name_that_leads_to_another_program_is_recognised_through_links_and_in_copies() {
    let place = Programs::new();
    std::fs::copy("/usr/bin/id", place.folder().join("whole")).unwrap();
    std::os::unix::fs::symlink("whole", place.folder().join("part")).unwrap();
    std::os::unix::fs::symlink("part", place.folder().join("again")).unwrap();
    std::fs::copy("/usr/bin/id", place.folder().join("copy")).unwrap();
    let mut server = place.server("deny = [\"part\"]");
    let run = |name: &str| format!("import subprocess\nsubprocess.run(['{name}'])");
    for name in ["part", "again", "copy"] {
        let reply = place.python(&mut server, &run(name));
        assert!(warnings(&reply).contains("the rule `part` denies it"), "{name}: {reply}");
    }
    let reply = place.python(&mut server, &run("whole"));
    assert!(reply["output"].as_str().unwrap().contains("uid="), "{reply}");
}

#[test]
fn a_file_of_many_programs_is_the_one_it_is_told_to_be() {
    let place = Programs::new();
    for name in ["busybox", "coreutils", "other"] {
        std::fs::copy("/usr/bin/env", place.folder().join(name)).unwrap();
    }
    let mut server = place.server("deny = [\"id\"]");
    for words in [
        "'busybox', 'id'",
        "'busybox', 'busybox', 'id'",
        "'coreutils', '--coreutils-prog=id'",
        "'other', 'id'",
    ] {
        let text = format!("import os\nos.execvp([{words}][0], [{words}])");
        let reply = place.python(&mut server, &text);
        let told = format!("execute `{}/", place.folder().display());
        assert!(warnings(&reply).contains(&told), "{words}: {reply}");
    }
    if let Ok(loader) = std::fs::canonicalize("/lib64/ld-linux-x86-64.so.2") {
        let words = format!("'x', '--argv0', 'id', '{}/busybox'", place.folder().display());
        let text = format!("import os\nos.execv('{}', [{words}])", loader.display());
        assert!(warnings(&place.python(&mut server, &text)).contains("the rule `id` denies it"));
    }
    let text = "import os\nos.execvp('env', ['-id'])";
    assert!(warnings(&place.python(&mut server, text)).contains("the rule `id` denies it"));
}
