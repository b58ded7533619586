//! What a rule for one use of a program leaves out stays out.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

#[allow(dead_code, reason = "each test file uses some of it")]
mod support;

use support::{all_allowed, all_denied, allow};

#[test]
fn what_a_rule_leaves_out_by_an_option_stays_out() {
    for (rule, commands) in [
        (
            "npm install --ignore-scripts",
            &["npm install --ignore-scripts false", "npm install --ignore-scripts left-pad"][..],
        ),
        ("pnpm add --ignore-scripts", &["pnpm add --ignore-scripts false left-pad"]),
        ("cargo test -p core", &["cargo test -p core --workspace", "cargo test --all -p core"]),
        (
            "cargo test --test smoke",
            &["cargo test --test smoke --tests", "cargo test --test smoke --all-targets"],
        ),
        (
            "go test -run TestA",
            &[
                "go test -run TestA -bench .",
                "go test -run TestA -bench=.",
                "go test -run TestA ./b",
            ],
        ),
        ("ctest -LE slow", &["ctest -LE slow --rerun-failed"]),
        ("rspec --tag ~slow", &["rspec --tag ~slow -e wipe"]),
        (
            "python3 -m unittest discover -s tests/unit",
            &["python3 -m unittest discover -s tests/unit tests/test_e2e"],
        ),
        ("mvn -pl core validate", &["mvn -pl core validate -amd"]),
        ("python3 -m pytest --cov", &["python3 -m pytest --cov scripts.deploy.test.py"]),
    ] {
        all_denied(&allow(rule), commands);
    }
    all_allowed(
        &allow("cargo test -p core,ctest -LE slow,mvn -pl core validate"),
        &[
            "cargo test -p core -q -j4",
            "ctest -LE slow -j4 --verbose",
            "mvn -pl core validate -q -B",
        ],
    );
}

#[test]
fn no_option_turns_off_a_check_or_reaches_another_project() {
    for (rule, commands) in [
        (
            "cargo run",
            &["cargo run --bin deploy", "cargo run --example=x", "cargo run -p other"][..],
        ),
        ("npm run deploy", &["npm run deploy --ignore-scripts"]),
        ("python3 scripts/*", &["python3 -O scripts/x.py"]),
        ("pnpm test", &["pnpm -w test", "pnpm -r test", "pnpm --filter b test"]),
        (
            "go test",
            &[
                "go test example.com/evil",
                "go test -mod=mod ./...",
                "GOFLAGS=-mod=mod go test ./...",
            ],
        ),
        ("npm audit", &["npm audit fix"]),
        ("cargo help", &["cargo help danger"]),
        ("python3 -m json.tool", &["python3 -m json.tool in.json out.json"]),
        ("python3 -m pytest tests", &["python3 -m pytest tests --cov=scripts.deploy.x"]),
        ("pytest tests", &["pytest tests --junitxml='$HOME/x.xml'"]),
        (
            "npm test,cd",
            &["npm test -w b -- test/x.test.js", "cd sub && npm test -- test/x.test.js"],
        ),
        ("pdm run test", &["pdm run test '`pwned`'"]),
        ("npm run lint", &["npm run lint -- test", "npm run lint -- --run test"]),
        ("vitest run tests", &["vitest run --bail tests/a.test.js"]),
        ("rake test", &["rake test -l -n"]),
        ("yarn lint", &["yarn --immutable lint test"]),
        ("ninja all", &["ninja all -k 0"]),
        ("tox run", &["TOX_ENV=release tox run"]),
        ("bundle exec rake", &["bundle exec -q rake"]),
        ("python3 scripts/*", &["PYTHONOPTIMIZE=1 python3 scripts/x.py"]),
    ] {
        all_denied(&allow(rule), commands);
    }
    all_allowed(
        &allow("cargo run,go test,python3 -m json.tool,pytest tests,pdm run test,npm test,go env"),
        &[
            "cargo run --release",
            "go test ./... .",
            "GOFLAGS=-mod=vendor go test ./...",
            "python3 -m json.tool in.json",
            "pytest tests --cov=src",
            "pdm run test -v",
            "npm test -- test/x.test.js",
            "go env GOPATH",
        ],
    );
}
