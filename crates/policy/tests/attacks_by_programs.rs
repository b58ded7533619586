//! Ways around a policy through what programs run and write. Each one was run once to confirm it.
#![allow(clippy::unwrap_used, clippy::panic, dead_code, reason = "a test may panic")]

mod support;

use mcpz_policy::{Policy, Scene, Verdict};
use support::developer::developer;
use support::{SCENE, all_allowed, all_denied, allow, deny};

#[test]
fn wrappers_take_their_options_as_they_do() {
    all_denied(
        &developer(),
        &[
            "find f -exec env -u + rm {} \\;",
            "echo a | xargs --eof rm echo",
            "echo a | xargs --max-lines rm echo",
            "env -S 'rm x' -S ls",
            "prlimit -c rm ls",
        ],
    );
    all_denied(
        &deny("rm"),
        &[
            "flock f --command 'rm x'",
            "setarch x86_64 -R rm x",
            "x86_64 rm x",
            "ssh h -oProxyCommand='rm x'",
            "ssh -oBatchMode=yes h -o ProxyCommand='rm x' true",
            "bash rm x",
        ],
    );
}

#[test]
fn programs_for_sed_and_awk_run_nothing() {
    all_denied(
        &developer(),
        &[
            "sed ':a e rm x' f",
            "sed -n ':a 1e rm x' f",
            "sed ':a ta e rm x' f",
            "sed 'a foo\\\\\n1e rm x' f",
            "sed -e p --ex '1e rm x' f",
            "sed -i -e '1e rm x' f",
            "x='-e1e rm x'; sed p \"$x\" f",
            "awk '/a/ / system(\"rm x\") / 1' f",
            "awk 'BEGIN { getline / system(\"rm x\") / 1 }' <f",
            "awk '/[]/]\"/ { } END { system(\"rm x\") } # \"' f",
            "awk '/[[:digit:]/]\"/ { } END { system(\"rm x\") } # \"' f",
            "awk 'a++ / system(\"rm x\") / 2' f",
            "awk -W exec=e.awk x",
            "awk -W e e.awk x",
        ],
    );
}

#[test]
fn options_of_git_are_found_however_they_are_written() {
    all_denied(
        &developer(),
        &[
            "git rebase -qx'rm x' HEAD~1",
            "git rebase -kx 'rm x' HEAD~1",
            "git grep -nOrm 2",
            "git clone -qu 'rm x;' . y",
            "git difftool -yx rm HEAD~1",
            "git clone -qc core.sshCommand='rm x;' ssh://h/x y",
            "git clone -ccore.sshCommand='rm x;' ssh://h/x y",
            "git rebase --ex 'rm x' HEAD~1",
            "git grep --op=rm 2",
            "git ls-remote --u='rm x;' .",
            "git clone --up='rm x;' . y",
            "git config alias.zz '!rm x' get; git zz",
            "git -c diff.context.command='rm x' diff HEAD~1",
            "git -c diff.renames.textconv='rm x' diff",
            "git -c gc.recentObjectsHook=rm gc",
        ],
    );
}

#[test]
fn other_programs_run_nothing_by_the_way() {
    all_denied(
        &developer(),
        &[
            "make 'X=$(shell rm x)'",
            "make 'Y?=$(shell rm x)'",
            "CFLAGS='$(shell rm x)' make",
            "make MAKEFILES=ev.mk",
            "make 'SHELL := evil'",
            "make 'SHELL =evil'",
            "make --makef=- <<< x",
            "make --fil=/dev/stdin <<< x",
            "make --mak=- <<< x",
            "make 'X!=rm x'",
            "sqlite3 x.db '.sys rm x'",
            "sqlite3 x.db '.imp \"|rm x\" t'",
            "sqlite3 x.db <<'E'\n.ou |rm x\nE",
            "script --echo=never out <<< 'rm x'",
            "echo 'rm x' | script -q --force out",
            "npm run p --script-she=evil",
            "npm run p --scri evil",
            "npm -s config set script-shell evil",
            "env npm_config_script-shell=evil npm run p",
            "npm pkg set scripts.p='rm x'",
            "gcc -wrapper rm,x -c f.c",
        ],
    );
}

#[test]
fn files_are_written_where_they_may_be() {
    let policy = Policy { write_dirs: vec!["/srv/proj".into()], ..developer() };
    all_denied(
        &policy,
        &[
            "command cd .. && echo x > pwn",
            "builtin cd .. && echo x > pwn",
            "f() { echo x > pwn; }; cd ..; f",
            "trap 'echo x > pwn' EXIT; cd ..",
            "for i in 1 2; do echo x > pwn; eval 'cd ..'; done",
            "find .. -name bin -execdir sh -c 'echo x > pwn' ';'",
            "cp -t .. f",
            "mv -t.. f",
            "cp --target-directory=.. f",
            "cp --targ .. f",
            "command time -o ../pwn ls",
            "curl --output-dir .. -o pwn http://x",
            "uniq f ../pwn",
            "split f ../pwn",
        ],
    );
}

#[test]
fn a_name_that_a_program_puts_together_stays_where_files_may_be_written() {
    let rules = "cp,mv,csplit,split,patch,mktemp,env,echo,cd,tee,export";
    let policy = Policy { write_dirs: vec!["/srv/proj".into()], ..allow(rules) };
    all_denied(
        &policy,
        &[
            "cp --parents ../../tmp/f sub",
            "cp --parents -t sub ../../tmp/f",
            "cp -r --parents ../../tmp/. sub",
            "cp --par ../f sub",
            "cp --parents \"$f\" sub",
            "csplit -b '/../../x%d' f 3",
            "csplit -qb'/../../x%d' f 3",
            "csplit -f xx --suffix-format='/../../x%d' f 3",
            "csplit -f /srv/proj f 3",
            "split f /srv/proj",
            "patch -b -Y ../../x f",
            "patch -b -Yx/../../../x f",
            "patch -b --basename-prefix=../../x f",
            "patch -b -z /../../x f",
            "patch -b -B ../ f",
            "patch -b --prefix=/srv/proj f",
            "patch -o ../f f",
            "patch -r ../f f",
            "TMPDIR=/mnt mktemp -t x.XXX",
            "env TMPDIR=/mnt mktemp -dt x.XXX",
            "export TMPDIR=..; mktemp -t x.XXX",
            "TMPDIR=\"$x\" mktemp",
            "mktemp -p ../x",
            "mv ../f .",
            "mv -t . ../f",
            "mv /mnt/f /mnt/g .",
            "mv ../*.txt .",
            "mv /mnt/$f .",
            "mv {a,../b} sub",
        ],
    );
    all_allowed(
        &policy,
        &[
            "cp --parents src/a.rs sub",
            "cp -r --parents src -t sub",
            "csplit -f part f 3",
            "csplit -f sub/part -b '%02d.txt' f 3",
            "split f part",
            "split f sub/part",
            "patch -b -z .orig f",
            "patch -b -Y old- f",
            "patch -b -B old/ f",
            "mktemp -t x.XXX",
            "TMPDIR=/tmp mktemp",
            "TMPDIR=/srv/proj/tmp mktemp -d",
            "mv a b",
            "mv a b sub",
            "mv *.txt sub",
            "for f in ./*.txt; do mv \"$f\" sub; done",
        ],
    );
    let variables = [("TMPDIR".to_owned(), "/mnt".to_owned())];
    let scene = Scene { variables: &variables, ..SCENE };
    let verdict = policy.judge("mktemp -dt x.XXX", "bash", &scene).verdict;
    assert!(matches!(verdict, Verdict::Deny(_)));
}

#[test]
fn nothing_is_written_through_a_link_that_was_copied_from_elsewhere() {
    let policy = Policy { write_dirs: vec!["/srv/proj".into()], ..allow("cp,echo,cd,tee,mkdir") };
    for copy in
        ["cp -a ../l l", "cp -d ../l l", "cp -P ../l l", "cp -R ../l l", "cp --archive ../l l"]
    {
        let write = |command: &str| format!("{copy}; {command}");
        for command in ["echo x > l/f", "echo x | tee l/f", "cp f l/g", "cd l; echo x > f"] {
            all_denied(&policy, &[&write(command)]);
        }
        all_allowed(&policy, &[&write("echo x > f")]);
    }
    all_denied(
        &policy,
        &[
            "cp --no-dereference ../l l; echo x > l/f",
            "cp --no-d ../l l; echo x > l/f",
            "cp -a /proc/1/root r; echo x > r/tmp/f",
            "cp -d /proc/self/cwd/../../proc/1/root r; echo x > r/tmp/f",
            "cp -r ../t q; echo x > q/l/f",
            "cp -r ../t .; echo x > t/l/f",
            "cp -rt sub ../t; echo x > sub/t/l/f",
            "cp -r ../t/. .; echo x > l/f",
            "cp -rT ../t .; echo x > l/f",
            "cp -r \"$x\" q; echo x > q/l/f",
        ],
    );
    all_allowed(
        &policy,
        &[
            "cp -r a b; echo x > b/f",
            "cp -a a/. b; echo x > b/f",
            "cp -rL ../t q; echo x > q/f",
            "cp ../f f; echo x > f",
            "cp -a ../t q; cp -r q w",
        ],
    );
}

#[test]
fn what_a_script_wrote_it_does_not_run() {
    all_denied(
        &developer(),
        &[
            "echo 'rm x' > a.sh; sh .//a.sh",
            "cd /mnt; echo 'rm x' > a.sh; sh /mnt/a.sh",
            "f() { sh a.sh; }; echo 'rm x' > a.sh; f",
            "trap 'sh a.sh' EXIT; echo 'rm x' > a.sh",
            "for i in 1 2; do sh a.sh; echo 'rm x' > a.sh; done",
            "echo 'rm x' | tee a.sh; sh a.sh",
            "echo x > a.sh; cp a.sh b.sh; sh b.sh",
            "sed -n 's/line1/rm x/w a.sh' f; sh a.sh",
            "awk '{print \"rm x\" > \"a.sh\"}' f; sh a.sh",
        ],
    );
}

#[test]
fn programs_behind_programs_are_found() {
    all_denied(
        &deny("rm,git push"),
        &[
            "npx rm x",
            "npm exec -- rm x",
            "perf stat rm x",
            "choom -n 1 -- rm x",
            "env - rm x",
            "systemd-run rm x --version",
            "python3 -c 'os.system(\"rm x\")' --version",
            "W=env; $W git push",
            "/usr/lib/git-core/git-push x",
            "python3 -Bc 'os.system(\"rm x\")'",
            "python3 -W ignore -c 'os.system(\"rm x\")'",
            "perl -nle 'system(\"rm x\")' f",
            "node --eval='x(\"rm x\")'",
            "python3 < <(echo 'rm')",
            "{ python3; } <<'E'\nos.system('rm x')\nE",
            "python3 /dev/stdin <<< 'os.system(\"rm x\")'",
            "echo '-e1e rm x' | xargs -I{} sed p {}",
        ],
    );
    all_denied(&deny("rm -rf"), &["rm {-r,-f} x"]);
    all_denied(
        &deny("git push --force"),
        &["git push -f", "git push -uf origin x", "git push --forc"],
    );
    all_denied(&deny("npm publish"), &["npm publi", "npm pub"]);
    all_denied(&deny("cargo publish"), &["cargo +nightly publish"]);
    all_denied(&deny("dd of=/dev/*"), &["dd if=x of=/dev/sda"]);
}
