//! Commands of which only arguments are unknown, where the kernel holds the deny rules.
#![allow(clippy::unwrap_used, clippy::panic, dead_code, reason = "a test may panic")]

mod support;

use mcpz_policy::{Policy, Scene, Verdict};
use support::{SCENE, all_denied, allow, deny};

const LOCKED: Scene<'_> = Scene { locked: true, ..SCENE };

fn is_left_to_the_kernel(policy: &Policy, command: &str) -> bool {
    policy.judge(command, "bash", &LOCKED).verdict == Verdict::Allow
}

#[test]
fn arguments_that_only_the_run_knows_are_left_to_the_kernel() {
    let policy = deny("rm -rf,sudo,git push,/curl .*\\| *sh/");
    for command in [
        "x=$(git rev-parse --short HEAD); echo \"$x\"",
        "VERSION=$(cat VERSION); echo $VERSION",
        "git log --format='%h %s' | while read -r h s; do echo \"$h: $s\"; done",
        "for f in src/*.c; do gcc -c \"$f\" -o \"/tmp/$(basename \"$f\" .c).o\"; done",
        "diff <(sort a) <(sort b)",
        "find . -name '*.o' -exec rm {} +",
        "find . -name '*.o' -exec rm -f {} \\;",
        "find . -name '*.o' -print0 | xargs -0 rm -f",
        "rm -f $(git ls-files -o)",
        "t=$(mktemp -d); touch \"$t/x\"; rm -r \"$t\"",
        "env rm -f $(cat list)",
        "sh -c 'rm -f \"$1\"' _ \"$(cat list)\"",
    ] {
        assert!(is_left_to_the_kernel(&policy, command), "{command}");
    }
    all_denied(&policy, &["rm -f $(git ls-files -o)", "find . | xargs rm -f", "echo \"$(cat x)\""]);
}

#[test]
fn what_the_kernel_does_not_see_stays_refused() {
    let policy = deny("rm -rf,sudo,git push,kill -9,pip install,echo -e,/^unset .*x/");
    for command in [
        "rm -rf x",
        "$(cat tool) x",
        "eval \"$(cat x)\"",
        "sh -c \"$(cat x)\"",
        "kill $(cat pid)",
        "command kill $(cat pid)",
        "unset $(cat names)",
        "echo $(cat words)",
        "python3 -m pip $(cat words)",
        "ssh host rm -f '$(cat list)'",
        "ssh host 'rm -f $(cat list)'",
        "busybox rm -f $(cat list)",
    ] {
        assert!(!is_left_to_the_kernel(&policy, command), "{command}");
    }
}

#[test]
fn whatever_a_program_runs_below_it_is_left_to_the_kernel() {
    let commands = [
        "python3 - <<'E'\n# no git push here, and no rm\nprint(1)\nE",
        "python3 -c 'import os; os.system(\"rm -rf x\")'",
        "awk 'BEGIN { while ((\"date +%Y\" | getline l) > 0) print l }'",
        "nice awk 'BEGIN { system(\"ls\") }'",
        "sed '1e date' file",
    ];
    let policy = deny("rm -rf,sudo,git push");
    for command in commands {
        assert!(is_left_to_the_kernel(&policy, command), "{command}");
    }
    all_denied(&policy, &commands);
    // The kernel sees nothing of these, and nothing of a script but its interpreter.
    for policy in ["rm -rf,sudo,git push,kill", "rm,sudo,git push,pip install", "rm,git push,/x /"]
    {
        let policy = deny(policy);
        for command in commands {
            assert!(!is_left_to_the_kernel(&policy, command), "{command}");
        }
    }
    let writes = Policy { write_dirs: vec!["/tmp".to_owned()], ..deny("rm,git push") };
    assert!(!is_left_to_the_kernel(&writes, commands[2]));
    assert!(!is_left_to_the_kernel(&policy, &format!("ssh host {:?}", commands[2])));
}

#[test]
fn after_a_cd_only_the_files_that_rules_allow_may_be_executed() {
    let policy = allow("./scripts/*,ls");
    let judged = |command: &str, scene: &Scene<'_>| policy.judge(command, "bash", scene);
    let command = "cd scripts && ./t.sh; ls";
    assert!(matches!(judged(command, &SCENE).verdict, Verdict::Deny(_)));
    let judgement = judged(command, &LOCKED);
    assert_eq!(judgement.verdict, Verdict::Allow);
    let programs = judgement.lock.unwrap().allowed.unwrap();
    let script = programs.iter().find(|program| program.name == "./t.sh").unwrap();
    assert_eq!(script.files, ["/srv/proj/scripts/t.sh"]);
    for command in
        ["cd /tmp && ./t.sh", "cd $x && ./t.sh", "ln -s /tmp scripts; cd scripts; ./t.sh"]
    {
        assert!(matches!(judged(command, &LOCKED).verdict, Verdict::Deny(_)), "{command}");
    }
}

#[test]
fn a_builtin_names_no_program() {
    let judgement = allow("git").judge("cd x; test -d y; wait; git status", "bash", &LOCKED);
    let programs = judgement.lock.unwrap().allowed.unwrap();
    let named: Vec<_> = programs.iter().filter(|it| it.named).map(|it| &it.name[..]).collect();
    assert_eq!(named, ["git"]);
}
