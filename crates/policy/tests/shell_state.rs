//! Commands whose words, shell or folder are not what they seem, because of what the shell knows from before: its
//! variables, folders, aliases and start files.

#![allow(clippy::unwrap_used, clippy::panic, dead_code, reason = "a test may panic")]

mod support;

use mcpz_policy::{Policy, Verdict};
use support::{SCENE, all_allowed, all_denied, allow, deny};

fn writes(folders: &[&str], list: &str) -> Policy {
    let write_dirs = folders.iter().map(ToString::to_string).collect();
    Policy { write_dirs, ..allow(list) }
}

#[test]
fn only_what_certainly_prints_a_number_is_one() {
    let policy = allow("grep,echo");
    all_denied(&policy, &["n=$(grep -ec f); echo $((n))", "a[$(grep -ec f)]=1"]);
    all_allowed(&policy, &["n=$(grep -c x f); echo $((n))", "n=$(grep -vc x f); echo $((n))"]);
}

#[test]
fn folders_may_have_any_name() {
    let policy = writes(&["/srv/proj"], "ls,sort,find");
    all_denied(
        &policy,
        &["cd a*; [[ 1$PWD -eq 1 ]]", "cd y*; sort /srv/proj/g $PWD", "cd y*; find $OLDPWD"],
    );
    all_allowed(
        &policy,
        &[
            "ls $PWD",
            "sort $PWD/g",
            "cd ./sub && find $PWD -name x",
            "sort \"$PWD/g\"",
            "find \"$PWD\" -name x",
        ],
    );
    all_allowed(&allow("git"), &["git clone file://$PWD/../origin.git ../clone"]);
    all_allowed(&deny("rm"), &["find $PWD -name x", "make -C \"$PWD\" test"]);
}

#[test]
fn what_splits_words_splits_trusted_names_too() {
    let policy = allow("git,sort,uname");
    all_denied(&policy, &["IFS=Z; sort $(uname -n) g"]);
    all_allowed(&policy, &["sort $(uname -n) g"]);
}

#[test]
fn variables_that_make_a_shell_read_more_are_dangerous_whatever_their_value() {
    let policy = allow("ls,bash");
    for variable in ["SSH_CLIENT=1", "SSH2_CLIENT=1", "SHLVL=0", "POSIX_PEDANTIC=1", "OLDPWD=/tmp"]
    {
        all_denied(
            &policy,
            &[&format!("{variable} bash -c ls"), &format!("export {variable}; ls")],
        );
    }
}

#[test]
fn a_login_shell_runs_no_start_file_that_the_command_wrote() {
    let policy = allow("echo,bash,exec,ls");
    all_denied(
        &policy,
        &[
            "echo 'echo x > y' > ~/.bash_profile; bash -lc ls",
            "echo 'echo x > y' > ~/.bash_profile; bash --login -c ls",
            "echo 'echo x > y' > ~/.profile; exec -l bash -c ls",
            "echo 'echo x > y' > ~/.profile; exec -a -bash bash -c ls",
        ],
    );
    all_allowed(&policy, &["bash -lc ls", "exec bash -c ls", "echo x > notes; bash -lc ls"]);
}

#[test]
fn an_alias_changes_no_function_and_no_command_that_is_trusted() {
    let policy = allow("alias,ls,cat,sort");
    let judge = |command: &str| policy.judge(command, "sh", &SCENE).verdict;
    for command in [
        "alias echo=ls\necho() { ls; }\n\\echo x > y",
        "alias read=ls\nread() { ls; }\n\\read HOME < h",
        "alias uname='cat f'\nsort $(uname) g",
        "alias grep='grep -e'; n=$(grep -c f); echo $((n))",
    ] {
        assert_ne!(judge(command), Verdict::Allow, "{command}");
    }
    for command in ["alias ll='ls -l'; ls", "alias ls='ls -F --color=auto'; ls"] {
        assert_eq!(judge(command), Verdict::Allow, "{command}");
    }
}

#[test]
fn a_folder_is_the_one_that_the_shell_enters() {
    let policy = writes(&["/srv/proj", "/home/dev"], "mkdir,echo,pushd,unset");
    all_denied(
        &policy,
        &[
            "mkdir -p ./-; cd -- -/../../../tmp; echo x > y",
            "mkdir -p ./-; pushd -- -/../../../tmp; echo x > y",
            "pushd .; DIRSTACK[1]=/tmp; pushd +1; echo x > y",
            "mkdir -p a; cd a; OLDPWD=/tmp; cd -; echo x > y",
            "unset HOME; echo x > ~/zz",
        ],
    );
    all_allowed(&policy, &["cd -- sub; echo x > y", "cd ./sub && echo x > y"]);
}

#[test]
fn a_network_address_is_one_however_it_is_written() {
    let policy = allow("cat,exec");
    all_denied(
        &policy,
        &[
            "for p in 9; do cat < /dev/tcp/127.0.0.1/$p; done",
            "p=9; exec 3<>/dev/tcp/127.0.0.1/$p",
            "x=/dev/tcp/127.0.0.1; cat < $x/9",
        ],
    );
}
