//! Paths in allow rules: each is the path of one place, wherever a command runs.
#![allow(clippy::unwrap_used, clippy::panic, dead_code, reason = "a test may panic")]

mod support;

use mcpz_policy::{Scene, Verdict};
use support::{SCENE, all_allowed, all_denied, allow};

#[test]
fn a_star_in_the_path_of_a_rule_is_one_part_of_it() {
    let policy = allow("/usr/local/*/bin/*,/opt/*/usr/local/bin/*,packages/*/node_modules/.bin/*");
    all_allowed(
        &policy,
        &[
            "/usr/local/go/bin/gofmt -l .",
            "/usr/local//go/./bin/gofmt",
            "packages/a/node_modules/.bin/tsc",
        ],
    );
    all_denied(
        &policy,
        &[
            "/usr/local/./bin/evil",
            "/usr/local//bin/evil",
            "/usr/local/go/../bin/evil",
            "/usr/local/a/b/bin/evil",
            "/opt/../usr/local/bin/evil",
            "packages/../node_modules/.bin/evil",
            "packages/node_modules/.bin/evil",
        ],
    );
}

#[test]
fn a_relative_path_in_a_rule_begins_where_the_rules_begin() {
    let policy = allow(
        "./bin/*,./gradlew,../tools/run,scripts/t.sh,env,find,pushd,sh,xargs,timeout,sudo,echo",
    );
    all_allowed(
        &policy,
        &[
            "./bin/x",
            "bin/x",
            "/srv/proj/bin/x",
            "./gradlew build && /srv/proj/gradlew test",
            "cd /srv/proj && ./gradlew build",
            "cd . && ./gradlew build",
            "../tools/run",
            "./scripts/t.sh",
            "timeout 5 ./bin/x; echo | xargs ./bin/x; sh -c './bin/x'",
        ],
    );
    all_denied(
        &policy,
        &[
            "cd /usr/local && ./bin/evil",
            "cd /usr/local; bin/evil",
            "(cd /usr/local; ./bin/evil)",
            "cd sub; ./gradlew",
            "cd $x; ./gradlew",
            "cd /usr/local/lib; ../tools/run",
            "pushd /usr/local; ./bin/evil",
            "env -C /usr/local ./bin/evil",
            "sudo -D /usr/local ./bin/evil",
            "find /usr/local/bin -maxdepth 0 -execdir ./bin/evil \\;",
            "sh -c 'cd /usr/local && ./bin/evil'",
            "cd /usr/local; echo | xargs ./bin/evil",
            "cd /usr/local; timeout 5 ./bin/evil",
            "f() { ./bin/evil; }; cd /usr/local; f",
            "link/../bin/evil",
            "./bin/../gradlew",
        ],
    );
    let elsewhere = Scene { directory: "/srv/other", ..SCENE };
    for (command, may) in [("./gradlew", false), ("../proj/gradlew", true), ("../tools/run", true)]
    {
        let judged = policy.judge(command, "bash", &elsewhere).verdict;
        assert_eq!(judged == Verdict::Allow, may, "{command}");
    }
}

#[test]
fn a_path_through_a_link_that_the_command_made_matches_no_rule() {
    let policy = allow("./node_modules/.bin/*,./bin/*,ln,mkdir");
    all_allowed(&policy, &["ln -s a b; ./bin/x", "mkdir -p node_modules; ./node_modules/.bin/tsc"]);
    all_denied(
        &policy,
        &[
            "ln -s /usr/local/bin node_modules/.bin; ./node_modules/.bin/evil",
            "ln -s /usr/local/bin bin; ./bin/evil",
        ],
    );
}

#[test]
fn a_regular_expression_does_not_take_a_path_for_a_command() {
    let policy = allow(
        "/^git (log|diff)/,/^(ls|cat)\\b/,/^\\.\\/scripts\\/[a-z.]+/,/^\\/opt\\/tool\\//,mkdir,ln,find",
    );
    all_allowed(
        &policy,
        &["git log -1", "ls /x/../y '..'", "./scripts/t.sh a", "/opt/tool/bin/x", "cat 'a b'"],
    );
    all_denied(
        &policy,
        &[
            "mkdir 'git log'; 'git log/../../../usr/local/bin/evil'",
            "ln -s /usr/local/bin 'git diff'; git\\ diff/evil",
            "mkdir ls; ls/../../../usr/local/bin/evil",
            "ls/evil",
            "./scripts/../../../usr/local/bin/evil",
            "./scripts/.//../x",
            "/opt/tool/../../usr/local/bin/evil",
            "cd /usr/local; ./scripts/evil",
            "mkdir 'git log '; find . -maxdepth 0 -exec 'git log /../../../usr/local/bin/evil' \\;",
        ],
    );
}
