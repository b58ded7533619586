//! Programs that nobody knows try to execute another, each by code of its own: none succeeds.
//!
//! A library that is loaded into a program stands for whatever option, plugin or hook makes programs run others.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use mcpz_agent::{
    AllowedProgram, Directory, ExecRules, FIRST_OWNER, Limits, Link, MayRun, ProcessEvent, Program,
    Spawn, Stdin,
};
use mcpz_policy::{Policy, Rule, Scene};
use support::MCPZ;
use tempfile::TempDir;

/// How many programs are tried.
const PROGRAMS: usize = 200;

/// Tries to execute `id` in every way that a program has, and then ends the program before it begins.
const HOOK: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char *arguments[] = {"id", NULL}, *none[] = {NULL};

static void *by_thread(void *unused) {
    if (fork() == 0) { execv("/usr/bin/id", arguments); _exit(1); }
    return unused;
}

__attribute__((constructor)) static void hook(void) {
    pid_t child; pthread_t thread;
    unsetenv("LD_PRELOAD");
    if (fork() == 0) { execve("/usr/bin/id", arguments, none); _exit(1); }
    if (fork() == 0) { execvp("id", arguments); _exit(1); }
    if (fork() == 0) {
        syscall(SYS_execveat, open("/usr/bin/id", O_PATH), "", arguments, none, AT_EMPTY_PATH);
        _exit(1);
    }
    if (vfork() == 0) { execve("/usr/bin/id", arguments, none); _exit(1); }
    posix_spawn(&child, "/usr/bin/id", NULL, NULL, arguments, none);
    if (system("id") == -1 || system("exec id; echo built in") == -1) puts("no shell");
    if (pthread_create(&thread, NULL, by_thread, NULL) == 0) pthread_join(thread, NULL);
    while (wait(NULL) > 0) {}
    execv("/usr/bin/id", arguments);
    puts("held");
    fflush(stdout);
    _exit(0);
}
"#;

fn hook(folder: &TempDir) -> PathBuf {
    let (source, library) = (folder.path().join("hook.c"), folder.path().join("hook.so"));
    std::fs::write(&source, HOOK).unwrap();
    let compile =
        Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
    assert!(compile.unwrap().success());
    library
}

/// The rules for a command that is nothing but this program. `None` if the program is known to run others.
fn rules(program: &Path) -> Option<ExecRules> {
    let name = program.to_str()?;
    let policy = Policy { allow: vec![Rule::new(name).ok()?], ..Policy::default() };
    let scene = Scene::at("/");
    let allowed = policy.judge(name, "/bin/sh", &scene).lock?.allowed?;
    let nothing = mcpz_policy::MayRun::Only([].into());
    let [known] = &*allowed else { return None };
    let rule = AllowedProgram {
        name: known.name.clone(),
        files: Vec::new(),
        named: true,
        calls: None,
        may_run: MayRun::Only([].into()),
    };
    (known.may_run == nothing)
        .then_some(ExecRules { allowed: Some(vec![rule]), ..ExecRules::default() })
}

/// Whether it is a binary that loads libraries, and so the hook.
fn loads_libraries(path: &Path) -> bool {
    let mut head = Vec::new();
    let file = std::fs::File::open(path);
    let read = file.and_then(|file| file.take(4096).read_to_end(&mut head));
    let loader = head.windows(4).any(|part| part == b"/ld-");
    read.is_ok() && head.starts_with(b"\x7fELF") && loader
}

#[test]
fn two_hundred_programs_that_nobody_knows_execute_nothing_else() {
    let folder = support::plain_folder();
    let library = hook(&folder);
    let mut programs: Vec<_> =
        std::fs::read_dir("/usr/bin").unwrap().map(|entry| entry.unwrap().path()).collect();
    // Programs with rights of their own load nothing that the caller names.
    let is_plain = |found: std::fs::Metadata| found.is_file() && found.mode() & 0o6000 == 0;
    programs.retain(|path| path.metadata().is_ok_and(is_plain) && loads_libraries(path));
    programs.retain(|path| !path.ends_with("id"));
    programs.sort();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut held = 0;
    runtime.block_on(async {
        let variables: Vec<_> = std::env::vars_os().collect();
        let link = Link::start(MCPZ.as_ref(), &variables, Limits::default()).unwrap();
        for program in &programs {
            let Some(exec_rules) = rules(program).filter(|_| held < PROGRAMS) else { continue };
            let spawn = Spawn {
                program: Program::Argv(vec![program.clone().into()]),
                directory: Directory::Own,
                environment: vec![("LD_PRELOAD".into(), Some(library.clone().into()))],
                stdin: Stdin::Null,
                joined: true,
                replies: false,
                exec_rules: Some((&exec_rules).into()),
            };
            let output = printed(&link, spawn).await;
            assert!(!output.contains("uid="), "{}: {output}", program.display());
            assert!(!output.contains("built in"), "{}: {output}", program.display());
            assert!(output.contains("held"), "{}: {output}", program.display());
            held += 1;
        }
        link.close().await;
    });
    assert!(held == PROGRAMS || held * 2 > programs.len(), "{held} of {}", programs.len());
}

/// What a program prints until nothing of it is left.
async fn printed(link: &Link, spawn: Spawn) -> String {
    let mut process = link.spawn(FIRST_OWNER, spawn).unwrap();
    let mut output = Vec::new();
    let mut pipe = None;
    loop {
        match process.next().await {
            ProcessEvent::Started(started) => pipe = Some(started.stdout),
            ProcessEvent::Exited { gone: false, .. } => {}
            _ => break,
        }
    }
    if let Some(pipe) = pipe {
        rustix::io::ioctl_fionbio(&pipe, false).unwrap();
        std::fs::File::from(pipe).read_to_end(&mut output).unwrap();
    }
    String::from_utf8_lossy(&output).into_owned()
}
