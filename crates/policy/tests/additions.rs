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
            "make test -j4 -B",
            "make test -j 4 -C sub",
            "make -j4 test",
            "make -s -C sub test",
            "make test V=1 VERBOSE=true",
            "make test -sj8 --no-print-directory",
            "CI=1 LANG=C make test",
            "make -B test",
        ],
    );
    all_denied(
        &policy,
        &[
            "make test SHELL=pwned",
            "CFLAGS=-O2 make build",
            "GIT_AUTHOR_NAME=Ann make build",
            "make -C /tmp test",
            "make test --directory=../x",
            "make -C \"$x\" test",
            "make test -j SHELL=pwned",
            "make test ';pwned'",
            "make test '$(shell pwned)'",
            "PWD=';pwned;'; make test",
            "LANG=';pwned;'; make test",
            "make -C test deploy",
            "make -C sub deploy test",
            "make -k test",
            "make test -i",
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
            "CFLAGS='-include /dev/stdin' make build",
            "LDLIBS='-x c /dev/stdin' make build",
            "make test deploy",
            "TMPDIR='/tmp --to-command=pwned' make test",
            "GIT_REF='HEAD --exec=pwned' make build",
            "DESTDIR=/tmp/d make build",
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
fn what_looks_like_a_sub_command_may_be_a_folder_or_one_task_of_several() {
    let policy =
        allow("meson build,meson setup build,meson test,meson compile,turbo build,nx build shop");
    all_allowed(
        &policy,
        &[
            "meson build",
            "meson setup build",
            "meson test -C build --repeat 2 --print-errorlogs",
            "turbo build",
            "nx build shop",
        ],
    );
    all_denied(
        &policy,
        &[
            "meson compile deploy",
            "meson test -C build parser",
            "meson build ../other",
            "meson build src",
            "meson setup build src",
            "turbo build deploy",
            "turbo build --filter web",
            "nx build shop api",
        ],
    );
}

#[test]
fn other_build_tools_take_operands_and_known_options() {
    let policy = allow(
        "cmake --build build,meson test,go test,mvn test,./gradlew test,dotnet build,bazel test //...,tox,rpm -qa,\
         uv run pytest,npx eslint,pytest",
    );
    all_allowed(
        &policy,
        &[
            "cmake --build build -j8 --clean-first",
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
            "go test /tmp/x/x_test.go",
            "go test ../../tmp/x/x_test.go",
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
fn operands_are_those_of_the_sub_command_unless_the_rule_names_one() {
    let policy = allow(
        "pip install,pip install -r requirements.txt,pip download requests,npm install,npm init -y,apt install curl,\
         apt show,concurrently npm:test,cargo add,cargo test,go test,uv pip install,pytest tests,mvn test,./gradlew test",
    );
    all_allowed(
        &policy,
        &[
            "pip install requests flask",
            "pip install -e .",
            "npm install left-pad",
            "apt show curl wget",
            "cargo add serde",
            "cargo test one two",
            "cargo +nightly test",
            "go test ./a ./b",
            "uv pip install x y",
            "pytest tests tests/unit",
            "pytest -q tests",
            "mvn -q clean test",
            "mvn -B -ntp test",
            "./gradlew --no-daemon test",
            "cargo t",
            "npm i left-pad",
        ],
    );
    all_allowed(&allow("uv run pytest"), &["uv run --frozen pytest -q", "uv -q run pytest"]);
    all_denied(
        &allow("uv run pytest"),
        &["uv run --with evil pytest", "uv run evil --frozen pytest"],
    );
    all_denied(
        &policy,
        &[
            "pip download requests ./e",
            "pip download requests -r /dev/stdin",
            "apt install curl evil",
            "npm init -y app",
            "concurrently npm:test pwned",
            "pytest tests /tmp/test_e.py",
            "pytest tests ../x",
            "cargo +/tmp/x test",
            "mvn test deploy",
            "./gradlew test publish",
            "mvn test -Dtest com.evil:evil-maven-plugin:1.0:run",
            "pytest tests scripts/deploy.py",
        ],
    );
    all_denied(
        &allow(
            "cmake --build build,mocha test,uv run pytest tests,make test-*,python3 scripts/*,cd",
        ),
        &[
            "cmake --build build --target SHELL=/usr/local/bin/pwned",
            "cmake --build build --target=-f/dev/stdin",
            "mocha test -u ./deploy.js",
            "uv run pytest tests --trace",
            "make 'test-a.py --trace'",
            "cd other && python3 scripts/x.py",
        ],
    );
    all_allowed(
        &allow("cmake --build build,uv run pytest tests,uv run ruff,make test-*,python3 scripts/*"),
        &[
            "cmake --build build --config Debug -j4",
            "uv run pytest tests -q tests/unit",
            "uv run ruff check --fix .",
            "make test-unit",
            "python3 scripts/x.py",
            "python3 ./scripts/x.py",
        ],
    );
    all_denied(
        &allow("pip install -r requirements.txt,tox -e py"),
        &[
            "pip install -r requirements.txt ./e",
            "pip install -r requirements.txt -e ./e",
            "tox -e py -- pwned",
        ],
    );
}

#[test]
fn a_script_of_the_project_takes_options_that_are_harmless_to_every_runner() {
    let policy = allow("npm test,npm run *,pnpm test,yarn run build");
    all_allowed(
        &policy,
        &[
            "npm test -- --watch=false --coverage src/a.test.js",
            "npm run dev -- --port 3000 --host",
            "pnpm test -- --testNamePattern=name",
            "pnpm test --watch",
            "yarn run build --mode=production",
        ],
    );
    all_denied(
        &policy,
        &[
            "npm test -- --import=data:text/javascript,x",
            "npm test -- -e 'x'",
            "npm test -- -p x",
            "pnpm test --config evil.js",
            "pnpm test -- --require ./e.js",
            "yarn run build ../../evil.js",
            "npm test -- -k SHELL=pwned",
            "npm test 'SHELL:=pwned'",
            "pnpm test SHELL+=pwned",
            "pnpm test code.interact",
            "pnpm test tests.test_a.unittest.case.sys.breakpointhook",
            "pnpm test pwned",
            "pnpm --cwd pwned test",
            "yarn --production run build",
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
fn a_file_that_the_rule_does_not_mean_is_refused_with_the_reason() {
    let told = refusal(&allow("python3 scripts/*,cd"), "cd other && python3 scripts/x.py");
    assert!(told.contains("its path starts at the server's working directory"), "{told}");
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

#[test]
fn an_option_counts_as_the_program_has_it() {
    let policy = allow(
        "cmake -B build,cmake --build build,ctest,pacman -Q,dpkg -l,rpm -q,yarn deploy,pnpm deploy",
    );
    all_allowed(
        &policy,
        &[
            "cmake -B build -G Ninja",
            "cmake -B build -L",
            "cmake --build build -j 4 --config Release",
            "ctest -L unit -j4 --output-on-failure",
            "ctest --test-dir build -R x -E y -LE slow",
            "dpkg -l bash",
            "dpkg -l -S /bin/ls",
            "rpm -q bash -l",
            "pacman -Q bash",
            "pnpm deploy out",
        ],
    );
    all_denied(
        &policy,
        &[
            "cmake --build build --target all",
            "cmake -B build -L evil",
            "cmake -B build -LE evil",
            "cmake -B build -R evil",
            "cmake -B build --test-dir evil",
            "cmake -B build --repeat evil",
            "pacman -Q -S evil",
            "pacman -Q bash -S",
            "yarn deploy evil",
        ],
    );
}

#[test]
fn no_other_name_of_a_sub_command_that_runs_something_takes_what_to_run() {
    for (rule, commands) in [
        (
            "npm run",
            &["npm run danger", "npm rum danger", "npm urn danger", "npm run-script danger"][..],
        ),
        ("npm exec", &["npm exec tool", "npm x tool"]),
        ("npm test", &["npm test danger", "npm t danger", "npm tst danger"]),
        ("npm init", &["npm init tool", "npm create tool", "npm innit tool"]),
        ("pnpm run", &["pnpm run danger"]),
        ("pnpm exec", &["pnpm exec tool"]),
        ("yarn workspace", &["yarn workspace web run danger"]),
        ("uv run", &["uv run tool"]),
        ("bundle exec", &["bundle exec tool", "bundle e tool"]),
        ("go run", &["go run ./cmd/danger", "go run example.com/x@latest"]),
        (
            "go generate",
            &["go generate /other/g.go", "go generate ../other/g.go", "go generate ./x"],
        ),
        (
            "pipx run",
            &["pipx run /other/e.py", "pipx run --path e.py", "pipx run --python ./evil black"],
        ),
        ("pipx install", &["pipx install --python ./evil black"]),
        ("uv python", &["uv python find ./evil", "uv python list ./evil", "uv python pin ./evil"]),
        ("uv tool", &["uv tool run danger"]),
        ("uv tool run", &["uv tool run danger"]),
        (
            "uv tool install ruff",
            &["uv tool install ruff --python ./evil", "uv tool install ruff --with ./evil"],
        ),
        ("uv pip compile", &["uv pip compile pyproject.toml", "uv pip compile /other/req.in"]),
        (
            "uv lock",
            &[
                "uv lock --upgrade-package 'x @ /other'",
                "uv lock --upgrade-package 'x @ file:/other'",
            ],
        ),
        ("hatch run build", &["HATCH_ENV=dev hatch run build"]),
        ("pdm run build", &["PDM_IN_ENV=test pdm run build"]),
        ("uv python find", &["uv python find ./evil", "uv python find -- ./evil"]),
        ("poetry env use", &["poetry env use ./evil"]),
        ("pdm use", &["pdm use ./evil"]),
        ("hatch env", &["hatch env run danger"]),
        ("hatch env run", &["hatch env run danger"]),
        ("lerna run", &["lerna run danger"]),
        ("lerna exec", &["lerna exec danger", "lerna exec -- danger"]),
        ("nx run", &["nx run app:danger"]),
        ("bazel run", &["bazel run //tools:danger"]),
        ("pre-commit try-repo", &["pre-commit try-repo /other"]),
        ("npm pack", &["npm pack /other", "npm pack ../other"]),
        ("cargo watch", &["cargo watch ./danger"]),
        ("cargo make", &["cargo make danger"]),
        ("dotnet exec", &["dotnet exec x.dll"]),
        ("dotnet build", &["dotnet build /other/x.proj", "dotnet build sub/x.proj"]),
        ("poetry run", &["poetry run danger", "poetry -C sub run danger"]),
        ("poetry run pytest tests", &["poetry -C sub run pytest tests"]),
        ("bazel test //app:test", &["bazel test //app:test //tools:danger"]),
    ] {
        all_denied(&allow(rule), commands);
    }
    all_allowed(
        &allow("uv run pytest,pnpm run build,go run ."),
        &["uv run pytest -q", "pnpm run build", "go run . x"],
    );
    all_denied(&allow("pip install"), &["pip install -e --config-settings=x y"]);
}
