//! What make, git and compilers run, load or write by their options, variables and input.
#![allow(clippy::unwrap_used, clippy::panic, dead_code, reason = "a test may panic")]

mod support;

use mcpz_policy::Policy;
use support::programs::{is_honest, runs_evil, writes_elsewhere};
use support::{all_allowed, all_denied, allow, deny};

#[test]
fn make_inserts_variables_into_commands() {
    runs_evil(&[
        "GNUMAKEFLAGS='--eval=x!=evil' make",
        "MAKEFLAGS='--eval=x!=evil' make",
        "make --ev='x!=evil'",
        "make x CFLAGS='; evil #'",
        "make x LDLIBS='|evil'",
        "make x TARGET_ARCH=';evil;'",
        "make x LINK.c=evil",
        "make x COMPILE.c=evil",
        "make RM=evil clean",
        "make AR=evil x",
        "make MAKE=evil x",
        "RM=evil make clean",
        "LDFLAGS=';evil;' make x",
        "make -j RM=evil",
        "make -j X='$(shell evil)'",
        "printf 'x:\\n\\tevil\\n' | make -f -",
        "printf 'x:\\n\\tevil\\n' | make -f /proc/self/fd/0",
        "printf 'x:\\n\\tevil\\n' | make -f //dev/stdin",
        "printf 'x:\\n\\tevil\\n' | make --file=/dev/fd/0",
    ]);
    all_denied(&deny("evil"), &["make TOOL=evil", "make TOOL='x evil'"]);
    is_honest(&[
        "make",
        "make -j4 all",
        "make -j 4",
        "make -j$(nproc)",
        "make -C sub install PREFIX=/usr/local DESTDIR=out",
        "make V=1 VERSION=1.2.3 ARGS='-v --color'",
        "make test TEST='TestFoo|TestBar'",
        "make CC=gcc CFLAGS='-O2 -g -Wall -DX=1'",
        "make -f build.mk -k clean",
        "make --no-print-directory -s help",
        "CC=clang make",
        "CFLAGS='-O2 -I include' make",
        "MAKEFLAGS='-j4 -s' make",
    ]);
}

#[test]
fn git_runs_and_writes_by_options_and_variables() {
    runs_evil(&[
        "git push --e='evil;' . HEAD:x",
        "git push --receive-pack=evil . x",
        "git fetch --upload-p=evil .",
        "git archive --exec=evil --remote=. HEAD",
        "git archive --remote='ext::evil' HEAD",
        "git clone ext::evil x",
        "git merge-index evil -a",
        "git hook run x",
        "git config color.x '!evil' && git config --rename-section color alias",
        "GIT_SSH_COMMAND=evil git fetch",
        "GIT_CONFIG_COUNT=1 git status",
        "GIT_EXTERNAL_DIFF=evil git diff",
        "GIT_ATTR_SOURCE=evil git diff",
        "git -c core.fsmonitor=evil status",
        "git -c credential.helper=evil fetch",
        "git for-each-repo --config=x evil",
    ]);
    writes_elsewhere(&[
        "GIT_TRACE=/srv/x git status",
        "GIT_TRACE2_EVENT=/srv/x git log",
        "GIT_TRACE_PACKET=/srv/x git log",
        "git bundle create /srv/x HEAD",
        "git log --output=/srv/x",
        "git log --outpu=/srv/x",
        "git diff --output /srv/x",
        "x=--output=/srv/x; git log $x",
        "git log --outpu{t,}=/srv/x",
        "git format-patch -o /srv/x HEAD~1",
        "git archive -o /srv/x.tar HEAD",
        "git clone . /srv/x",
        "git init /srv/x",
        "git worktree add /srv/x",
    ]);
    is_honest(&[
        "git status --short",
        "git log --oneline -n 5 --format='%h %s'",
        "git diff --stat HEAD~1 -- src",
        "git -C sub -c color.ui=never log -p",
        "git -c core.pager=cat log",
        "git --no-pager show HEAD",
        "git commit -m 'a message; with | signs'",
        "git commit --amend --no-edit",
        "git clone --depth 1 https://example.org/x.git",
        "git push origin HEAD:main",
        "git rebase -i --autosquash main",
        "git stash push -m wip",
        "git config user.name Ada",
        "git config --get remote.origin.url",
        "git grep -n 'evil idea' -- '*.rs'",
        "git fetch --all --prune --tags",
        "git archive -o x.tar HEAD",
        "git bundle create x.bundle HEAD",
        "git format-patch -1 -o patches",
        "git worktree add ../x",
        "git bundle verify x.bundle",
        "GIT_TRACE=1 git fetch",
        "GIT_AUTHOR_NAME=Ada GIT_COMMITTER_DATE='2024-01-01 10:00' git commit -m x",
        "GIT_TERMINAL_PROMPT=0 git fetch",
        "git blame -L 10,20 src/x.rs",
        "git show \"$sha\"",
    ]);
}

#[test]
fn compilers_load_plugins_and_run_linkers() {
    runs_evil(&[
        "gcc -wrapper evil -c x.c",
        "gcc -Wl,--plugin=./evil.so x.c",
        "gcc -Wl,-O1,-plugin,./evil.so x.c",
        "gcc -Wl,-plug,./evil.so x.c",
        "gcc -fuse-ld=./evil x.c",
        "clang --ld-path=evil x.c",
        "gcc --specs=evil x.c",
        "gcc --prefix=evil x.c",
        "clang --config evil.cfg x.c",
        "MAKE=evil gcc -flto=2 x.c",
        "DEPENDENCIES_OUTPUT=/srv/evil gcc -c x.c",
        "COLLECT_GCC=evil gcc x.c",
        "COMPILER_PATH=evil gcc x.c",
        "rustc -C link-args='-wrapper evil' x.rs",
        "rustc -C link_arg=evil x.rs",
        "rustc -Clinker=evil x.rs",
        "rustc --codegen linker=evil x.rs",
        "rustc @evil",
        "cargo rustc -- -C linker=evil",
        "cargo --config target.x.linker=evil build",
        "CARGO_BUILD_RUSTC_WORKSPACE_WRAPPER=evil cargo build",
        "CARGO_BUILD_RUSTFLAGS=-Clinker=evil cargo build",
        "CARGO_BUILD_RUSTDOC=evil cargo doc",
        "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER=evil cargo run",
        "CARGO_PROFILE_DEV_RUSTFLAGS='-C linker=evil' cargo build",
        "RUSTUP_TOOLCHAIN=/srv/evil cargo build",
        "rustup run stable evil",
        "rustup run --install stable evil",
        "go env -w CC=evil",
        "go build -ldflags='-linkmode=external -extld=evil'",
        "go build -ldflags '-extld evil'",
        "go tool link -extld=evil x.o",
        "go tool test2json rm x",
        "go tool trace trace.out",
        "go test -exec evil",
        "go build -toolexec=evil",
        "GOFLAGS=-toolexec=evil go build",
        "GOCACHEPROG=evil go build",
        "GOAUTH='evil x' go get x",
        "CGO_LDFLAGS='-B evil' go build",
        "cmake -E env evil",
        "cmake -DCMAKE_C_COMPILER=evil .",
        "cmake -D CMAKE_CXX_COMPILER_LAUNCHER=evil .",
    ]);
    is_honest(&[
        "gcc -O2 -Wall -Wextra -o x x.c -lm",
        "gcc -c -fPIC -Iinclude -DX=1 x.c",
        "gcc -Wl,-rpath,/opt/lib -Wl,--as-needed x.o",
        "gcc -shared -fsanitize=address x.c",
        "g++ -std=c++20 x.cc",
        "clang -fsyntax-only x.c",
        "rustc --edition 2021 -C opt-level=3 -C target-cpu=native x.rs",
        "rustc -O -o x x.rs",
        "cargo build --release --features x",
        "cargo test --workspace -- --nocapture",
        "cargo clippy --all-targets -- -D warnings",
        "cargo +nightly fmt",
        "cargo run --bin x -- --config c.toml",
        "cargo rustc -- -C target-cpu=native",
        "CARGO_TERM_COLOR=never CARGO_TARGET_DIR=/tmp/t cargo build",
        "RUSTFLAGS='-D warnings' cargo check",
        "rustup show",
        "rustup toolchain list",
        "go build ./...",
        "go test -run 'TestA|TestB' -v ./pkg",
        "go build -ldflags='-s -w -X main.version=1.2' -o x .",
        "go env GOPATH",
        "go vet ./... ",
        "go mod tidy",
        "go tool cover -html=c.out",
        "GOOS=linux GOARCH=arm64 CGO_ENABLED=0 go build",
        "cmake -B build -DCMAKE_BUILD_TYPE=Release",
        "cmake --build build -j4",
    ]);
}

#[test]
fn git_writes_settings_only_where_files_may_be_written() {
    let policy = Policy { write_dirs: vec!["/srv/proj".to_owned()], ..Policy::default() };
    all_denied(
        &policy,
        &["git config -f /etc/x user.name ada", "git config --file=/etc/x user.name ada"],
    );
    all_allowed(
        &policy,
        &["git config -f .gitmodules user.name ada", "git config -f /etc/x --get user.name"],
    );
}

#[test]
fn the_formatter_of_cargo_writes_no_other_file() {
    let policy = allow("cargo fmt");
    all_allowed(
        &policy,
        &["cargo fmt --all -- --check", "cargo fmt -- --edition 2024", "cargo fmt -- src/a.rs"],
    );
    all_denied(
        &policy,
        &[
            "cargo fmt -- --print-config default /tmp/x",
            "cargo fmt -- --config-path /tmp",
            "cargo fmt -- ../x.rs",
        ],
    );
}

#[test]
fn names_of_tests_in_python_may_lead_through_packages_and_classes() {
    let policy = allow("python3 -m unittest");
    all_allowed(
        &policy,
        &["python3 -m unittest tests.unit.test_a", "python3 -m unittest tests.test_a.Case.test_b"],
    );
    all_denied(
        &policy,
        &["python3 -m unittest tests.code.interact", "python3 -m unittest code.test.interact"],
    );
}

#[test]
fn go_compiles_no_file_that_the_rule_does_not_name() {
    let policy = allow("go run main.go");
    all_allowed(&policy, &["go run main.go", "go run main.go x other.go", "go run main.go -v"]);
    all_denied(
        &policy,
        &["go run main.go other.go", "go run main.go *.go", "go run main.go $x", "go run other.go"],
    );
    all_allowed(&allow("go run main.go *"), &["go run main.go x"]);
    all_allowed(&allow("go run ."), &["go run . other.go"]);
}

#[test]
fn a_rule_with_options_of_an_interpreter_allows_no_file() {
    all_denied(
        &allow("lua -v,python3 -u,ruby -w,node --no-warnings,php -i"),
        &[
            "lua -v e.lua",
            "python3 -u x.py",
            "ruby -w x.rb",
            "node --no-warnings x.js",
            "php -i x.php",
        ],
    );
    all_allowed(
        &allow("lua -v,perl -wc,ruby -c,php -l,python3 -u x.py"),
        &["lua -v", "perl -wc x.pl", "ruby -c x.rb", "php -l x.php", "python3 -u x.py a -b"],
    );
}

#[test]
fn interpreters_that_look_for_options_everywhere_get_no_others() {
    all_denied(
        &allow("ipython3 x.py,j2 t.j2,jruby x.rb,ghci a.hs"),
        &[
            "ipython3 x.py -c code",
            "ipython3 x.py --ext e",
            "ipython3 x.py y.py",
            "j2 t.j2 --customize e.py",
            "jruby x.rb '|pwned'",
            "ghci a.hs -e code",
        ],
    );
    all_allowed(
        &allow("ipython3 x.py,ipython3 y.py *,jruby x.rb"),
        &["ipython3 x.py", "ipython3 y.py a", "jruby x.rb a"],
    );
}

#[test]
fn a_pattern_for_goals_sets_no_variable() {
    let policy = allow("make *-test,rake *test,make V*,mvn -D*");
    all_allowed(&policy, &["make unit-test", "rake test", "make VERBOSE=1", "mvn -Dx=1"]);
    all_denied(&policy, &["make T=./x-test", "make T:=./x-test", "rake T=./x-test"]);
}
