//! What a rule for one use of a program that can run anything does not extend to: other goals, files, folders.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

#[allow(dead_code, reason = "each test file uses some of it")]
mod support;

use support::{all_allowed, all_denied, allow};

#[test]
fn a_number_belongs_to_an_option_that_takes_one() {
    let policy = allow(
        "make test,make 3d,cmake --build build,ctest,pytest tests,jest test,mocha test,cmake .",
    );
    all_allowed(
        &policy,
        &[
            "make test -j 4 -Oline",
            "cmake --build build --parallel 4",
            "ctest -j 4",
            "pytest tests --cov -q",
        ],
    );
    all_denied(
        &policy,
        &[
            "make test -O 4",
            "make test -l 2",
            "make -l 3d",
            "make -C=sub test",
            "make test --output-sync 4",
            "make -O 4 test",
            "make test -kj 4",
            "cmake . -j 4",
            "pytest --cov tests",
            "jest -w test",
            "mocha --verbose test",
        ],
    );
}

#[test]
fn operands_may_follow_only_where_the_rule_names_none() {
    let policy = allow("go test ./a,go vet,cargo test adds,npm view react,pip list");
    all_allowed(&policy, &["go test ./a -v", "go vet ./...", "cargo test adds -q", "pip list"]);
    all_denied(
        &policy,
        &["go test ./a ./evil", "cargo test adds divides", "npm view react scripts"],
    );
}

#[test]
fn an_interpreter_that_goes_on_reads_its_program() {
    let policy = allow("tclsh --version,jshell -v,perl -v,node -v,python3 --version,ruby -v");
    all_allowed(&policy, &["perl -v", "node -v", "python3 --version", "ruby -v"]);
    all_denied(&policy, &["tclsh --version <<< x", "tclsh --version", "jshell -v < t"]);
}

#[test]
fn a_rule_that_names_a_file_holds_in_the_directory_where_it_begins() {
    let policy = allow(
        "make test,make -f ci.mk test,python3 -m tool,python3 -m pytest,python3 -m unittest tests.test_x,\
         npm --prefix web run build,npm run lint,rake -f tasks.rake test,ninja -f b.ninja,java -cp lib Main,\
         perl -Ilib -MFoo -e 1,python3 -m json.tool,/^python3 scripts.x.py$/,cd,env,uv run pytest,go test ./...",
    );
    all_allowed(
        &policy,
        &[
            "make -f ci.mk test",
            "make -f ci.mk test -s -j 4",
            "cd sub && make test",
            "make -C sub test",
            "cd sub && npm run lint",
            "cd sub && python3 -m pytest -q",
            "cd sub && uv run pytest",
            "cd sub && go test ./...",
            "perl -Ilib -MFoo -e 1",
            "python3 -m tool",
        ],
    );
    all_denied(
        &policy,
        &[
            "cd other && make -f ci.mk test",
            "env -C other make -f ci.mk test",
            "cd other && python3 -m tool",
            "cd other && python3 -m unittest tests.test_x",
            "cd other && npm --prefix web run build",
            "cd other && rake -f tasks.rake test",
            "cd other && ninja -f b.ninja",
            "cd other && java -cp lib Main",
            "cd other && perl -Ilib -MFoo -e 1",
            "cd other && python3 -m json.tool",
            "cd other && python3 scripts/x.py",
            "cd /tmp/x && make test",
            "cd .. && make test",
            "make -f ci.mk test -C other",
        ],
    );
}

#[test]
fn a_script_of_a_shell_is_the_one_where_rules_begin() {
    let policy =
        allow("bash scripts/x.sh,sh scripts/*,dash -e y.sh,bash -c ls,bash /opt/z.sh,ls,cd,env");
    let honest = [
        "bash scripts/x.sh",
        "sh scripts/a.sh b",
        "dash -e y.sh",
        "cd sub && bash -c ls",
        "cd sub && bash /opt/z.sh",
    ];
    all_allowed(&policy, &honest);
    let elsewhere = [
        "cd sub && bash scripts/x.sh",
        "cd /tmp/x && sh scripts/x.sh",
        "env -C /tmp/x dash -e y.sh",
    ];
    all_denied(&policy, &elsewhere);
}

#[test]
fn npm_runs_scripts_of_the_project_and_no_program() {
    let policy = allow("npm run *");
    all_allowed(
        &policy,
        &[
            "npm run lint",
            "npm run env",
            "npm run build -- a b",
            "npm run -s lint",
            "npm run build -- env prod",
            "npm run -w env lint",
        ],
    );
    all_denied(
        &policy,
        &[
            "npm run env x",
            "npm run env -- x",
            "npm run-script --silent env -- x",
            "npm run --prefix . env x",
            "npm run -w pkg env x",
            "npm --prefix . run env x",
            "npm run --color always env x",
            "npm run --json true -g false env x",
            "npm run --no-optional null env x",
            "npm run --loglevel warn env x",
        ],
    );
}

#[test]
fn an_added_option_replaces_none_of_the_rule() {
    let policy = allow("npm --prefix web test,ninja -C a test,pytest -m fast,cargo test -p core");
    all_denied(
        &policy,
        &[
            "npm --prefix web test --prefix evil",
            "npm --prefix web test -C evil",
            "ninja -C a test -C b",
            "pytest -m fast -m slow",
            "cargo test -p core --package evil",
        ],
    );
    all_allowed(&policy, &["npm --prefix web test --silent", "ninja -C a test -j 4"]);
}

#[test]
fn options_of_compilers_link_and_load_nothing() {
    let policy = allow("cargo test,cargo clippy,cargo rustc");
    all_allowed(
        &policy,
        &[
            "RUSTFLAGS='-D warnings' cargo test",
            "RUSTFLAGS='-C target-cpu=native --cfg x' cargo test",
            "cargo clippy -- -D warnings -W clippy::all",
        ],
    );
    all_denied(
        &policy,
        &[
            "RUSTFLAGS=-Levil cargo test",
            "RUSTFLAGS=-Lnative=evil cargo test",
            "CARGO_ENCODED_RUSTFLAGS=-Levil cargo test",
            "CARGO_BUILD_RUSTFLAGS=-levil cargo test",
            "RUSTFLAGS=-Clinker=x cargo test",
            "GOFLAGS=-toolexec=x cargo test",
            "TMPDIR=test cargo test",
            "IFS=on cargo test",
            "cargo clippy -- --extern x=evil.so",
            "cargo rustc -- -C linker=./evil",
        ],
    );
}

#[test]
fn what_a_rule_names_does_not_disappear() {
    let policy = allow("python3 scripts/*,shopt,bash,cargo test,python3 -m venv");
    all_denied(
        &policy,
        &[
            "shopt -s nullglob; python3 scripts/no*.py e.py",
            "shopt -s failglob; python3 scripts/no*.py",
            "shopt -s nocaseglob; python3 scripts/no*.py",
            "bash -O nullglob -c 'python3 scripts/*nope.py e.py'",
            "cargo +evil test",
            "cargo +/tmp/x test",
            "python3 -m venv x",
            "python3 -m venv --upgrade x",
        ],
    );
    all_denied(
        &allow("python3 -m venv x,mkdir,ln,cp"),
        &[
            "mkdir -p x/bin; ln -s /usr/local/bin/pwned x/bin/python3; python3 -m venv x",
            "cp -r evil x; python3 -m venv x",
        ],
    );
    all_allowed(&allow("python3 -m venv .venv,mkdir"), &["mkdir -p a; python3 -m venv .venv"]);
    all_allowed(
        &policy,
        &["cargo +stable test", "cargo +1.80.0 test", "cargo +nightly-2026-01-31 test"],
    );
    all_allowed(&allow("ls,shopt"), &["shopt -s nullglob; ls *.txt"]);
}
