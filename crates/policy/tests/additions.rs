//! A rule for one use of a program that can run anything allows only arguments beside it that change nothing.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

#[allow(dead_code, reason = "each test file uses some of it")]
mod support;

use support::{all_allowed, all_denied, allow, refusal};

#[test]
fn make_runs_its_target_and_nothing_else() {
    let policy = allow("make test,make build,find,cat,read");
    all_allowed(
        &policy,
        &[
            "make test",
            "make test -j4 -k",
            "make test -j 4 -C sub",
            "make -j4 test",
            "make -s -C sub test",
            "make test V=1 VERBOSE=true",
            "make test -sj8 --no-print-directory",
            "CI=1 LANG=C make test",
            "CFLAGS=-O2 make build",
        ],
    );
    all_denied(
        &policy,
        &[
            "make test SHELL=pwned",
            "make test -j SHELL=pwned",
            "make test ';pwned'",
            "make test '$(shell pwned)'",
            "PWD=';pwned;'; make test",
            "LANG=';pwned;'; make test",
            "make -C test deploy",
            "make -C sub deploy test",
            "make test -l SHELL=pwned",
            "make test --jobs SHELL=pwned",
            "make test -é SHELL=pwned",
            "make test ' SHELL=pwned'",
            "make test 'SHE$(x)LL=pwned'",
            "make test \"S$(cat x)\"",
            "make test SHELL*",
            "make test -- *",
            "find SHELL* -exec make test {} +",
            "make test 'Z=a|pwned'",
            "make build TOOL=pwned",
            "make build V=pwned",
            "make build CROSS_COMPILE='pwned '",
            "make build 'CFLAGS=-wr\"apper\" pwned'",
            "make test -C /dev/fd -f 0",
            "make test -f other.mk",
            "make test --eval=x",
            "make test --ev=x",
            "make test $x",
            "f() { make test \"$@\"; }; f SHELL=pwned",
            "DESTDIR='x;pwned;' make test",
            "LANG='`pwned`' make test",
            "X=$(cat x) make test",
            "CFLAGS=\"-wr''apper pwned\" make build",
            "CFLAGS=--prefix=/srv/proj/d/ make build",
        ],
    );
}

#[test]
fn package_managers_take_options_that_choose_and_show() {
    let policy = allow("npm test,npm run *,npm view,apt list,apt-get update,pip list,cargo test");
    all_allowed(
        &policy,
        &[
            "npm test --silent",
            "npm test -w web -- --watch",
            "npm run build --if-present",
            "npm --prefix web run build",
            "npm run",
            "apt list --installed -qq",
            "apt-get update -qy",
            "pip list --format=json --outdated",
            "cargo test --release -p core -j4 some_test -- --nocapture",
            "cargo test --features 'a b' --message-format=short",
        ],
    );
    all_denied(
        &policy,
        &[
            "npm test --script-shell pwned",
            "npm test ---script-shell pwned",
            "npm run --script-shell=pwned build",
            "npm --tag x run build ---script-shell pwned",
            "npm --depth exec run build ---script-shell pwned",
            "npm run build -script-shell=pwned",
            "npm view git+file:///srv/proj -git=pwned",
            "npm test -node-options=--require=./e.js",
            "apt list -qoDir::Bin::dpkg=/usr/local/bin/pwned",
            "apt list --OPTION Dir::Bin::dpkg=/usr/local/bin/pwned",
            "apt-get update -qoAPT::Update::Pre-Invoke::=pwned",
            "pip list --python pwned",
            "cargo test --config 'build.rustc=\"pwned\"'",
            "cargo test --target ./x.json",
            "cargo test $x",
        ],
    );
}

#[test]
fn interpreters_take_options_of_the_script_and_none_of_their_own() {
    let policy = allow(
        "node --check,node -p process.version,node --version,perl -V,perl -c,gdb --version,java --list-modules,\
         java -jar app.jar,python3 scripts/*,python3 -m pytest,python3 -m pip list,ruby -v",
    );
    all_allowed(
        &policy,
        &[
            "node --check t.js",
            "node -p process.version",
            "node --version",
            "perl -V",
            "perl -c x.pl",
            "java --list-modules",
            "java -jar app.jar --port 80 -x",
            "python3 scripts/x.py --force -v a=b",
            "python3 -m pytest -k name tests/test_*.py",
            "python3 -m pip list --outdated",
            "ruby -v",
        ],
    );
    all_denied(
        &policy,
        &[
            "node --check --import 'data:text/javascript,x' t.js",
            "node -p process.version -e 'x'",
            "node -p process.version --require ./x",
            "perl -V '-MList::Util;system(q(pwned))'",
            "perl -c -e 'BEGIN{system q(pwned)}'",
            "gdb --version -eiex 'shell pwned'",
            "java --list-modules -Xrunjdwp:transport=dt_socket,server=y,launch=pwned",
            "python3 -m pytest -p evil",
            "python3 -m pip list --python=pwned",
            "ruby -v x.rb",
            "node --version x.js",
        ],
    );
}

#[test]
fn other_build_tools_take_operands_and_known_options() {
    let policy = allow(
        "cmake --build build,meson test,go test,mvn test,./gradlew test,dotnet build,bazel test,tox,rpm -qa,\
         uv run pytest,npx eslint,pytest",
    );
    all_allowed(
        &policy,
        &[
            "cmake --build build -j8 --target all",
            "go test -race -run TestX ./...",
            "mvn test -q -DskipTests",
            "./gradlew test --info -x lint",
            "dotnet build -c Release --no-restore",
            "bazel test //... --test_output=errors",
            "uv run pytest -x -p anything",
            "npx eslint --fix src",
            "npx -y eslint .",
            "pytest -p anything -c other.ini",
        ],
    );
    all_denied(
        &policy,
        &[
            "cmake --build build -- SHELL=pwned",
            "cmake --build build -- -E '$(shell pwned)'",
            "meson test --wrapper pwned",
            "go test -exec pwned ./...",
            "go test -ldflags='-linkmode=external \"-extld\" pwned'",
            "mvn test -Djvm=/usr/local/bin/pwned",
            "./gradlew test -Dorg.gradle.java.home=/x",
            "dotnet build -p:CscToolExe=pwned",
            "bazel test --shell_executable=pwned //x",
            "rpm -qa --pipe=pwned",
        ],
    );
}

#[test]
fn the_refusal_tells_the_argument_and_the_rule() {
    let told = refusal(&allow("npm test"), "npm test --script-shell pwned");
    assert!(
        told.contains("`--script-shell` (at 9) is added to what the rule `npm test` allows"),
        "{told}"
    );
}

#[test]
fn a_tracer_that_changes_what_a_command_reads_is_refused() {
    let policy = allow("strace,make test");
    all_allowed(
        &policy,
        &["strace -f -e trace=openat make test", "strace -e openat,read make test"],
    );
    all_denied(
        &policy,
        &[
            "strace -e inject=read:poke_exit=@arg2=00 make test",
            "strace -e fault=read make test",
            "strace --inject=read:retval=0 make test",
        ],
    );
}
