//! What may be added to a rule for a script of a project, or for one that a package manager runs.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

#[allow(dead_code, reason = "each test file uses some of it")]
mod support;

use mcpz_policy::{Policy, Rule, Scene, Verdict};
use support::{all_allowed, all_denied, allow};

#[test]
fn a_program_without_an_ending_follows_cd_as_well() {
    let policy = allow("node .,node index,perl bin/*,npx node .,cd,python3 -m pytest");
    all_allowed(&policy, &["node .", "perl bin/x -e y", "cd web && python3 -m pytest"]);
    all_denied(
        &policy,
        &[
            "cd /usr/x && node .",
            "cd x; node index",
            "cd /usr && perl bin/prove -e pwned x",
            "cd x; npx node .",
        ],
    );
}

#[test]
fn a_script_takes_more_arguments_unless_the_rule_says_which() {
    let policy = allow("python3 scripts/x.py,python3 venv/bin/pylint src,node tools/lint.js *");
    all_allowed(&policy, &["python3 scripts/x.py --fast a", "node tools/lint.js --fix src"]);
    all_denied(&policy, &["python3 venv/bin/pylint src --init-hook x"]);
}

#[test]
fn what_scripts_get_is_no_shell_text() {
    let policy = allow("npm run watch,npm run release,npm test");
    all_allowed(
        &policy,
        &[
            "npm run watch -- --grep=works",
            "npm test -- test/a.test.js",
            "npm run release --tag next",
        ],
    );
    all_denied(
        &policy,
        &[
            "npm run watch -- --grep='x;pwned'",
            "npm test -- 'test/a.test.js::;pwned;'",
            "npm run release --tag 'next --script-shell=pwned'",
            "https_proxy=127.0.0.1:8000 npm test",
            "SSL_CERT_FILE=3 npm test",
            "GIT_SSL_NO_VERIFY=1 npm test",
        ],
    );
}

#[test]
fn what_a_program_opens_is_no_command() {
    let policy = allow("perl scripts/count.pl,tclsh scripts/count.tcl,cat,read");
    all_allowed(&policy, &["perl scripts/count.pl data.txt", "tclsh scripts/count.tcl data.txt"]);
    all_denied(
        &policy,
        &[
            "perl scripts/count.pl 'pwned|'",
            "perl scripts/count.pl \"$(cat x)\"",
            "perl scripts/count.pl *",
            "read x; perl scripts/count.pl \"$x\"",
            "tclsh scripts/count.tcl '|pwned'",
            "perl scripts/count.pl ~+",
            "perl scripts/count.pl 'README,pwned|,x'",
        ],
    );
}

#[test]
fn a_test_file_runs_only_tests() {
    let policy = allow("python3 tests/test_a.py,uv run tests/test_a.py,python3 scripts/count.py");
    all_allowed(
        &policy,
        &[
            "python3 tests/test_a.py",
            "python3 tests/test_a.py -v TestA.test_one",
            "uv run tests/test_a.py TestA",
            "python3 scripts/count.py src/a.b",
        ],
    );
    all_denied(
        &policy,
        &[
            "python3 tests/test_a.py unittest.case.sys.breakpointhook",
            "python3 tests/test_a.py TestA scripts/other.py",
            "uv run tests/test_a.py code.interact",
        ],
    );
}

#[test]
fn flags_of_cargo_run_nothing() {
    let policy = allow("cargo test,make test");
    all_allowed(
        &policy,
        &[
            "RUSTFLAGS=-Copt-level=3 cargo test",
            "CARGO_PROFILE_DEV_RUSTFLAGS=-Dwarnings cargo test",
        ],
    );
    all_denied(
        &policy,
        &[
            "RUSTDOCFLAGS=--test-runtool=pwned cargo test",
            "CARGO_FLAGS=pwned make test",
            "CARGO_BUILD_FLAGS=pwned make test",
        ],
    );
}

#[test]
fn options_of_the_compiler_are_recognised_among_others() {
    let policy = allow("cargo clippy,cargo rustc");
    all_allowed(&policy, &["cargo clippy -- -D warnings", "cargo rustc -- -OCopt-level=3 -g"]);
    all_denied(
        &policy,
        &[
            "cargo clippy -- --emit=link -OClinker=pwned",
            "cargo rustc -- -gC linker=pwned",
            "cargo rustc -- -vgOZ x",
        ],
    );
}

#[test]
fn an_address_or_a_path_is_no_number_or_zone() {
    let policy = allow("make setup,make test");
    all_allowed(
        &policy,
        &["CI=1 make test", "PYTHONHASHSEED=0 make test", "TZ=Europe/Berlin make test"],
    );
    all_denied(
        &policy,
        &[
            "MIRROR_HOST=127.0.0.1:8000 make setup",
            "MIRROR_HOST=203.0.113.5 make setup",
            "TZ=/usr/local/bin/pwned make test",
        ],
    );
}

#[test]
fn git_runs_commands_in_the_folder_that_it_is_told() {
    let policy = allow("git,node .");
    all_allowed(&policy, &["git -C sub status", "git -C sub status && git log"]);
    all_denied(&policy, &["git -C /opt/npm ls-remote --upload-pack='node . exec pwned' ."]);
}

#[test]
fn an_expression_for_a_relative_path_means_the_folder_where_rules_begin() {
    let policy =
        Policy { allow: vec![Rule::new("/^\\.\\/bin\\/[a-z]+$/").unwrap()], ..Policy::default() };
    let at = |directory: &'static str| Scene { rules_begin: "/srv/proj", ..Scene::at(directory) };
    assert_eq!(policy.judge("./bin/tool", "sh", &at("/srv/proj")).verdict, Verdict::Allow);
    assert_ne!(policy.judge("./bin/tool", "sh", &at("/usr/local")).verdict, Verdict::Allow);
}
