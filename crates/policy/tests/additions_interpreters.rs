//! What may be added to a call of an interpreter that a rule allows.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

#[allow(dead_code, reason = "each test file uses some of it")]
mod support;

use support::{all_allowed, all_denied, allow};

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
fn an_operand_behind_the_text_of_a_program_is_its_argument_or_needs_a_rule() {
    let policy = allow(
        "lua -e print(1),luajit -e print(1),elixir -e 1,gosh -e 1,python3 -c print(1),node -p 1,perl -e 1,bash -c ls,ls",
    );
    all_allowed(
        &policy,
        &[
            "lua -e 'print(1)'",
            "python3 -c 'print(1)' x",
            "node -p 1 x.js",
            "perl -e 1 /tmp/x",
            "bash -c ls x",
        ],
    );
    all_denied(
        &policy,
        &[
            "lua -e 'print(1)' /tmp/e.lua",
            "lua -e 'print(1)' e.lua",
            "lua5.4 -e 'print(1)' -- e.lua",
            "lua -e 'print(1)' -",
            "lua -e 'print(1)' \"$x\"",
            "luajit -e 'print(1)' e.lua",
            "elixir -e 1 e.exs",
            "gosh -e 1 e.scm",
        ],
    );
}

#[test]
fn an_interpreter_does_not_run_what_it_reads() {
    let policy = allow(
        "python3 -m unittest,python3 -m doctest README.md,python3 -m http.server,python3 -m mytool,python3 -m other *,\
         python3 -v,python3 -W ignore -m pdb scripts/*,perl -wd scripts/*,perl -ne print,perl -c,perl scripts/*,jshell scripts/*,node --test",
    );
    all_allowed(
        &policy,
        &[
            "python3 -m unittest -v tests.test_a",
            "python3 -m unittest discover -s tests",
            "python3 -m http.server 8000",
            "python3 -m mytool",
            "python3 -m other --any thing",
            "perl -ne print /etc/hosts *.txt",
            "perl -c x.pl",
            "perl scripts/x.pl a b",
            "node --test",
            "node --test test/a.js",
        ],
    );
    all_denied(
        &policy,
        &[
            "python3 -m unittest code.interact <<< x",
            "python3 -m unittest tests.test_a.unittest.case.sys.breakpointhook <<< x",
            "python3 -m unittest discover -s tests/../../tmp",
            "node --test test/a.test.js /tmp/e.test.js",
            "node --test scripts/deploy.js",
            "python3 -m doctest README.md /dev/stdin <<< x",
            "python3 -m http.server --cgi 8000",
            "python3 -m http.server ./8000",
            "python3 -m mytool x",
            "python3 -W ignore -m pdb scripts/x.py <<< x",
            "perl -wd scripts/x.pl <<< x",
            "python3 -v <<< x",
            "perl -ne print 'pwned|'",
            "perl -ne print p*",
            "perl scripts/f.pl 'pwned |'",
            "perl -c <<< 'BEGIN { }'",
            "perl -c /dev/stdin <<< 'BEGIN { }'",
            "perl -wc - <<< 'BEGIN { }'",
            "jshell scripts/x.jsh <<< x",
            "node --test /tmp/x.js",
        ],
    );
}

#[test]
fn what_an_option_of_the_rule_takes_is_not_the_program() {
    let policy = allow(
        "python3 -W error -m unittest,python3 -Bm unittest,python3 -Wonce -m unittest,perl -I lib -ne print,\
         uv run --extra dev pytest tests,uv run -m unittest tests.test_a,uv run pylint src,npm exec mocha test,\
         yarn verify,node index.js,node node_modules/mocha/bin/mocha.js test,python3 setup.py build_ext,\
         mocha test,pytest tests,cd,cat",
    );
    all_allowed(
        &policy,
        &[
            "python3 -W error -m unittest tests.test_a",
            "python3 -Bm unittest -v",
            "uv run --extra dev pytest tests -q",
            "uv run pylint src",
            "yarn verify --watch",
            "node index.js anything",
            "mocha test test/a.test.js",
            "pytest tests 'tests/test_a.py::TestA::test_one'",
        ],
    );
    all_denied(
        &policy,
        &[
            "python3 -W error -m unittest code.interact",
            "python3 -Bm unittest code.interact",
            "python3 -Wonce -m unittest code.interact",
            "perl -I lib -ne print -e ';system q(pwned)'",
            "uv run --extra dev pytest tests --trace",
            "uv run -m unittest tests.test_a code.interact",
            "uv run pylint src --init-hook x",
            "npm exec mocha test ./deploy.js",
            "yarn verify pwned",
            "cd other; node index.js",
            "node node_modules/mocha/bin/mocha.js test ./deploy.js",
            "python3 setup.py build_ext --swig=/usr/local/bin/pwned",
            "mocha test \"test/${PWD:+../deploy.js}\"",
            "pytest tests \"tests/$(cat x)\"",
            "mocha test publish-latest.js",
            "mocha test ..",
            "mocha test --shard ./deploy.js",
            "pytest tests --timeout integration",
            "pytest tests docs/testing.rst",
        ],
    );
    all_denied(
        &allow("make test"),
        &[
            "make test -R",
            "NODE_OPTIONS='--disable-warning=;pwned;' make test",
            "GIT_AUTHOR_NAME='x pwned' make test",
            "RUSTFLAGS='-Copt-level=3 pwned' make test",
            "DATABASE_URL=\"postgres://h/x'\" make test",
            "CFLAGS=-Dputs=system make test",
        ],
    );
}
