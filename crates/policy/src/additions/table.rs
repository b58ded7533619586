//! Harmless arguments of programs that run whatever they are told.

use super::environments::{BUNDLE, OTHERS, PIPX, UV};
use super::row::{Dashes, NOTHING, Operands, Row};
use crate::names::Names;
use crate::programs;

/// The first operand is the program, and the rest its arguments.
const INTERPRETER: Row =
    Row { operands: Operands::Program, hands_over: &[(Names(""), 1)], ..NOTHING };

/// Interpreters that look for options everywhere, that run every file they are given, or whose first operand is a
/// sub-command.
const OTHER_INTERPRETERS: Names = Names(
    "deno bun crystal mongo mongosh rails gnuplot sbcl ecl erl maxima ipython ptpython bpython j2 scala R ghci swipl \
     yap csi psysh phpdbg pry iex evcxr jshell scilab octave gp",
);

/// The programs that scripts of a project run: test runners, linters, bundlers. An option must be harmless to all of
/// them, and to node.
pub const SCRIPT: Row = Row {
    flags: Names(
        "-v -vv -q --ci --fix --watch --watchAll --watchAll=false --watch=false --coverage \
         --no-coverage --coverage=false --verbose --silent --quiet --bail --runInBand --updateSnapshot --update \
         --passWithNoTests --findRelatedTests --listTests --lf --no-cov --headed --host --noEmit --force \
         --debug --color --no-color --all --production --prod --strict --nocapture --ignored --exact --check \
         --write --port --mode=production \
         --mode=development --mode=test",
    ),
    // In the next word, another program may take the value for something to run.
    glued: Names(
        "--testNamePattern --testPathPattern --testPathPatterns --grep --maxWorkers --shard --timeout \
         --port --host --project --workers --max-warnings --bail --retries --test-threads --skip --maxfail \
         --durations --log-level --logLevel",
    ),
    operands: Operands::TestFiles,
    after_dashes: Dashes::Script,
    ..NOTHING
};

/// The same where nobody knows in which folder it looks for files.
pub const SCRIPT_ELSEWHERE: Row = Row { operands: Operands::Known, ..SCRIPT };

/// Package managers that hand all after the name of a script to it.
const SCRIPT_MANAGER: Row = Row {
    operands: Operands::OfSubcommand,
    queries: Names("view info list ls outdated why"),
    known: Names("install add remove update upgrade deploy"),
    hands_over: &[(Names("exec dlx"), 2)],
    scripts: &[(Names("run run-script"), 2)],
    after_dashes: Dashes::Script,
    ..NOTHING
};

const ROWS: &[Row] = &[
    Row {
        programs: Names("make gmake"),
        flags: Names(
            "-s -n -B -w -r -O --silent --quiet --dry-run --just-print --always-make --print-directory \
             --no-print-directory --output-sync --trace --version --help",
        ),
        // The next word is the value of `-l` if it begins with a digit or a point.
        counted: Names("-j --jobs"),
        glued: Names("--output-sync -Onone -Oline -Otarget -Orecurse"),
        places: Names("-C --directory"),
        risky: Names("-f --file --makefile"),
        letters: true,
        takes_values: true,
        values: Names("V VERBOSE QUIET DEBUG CI COLOR NO_COLOR"),
        ..NOTHING
    },
    Row {
        programs: Names("npm"),
        flags: Names(
            "-s -q -d -g -D -ws --silent --quiet --verbose --if-present --workspaces --offline --prefer-offline \
             --no-audit --no-fund --no-progress --no-save --save-dev --save-exact --production \
             --json --long --parseable --all --dry-run --force --legacy-peer-deps --no-color --color --no-optional \
             --no-git-tag-version --version --help",
        ),
        valued: Names("--loglevel --omit --include --depth --tag --audit-level"),
        places: Names("-w -C --workspace --prefix"),
        operands: Operands::OfSubcommand,
        queries: Names("view info show search ls list outdated explain why"),
        known: Names("install uninstall update"),
        after_dashes: Dashes::Script,
        ..NOTHING
    },
    Row {
        programs: Names("pnpm"),
        flags: Names(
            "-s -D --silent --offline --prefer-offline --frozen-lockfile --if-present --prod --json \
             --no-color --color --version --help",
        ),
        valued: Names("--loglevel"),
        places: Names("-C --dir"),
        own: Names(
            "add audit bin cache config create dedupe deploy dlx exec fetch help i import info init install \
             install-test it licenses link list ll ln login logout ls outdated owner pack patch prune publish rb \
             rebuild remove rm root run run-script set store team un uninstall unlink up update upgrade \
             version view whoami why",
        ),
        ..SCRIPT_MANAGER
    },
    Row {
        programs: Names("yarn"),
        flags: Names("-s --silent --offline --frozen-lockfile --json --version --help"),
        places: Names("--cwd"),
        own: Names(
            "add audit bin cache config create dedupe dlx exec global help import info init install licenses link list \
             login logout node outdated owner pack patch publish remove run set team unlink up upgrade version why \
             workspace workspaces",
        ),
        ..SCRIPT_MANAGER
    },
    Row {
        programs: Names("npx pnpx bunx uvx"),
        // With `--no`, npx takes options behind the program for its own.
        flags: Names("-y -q --yes --quiet --no-install"),
        risky: Names("-p --package"),
        hands_over: &[(Names(""), 1)],
        ..NOTHING
    },
    PIPX,
    UV,
    OTHERS,
    BUNDLE,
    Row {
        programs: Names("cargo"),
        flags: Names(
            "-r -q -v -vv --release --quiet --verbose --workspace --all --all-targets --all-features \
             --no-default-features --lib --bins --tests --examples --benches --doc --locked --offline --frozen \
             --no-run --no-fail-fast --no-deps --keep-going --allow-dirty --allow-staged --dry-run \
             --check --list --timings --fix --version --help --document-private-items",
        ),
        valued: Names(
            "-p -j -F -E --format-version --precise --package --exclude --bin --test --example --bench \
             --features --jobs --profile --color --message-format --depth --format",
        ),
        places: Names("--manifest-path"),
        choosing: Some((Names("run"), Names("-p --package --bin --example --manifest-path"))),
        operands: Operands::OfSubcommand,
        groups: Names("nextest"),
        known: Names("add remove install uninstall update clippy"),
        queries: Names("test bench run search info tree nextest-run nextest-list"),
        after_dashes: Dashes::OfCompiler(Names("test bench run nextest-run")),
        ..NOTHING
    },
    Row {
        programs: Names(FORMATTER),
        flags: Names("--check -l --files-with-diff -q --quiet -v --verbose --backup"),
        valued: Names("--edition --style-edition --color --emit"),
        operands: Operands::Program,
        ..NOTHING
    },
    Row {
        programs: Names("go"),
        flags: Names(
            "-v -race -short -cover -benchmem -failfast -json -x -n -a -trimpath -m -u -t -d -l -deps --race \
             -mod=vendor -mod=readonly",
        ),
        valued: Names(
            "-run -count -coverprofile -covermode -coverpkg -timeout -bench -benchtime -p -parallel -o -cpu -skip \
             -shuffle -f -compat",
        ),
        places: Names("-C"),
        operands: Operands::OfSubcommand,
        groups: Names("mod work"),
        queries: Names("test build vet fmt list doc env"),
        local: Names("test build vet"),
        known: Names("get install mod-download mod-why work-use"),
        hands_over: &[(Names("run"), 2)],
        ..NOTHING
    },
    Row {
        programs: Names("pytest py.test"),
        flags: Names(
            "-v -vv -vvv -q -x -s -l -ra -rA -rs -rf --verbose --quiet --exitfirst --lf --last-failed --ff \
             --failed-first --nf --sw --stepwise --co --collect-only --no-header --no-summary --no-cov --showlocals \
             --markers --fixtures --strict-markers --cov=. --cov=src --version --help",
        ),
        valued: Names(
            "-k -m --maxfail --tb --durations --color --deselect --ignore --junitxml --junit-xml",
        ),
        unclear: Names("--cov"),
        // Without the plugin that knows them, the next word would be a test.
        glued: Names(
            "--cov-report --cov-fail-under --timeout --dist --numprocesses --log-cli-level --randomly-seed",
        ),
        letters: true,
        operands: Operands::Tests,
        ..NOTHING
    },
    Row {
        programs: Names("mocha"),
        flags: Names("-b -w --bail --watch --no-color --color --version --help"),
        valued: Names("-g --grep --timeout"),
        operands: Operands::Tests,
        ..NOTHING
    },
    Row {
        programs: Names("ava"),
        flags: Names("-w -v --watch --verbose --no-color --color --version --help"),
        operands: Operands::Tests,
        ..NOTHING
    },
    Row {
        programs: Names("jest"),
        flags: Names(
            "--runInBand --coverage --verbose --silent --ci --watch --watchAll --no-coverage --passWithNoTests \
             --updateSnapshot --listTests --no-color --color --version --help",
        ),
        valued: Names("-w -t --testNamePattern --maxWorkers --shard"),
        operands: Operands::Tests,
        ..NOTHING
    },
    Row {
        programs: Names("vitest"),
        flags: Names("-w --watch --run --passWithNoTests --no-color --version --help"),
        unclear: Names("--coverage --silent --color"),
        valued: Names("-t --testNamePattern --maxWorkers --shard"),
        operands: Operands::Tests,
        ..NOTHING
    },
    Row {
        programs: Names("pip pip3"),
        flags: Names(
            "-q -v -U -o --quiet --verbose --upgrade --user --no-deps --outdated --uptodate --local --no-cache-dir \
             --disable-pip-version-check --dry-run --all --pre --break-system-packages --no-build-isolation \
             --exclude-editable --files --version --help",
        ),
        valued: Names("--format"),
        with_operand: Names("-e -r -c --editable --requirement --constraint"),
        letters: true,
        operands: Operands::OfSubcommand,
        known: Names("install uninstall"),
        queries: Names("list show freeze check"),
        ..NOTHING
    },
    Row {
        programs: Names("mvn mvnw"),
        flags: Names(
            "-q -B -o -e -U -am -amd -ntp -ff -N -V -v --quiet --batch-mode --offline --errors \
             --update-snapshots --also-make --no-transfer-progress --fail-fast -DskipTests \
             -DskipTests=true -Dmaven.test.skip=true -Dverbose --version --help",
        ),
        valued: Names("-T -pl --threads --projects"),
        glued: Names("-Dtest"),
        known: Names("clean"),
        ..NOTHING
    },
    Row {
        programs: Names("gradle gradlew"),
        flags: Names(
            "-q -i -d -s -S --quiet --info --debug --stacktrace --full-stacktrace --no-daemon --daemon --offline \
             --parallel --continue --rerun-tasks --dry-run --console=plain --build-cache --no-build-cache --version \
             --help --scan --refresh-dependencies --configuration-cache",
        ),
        valued: Names(
            "-x --exclude-task --tests --console --max-workers --warning-mode --configuration",
        ),
        known: Names("clean"),
        ..NOTHING
    },
    Row {
        programs: Names("cmake"),
        flags: Names(
            "-N -L -LA -LH -LAH --version --help \
             -DCMAKE_BUILD_TYPE=Debug -DCMAKE_BUILD_TYPE=Release -DCMAKE_BUILD_TYPE=RelWithDebInfo \
             -DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
        ),
        valued: Names("-G"),
        places: Names("-B"),
        // An operand is a folder with other rules.
        risky: Names("-S --build --install"),
        ..NOTHING
    },
    // A target may be an option or a setting of make.
    Row {
        programs: Names(CMAKE_BUILD),
        flags: Names("-v --verbose --clean-first --progress"),
        valued: Names("--config"),
        counted: Names("-j --parallel"),
        risky: Names("--build -t --target"),
        ..NOTHING
    },
    Row {
        programs: Names("ctest"),
        flags: Names(
            "-V -VV -N --output-on-failure --verbose --extra-verbose --show-only --rerun-failed --version --help \
             --progress",
        ),
        valued: Names("-R -E -L -LE --timeout --repeat"),
        counted: Names("-j --parallel"),
        places: Names("--test-dir"),
        ..NOTHING
    },
    Row {
        programs: Names("ninja"),
        flags: Names("-v -n --verbose --quiet --version --help"),
        valued: Names("-j -l"),
        places: Names("-C"),
        ..NOTHING
    },
    // An operand may be a folder to build in, and the next one that with the sources.
    Row {
        programs: Names("meson"),
        flags: Names("-v --verbose --quiet --print-errorlogs --version --help --list --no-rebuild"),
        valued: Names("--suite"),
        counted: Names("-j --repeat --num-processes"),
        places: Names("-C"),
        ..NOTHING
    },
    // An operand may be a project, or an assembly with tests to load.
    Row {
        programs: Names("dotnet"),
        flags: Names("--no-restore --no-build --nologo --version --help --list-tests"),
        valued: Names("-c --configuration"),
        // For tests, it names assemblies to load.
        after_dashes: Dashes::OfProgram(Names("run")),
        ..NOTHING
    },
    Row {
        programs: Names("apt apt-get apt-cache aptitude"),
        flags: Names(
            "-q -qq -y -s -d -f -u -V --quiet --yes --assume-yes --assume-no --simulate --dry-run \
             --download-only --installed --upgradable --upgradeable --all-versions --names-only --full \
             --no-install-recommends --show-upgraded --version --help",
        ),
        letters: true,
        operands: Operands::OfSubcommand,
        known: Names("install remove purge reinstall"),
        queries: Names("list show search policy depends rdepends showpkg madison"),
        ..NOTHING
    },
    Row {
        programs: Names("dpkg"),
        flags: Names("-l -L -s -S --list --listfiles --status --search --version --help"),
        operands: Operands::OfOptions,
        ..NOTHING
    },
    Row {
        programs: Names("rpm"),
        flags: Names("-l -q -qa -qi -ql --query --list --version --help"),
        operands: Operands::OfOptions,
        ..NOTHING
    },
    // Its `-S` installs what the others look for.
    Row {
        programs: Names("pacman"),
        flags: Names("-l -q -Q -Qi -Ql -Qq --query --list --version --help"),
        operands: Operands::OfOptions,
        ..NOTHING
    },
    Row {
        programs: Names("apk brew snap flatpak dnf yum zypper"),
        flags: Names("-q -y --list --installed --version --help"),
        operands: Operands::OfSubcommand,
        known: Names("install remove uninstall add del reinstall upgrade update"),
        queries: Names("list info show search"),
        ..NOTHING
    },
    Row {
        programs: Names("python pypy"),
        flags: Names("-u -B -q -b -V --version"),
        risky: Names("-W -X"),
        ..INTERPRETER
    },
    Row {
        programs: Names("node"),
        flags: Names(
            "-v --version --no-warnings --trace-warnings --enable-source-maps --no-deprecation --watch \
             --test-only --experimental-test-coverage --test-reporter=spec --test-reporter=tap --test-reporter=dot \
             --test-reporter=junit",
        ),
        valued: Names("--test-name-pattern --test-concurrency --test-timeout"),
        glued: Names("--max-old-space-size"),
        risky: Names("-r --require --import"),
        ..INTERPRETER
    },
    Row { programs: Names("perl"), flags: Names("-w -W -T"), risky: Names("-I"), ..INTERPRETER },
    Row { programs: Names("java kotlin"), hands_over: &[(Names(""), 1)], ..NOTHING },
    Row {
        programs: Names("tox nox"),
        flags: Names("-a -v -q -l --verbose --quiet --list --version --help"),
        ..NOTHING
    },
    Row {
        programs: Names("pre-commit"),
        flags: Names(
            "-a -v -q --all-files --show-diff-on-failure --verbose --quiet --version --help",
        ),
        ..NOTHING
    },
    // Every operand is a task or a project.
    Row { programs: Names("turbo nx lerna"), flags: Names("--all --version --help"), ..NOTHING },
    Row {
        programs: Names("playwright cypress rspec"),
        flags: Names("--headed --headless --fail-fast --color --dry-run --list --version --help"),
        valued: Names("-g -e -t --grep --workers --shard --example --seed --tag"),
        operands: Operands::Tests,
        ..NOTHING
    },
    // An operand may be a target to build, with whatever that runs.
    Row {
        programs: Names("bazel bazelisk"),
        flags: Names("-k --keep_going --version --test_output=errors --test_output=all"),
        ..NOTHING
    },
    Row {
        programs: Names("just task mage rake"),
        takes_values: true,
        flags: Names("-n -q -v --dry-run --quiet --verbose --version --help"),
        ..NOTHING
    },
];

/// What `cargo fmt` gives the arguments behind `--` to.
pub const FORMATTER: &str = "rustfmt";

/// How cmake is called to build, which has other options.
pub const CMAKE_BUILD: &str = "cmake--build";

/// What may be added to a call of a program. Nothing if no row says so, unless it is an interpreter.
pub fn row(program: &str) -> &'static Row {
    let own = ROWS.iter().find(|row| row.programs.has(program));
    own.unwrap_or(match programs::is_interpreter(program) && !OTHER_INTERPRETERS.has(program) {
        true => &INTERPRETER,
        false => &NOTHING,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_takes_the_next_word_or_it_does_not() {
        for row in ROWS.iter().chain([&SCRIPT]) {
            let kinds =
                [row.flags, row.valued, row.counted, row.unclear, row.places, row.with_operand];
            let mut seen: Vec<&str> = Vec::new();
            for option in kinds.iter().flat_map(|kind| kind.iter()) {
                assert!(!seen.contains(&option), "{option}");
                seen.push(option);
            }
            for option in row.glued.iter() {
                let takes = [row.valued, row.counted, row.places, row.with_operand];
                assert!(!takes.iter().any(|kind| kind.has(option)), "{option}");
            }
        }
    }
}
