//! Harmless arguments of programs that run whatever they are told.

use crate::names::Names;
use crate::programs;

/// What an option is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Harmless, with whatever value it has.
    Flag,
    /// Harmless, and the next word is its value.
    Valued,
    Unknown,
}

/// What may be added to a call of these programs.
pub struct Row {
    pub programs: Names,
    pub flags: Names,
    /// Options with a value, in the same word after `=`, or in the next. One that needs none is a flag as well.
    pub valued: Names,
    /// Whether several flags may be one word: `-qy`.
    pub letters: bool,
    /// Whether operands may set variables, `NAME=value`, and become part of commands.
    pub takes_values: bool,
    /// The variables that may be switched on and off.
    pub values: Names,
    /// Sub-commands, and after how many operands the rest is for another program. All if there is none.
    pub hands_over: &'static [(Names, usize)],
    /// Whether all after `--` is for another program.
    pub hands_over_after_dashes: bool,
}

const NOTHING: Row = Row {
    programs: Names(""),
    flags: Names(""),
    valued: Names(""),
    letters: false,
    takes_values: false,
    values: Names(""),
    hands_over: &[],
    hands_over_after_dashes: false,
};

/// The first operand is the program, and the rest its arguments.
const INTERPRETER: Row = Row { hands_over: &[(Names(""), 1)], ..NOTHING };

/// Interpreters that look for options everywhere, or whose first operand is a sub-command.
const OTHER_INTERPRETERS: Names = Names("deno bun mongo mongosh rails gnuplot sbcl ecl erl maxima");

const ROWS: &[Row] = &[
    Row {
        programs: Names("make gmake bmake"),
        flags: Names(
            "-s -k -n -B -i -w -r -R -j -l -O --silent --quiet --keep-going --dry-run --just-print --always-make \
             --ignore-errors --print-directory --no-print-directory --jobs --load-average --output-sync --trace \
             --version --help",
        ),
        valued: Names("-C --directory -j --jobs -l --load-average -O --output-sync"),
        letters: true,
        takes_values: true,
        values: Names("V VERBOSE QUIET DEBUG CI COLOR NO_COLOR"),
        ..NOTHING
    },
    Row {
        programs: Names("npm"),
        flags: Names(
            "-s -q -d -g -D -ws --silent --quiet --verbose --if-present --workspaces --ignore-scripts --offline \
             --prefer-offline --no-audit --no-fund --no-progress --no-save --save-dev --save-exact --production \
             --json --long --parseable --all --dry-run --force --legacy-peer-deps --no-color --color --version --help",
        ),
        valued: Names("-w -C --workspace --prefix --loglevel --omit --include --depth --tag"),
        hands_over_after_dashes: true,
        ..NOTHING
    },
    Row {
        programs: Names("pnpm yarn"),
        flags: Names(
            "-s -r -D -w --silent --recursive --offline --prefer-offline --frozen-lockfile --ignore-scripts \
             --if-present --production --prod --json --no-color --color --version --help",
        ),
        valued: Names("-F --filter --reporter --loglevel --prefix"),
        hands_over: &[(Names("run exec dlx"), 2), (Names("test start build lint"), 1)],
        hands_over_after_dashes: true,
        ..NOTHING
    },
    Row {
        programs: Names("npx pnpx bunx uvx pipx"),
        flags: Names("-y -q --yes --no --quiet --no-install"),
        valued: Names("-p --package"),
        hands_over: &[(Names(""), 1)],
        ..NOTHING
    },
    Row {
        programs: Names("uv poetry pdm hatch rye conda mamba micromamba bundle bundler"),
        flags: Names(
            "-q -v --quiet --verbose --offline --frozen --locked --no-sync --no-color --version --help",
        ),
        hands_over: &[(Names("run exec"), 2)],
        ..NOTHING
    },
    Row {
        programs: Names("cargo"),
        flags: Names(
            "-r -q -v -vv --release --quiet --verbose --workspace --all --all-targets --all-features \
             --no-default-features --lib --bins --tests --examples --benches --doc --locked --offline --frozen \
             --no-run --no-fail-fast --no-deps --open --keep-going --allow-dirty --allow-staged --dry-run \
             --check --list --version --help --document-private-items",
        ),
        valued: Names(
            "-p -j -F --package --exclude --bin --test --example --bench --features --jobs --profile --color \
             --message-format --manifest-path --target-dir --depth --edges --invert --format",
        ),
        hands_over_after_dashes: true,
        ..NOTHING
    },
    Row {
        programs: Names("go"),
        flags: Names(
            "-v -race -short -cover -benchmem -failfast -json -x -n -a -trimpath -m -u -t -d -l",
        ),
        valued: Names(
            "-run -count -coverprofile -covermode -coverpkg -timeout -bench -benchtime -tags -p -parallel -o -cpu \
             -skip -shuffle -f -C",
        ),
        hands_over: &[(Names("run"), 2)],
        ..NOTHING
    },
    Row {
        programs: Names("pytest py.test"),
        flags: Names(
            "-v -vv -vvv -q -x -s -l -ra -rA -rs -rf --verbose --quiet --exitfirst --lf --last-failed --ff \
             --failed-first --nf --sw --stepwise --co --collect-only --no-header --no-summary --no-cov --showlocals \
             --cov --markers --fixtures --version --help",
        ),
        valued: Names(
            "-k -m -n --maxfail --tb --cov --cov-report --durations --color --deselect --ignore --junitxml --junit-xml \
             --timeout",
        ),
        letters: true,
        ..NOTHING
    },
    Row {
        programs: Names("jest vitest mocha ava"),
        flags: Names(
            "-i -u -b -w --runInBand --coverage --verbose --silent --bail --ci --watch --watchAll --no-coverage --run \
             --passWithNoTests --updateSnapshot --listTests --no-color --color --version --help",
        ),
        valued: Names("-t -g --testNamePattern --maxWorkers --grep --timeout --shard"),
        ..NOTHING
    },
    Row {
        programs: Names("pip pip3"),
        flags: Names(
            "-q -v -U -e -o --quiet --verbose --upgrade --user --no-deps --outdated --uptodate --editable --local \
             --no-cache-dir --disable-pip-version-check --dry-run --all --version --help",
        ),
        valued: Names("-r -c --requirement --constraint --format"),
        letters: true,
        ..NOTHING
    },
    Row {
        programs: Names("mvn mvnw"),
        flags: Names(
            "-q -B -o -e -U -am -amd -ntp -fae -ff -fn -N -V -v --quiet --batch-mode --offline --errors \
             --update-snapshots --also-make --no-transfer-progress --fail-at-end --fail-fast -DskipTests \
             -Dmaven.test.skip=true --version --help",
        ),
        valued: Names("-T -pl --threads --projects -Dtest"),
        ..NOTHING
    },
    Row {
        programs: Names("gradle gradlew"),
        flags: Names(
            "-q -i -d -s -S --quiet --info --debug --stacktrace --full-stacktrace --no-daemon --daemon --offline \
             --parallel --continue --rerun-tasks --dry-run --console=plain --build-cache --no-build-cache --version \
             --help --scan --refresh-dependencies",
        ),
        valued: Names("-x --exclude-task --tests --console --max-workers --warning-mode"),
        ..NOTHING
    },
    Row {
        programs: Names("cmake ctest"),
        flags: Names(
            "-V -VV -N -v -j --build --output-on-failure --verbose --extra-verbose --show-only --rerun-failed \
             --clean-first --version --help --progress --parallel",
        ),
        valued: Names(
            "-j -R -E -L -LE --parallel --target --config --test-dir --timeout --repeat -t -B",
        ),
        ..NOTHING
    },
    Row {
        programs: Names("ninja meson"),
        flags: Names("-v -n --verbose --quiet --version --help --list --no-rebuild"),
        valued: Names("-j -k -C -l --suite --repeat --num-processes"),
        ..NOTHING
    },
    Row {
        programs: Names("dotnet"),
        flags: Names("--no-restore --no-build --nologo --version --help --list-tests"),
        valued: Names(
            "-c -v -f -r --configuration --verbosity --framework --runtime --filter --logger",
        ),
        hands_over_after_dashes: true,
        ..NOTHING
    },
    Row {
        programs: Names("apt apt-get apt-cache aptitude"),
        flags: Names(
            "-q -qq -y -s -d -a -n -f -u -V --quiet --yes --assume-yes --assume-no --simulate --dry-run \
             --download-only --installed --upgradable --upgradeable --all-versions --names-only --full \
             --no-install-recommends --show-upgraded --version --help",
        ),
        letters: true,
        ..NOTHING
    },
    Row {
        programs: Names("dpkg rpm apk pacman brew snap flatpak dnf yum zypper"),
        flags: Names(
            "-l -L -s -S -q -qa -qi -ql -Q -Qi -Ql -y --list --status --installed --version --help",
        ),
        ..NOTHING
    },
    Row {
        programs: Names("python pypy"),
        flags: Names("-u -B -I -s -E -q -O -OO -b -V --version"),
        hands_over: &[(Names(""), 1)],
        ..NOTHING
    },
    Row {
        programs: Names("node"),
        flags: Names(
            "-v --version --no-warnings --trace-warnings --enable-source-maps --no-deprecation --watch",
        ),
        hands_over: &[(Names(""), 1)],
        ..NOTHING
    },
    Row { programs: Names("java kotlin"), hands_over: &[(Names(""), 1)], ..NOTHING },
    Row {
        programs: Names("tox nox pre-commit"),
        flags: Names("-a -v -q -l --all-files --verbose --quiet --list --version --help"),
        valued: Names("-e -s --files --hook-stage"),
        hands_over_after_dashes: true,
        ..NOTHING
    },
    Row {
        programs: Names("turbo nx lerna"),
        flags: Names("--parallel --all --dry-run --version --help"),
        valued: Names("--filter --scope --projects --concurrency"),
        ..NOTHING
    },
    Row {
        programs: Names("playwright cypress rspec"),
        flags: Names("--headed --headless --fail-fast --color --dry-run --list --version --help"),
        valued: Names(
            "-g -e -t --grep --project --workers --shard --browser --spec --example --seed --tag",
        ),
        ..NOTHING
    },
    Row {
        programs: Names("bazel bazelisk"),
        flags: Names("-k --keep_going --version"),
        valued: Names("-c --test_output --test_filter --jobs --compilation_mode"),
        ..NOTHING
    },
    Row {
        programs: Names("just task mage rake"),
        takes_values: true,
        flags: Names(
            "-l -n -q -v -s --list --dry-run --quiet --verbose --silent --summary --version --help",
        ),
        ..NOTHING
    },
];

/// What may be added to a call of a program. Nothing but operands if no row says so.
pub fn row(program: &str) -> &'static Row {
    let own = ROWS.iter().find(|row| row.programs.has(program));
    own.unwrap_or(match programs::is_interpreter(program) && !OTHER_INTERPRETERS.has(program) {
        true => &INTERPRETER,
        false => &NOTHING,
    })
}
