//! Ordinary work that no policy has a reason to refuse.
#![allow(clippy::unwrap_used, clippy::panic, dead_code, reason = "a test may panic")]

mod support;

use mcpz_policy::{Policy, Threats};
use support::{all_allowed, all_denied, allow, deny, refusal};

/// What developers type all day.
const DAILY: &[&str] = &[
    "# just a comment",
    "# one\n\n  # two",
    "cargo test \"$@\"",
    "cargo run --example x -- $@",
    "while true; do date; break; done",
    "if [ -f x ]; then echo y; fi 2>/dev/null",
    "{ls,-la}",
    "touch {a,b,c}.txt; mkdir -p src/{bin,lib}; cp file{,.bak}; echo {1..5}",
    "node -e 'console.log(1 + 1)'",
    "node -e \"console.log(require('./package.json').version)\"",
    "python3 -c 'print(\"hello\")'",
    "cd x && ls | wc -l || true",
    "ls *.rs; cat $f; grep -r x *; rm -f build/*.o; git add *.rs",
    "for f in *.rs; do echo \"$f\"; wc -l \"$f\"; done",
    "for f in *.txt; do sed -n 1p \"$f\"; done",
    "for f in *.o; do rm -f \"$f\"; done",
    "sort *.txt | uniq -c; sed -i 's/a/b/' *.md; tar czf docs.tgz *.md",
    "grep -rl foo src | xargs sed -i 's/foo/bar/g'",
    "git diff --name-only | xargs ls -l; git ls-files '*.py' | xargs wc -l",
    "git branch --merged | grep -v main | xargs git branch -d",
    "git log \"$(git describe --tags --abbrev=0)\"..HEAD --oneline",
    "git commit -m \"fix: $(date +%F)\"; git checkout \"$BRANCH\"; git show $(git rev-parse HEAD)",
    "find \"$(pwd)\" -maxdepth 1; find $HOME/projects -name Cargo.toml; find . -name *.rs",
    "find . -name node_modules -prune -o -name '*.js' -print",
    "until curl -sf localhost:8080; do sleep 1; done",
    "for i in $(seq 1 10); do curl -s localhost/health && break; sleep $((i * 2)); done",
    "i=0; while [ $i -lt 5 ]; do echo $i; i=$((i+1)); done",
    "start=$(date +%s); sleep 1; end=$(date +%s); echo $((end - start))",
    "n=0; for f in *; do n=$((n+1)); done; echo $n",
    "[ $(ls | wc -l) -gt 0 ] && echo some; [ \"$(id -u)\" -eq 0 ] || echo not root",
    "[ $(uname) = Linux ] && [ $(whoami) = root ]",
    "[[ $x =~ ^[0-9]+$ ]] && echo number; [[ -n \"$(git status --porcelain)\" ]] && echo dirty",
    "while IFS=, read -r a b; do echo \"$a $b\"; done < data.csv",
    "python3 -m venv .venv && . .venv/bin/activate && pip install -e .",
    "greet() { local name=$1; echo \"hi $name\"; }; greet bob",
    "build() { cargo build \"$@\"; }; build --release",
    "run() { echo \"+ $*\"; \"$@\"; }; run ls -l",
    "retry() { for i in 1 2 3; do \"$@\" && return; sleep $i; done; return 1; }; retry curl -f localhost",
    "a=(1 2 3); echo \"${a[@]}\" \"${#a[@]}\"; for i in \"${!a[@]}\"; do echo \"${a[$i]}\"; done",
    "declare -A m; m[a]=1; echo \"${m[a]}\"",
    "echo \"${x:-default}\" \"${x%.*}\" \"${PWD##*/}\" ${x:0:8}",
    "set -euo pipefail; for d in a b; do (cd $d && make -j$(nproc)); done",
    "trap 'rm -f /tmp/x' EXIT; touch /tmp/x",
    "opts='--release --locked'; cargo build $opts",
    "sub=status; git $sub; cmd=ls; $cmd -l",
    "lsof -ti:3000 | xargs kill -9; kill $(pgrep -f server); wait $!",
    "docker ps -q | xargs docker inspect; kubectl get pods | grep x | xargs -I{} kubectl logs {}",
    "cat > conf <<EOF\npath=$HOME/x\nEOF",
    "diff <(sort a) <(sort b)",
    "bash -c 'for f in \"$@\"; do wc -l \"$f\"; done' _ a b",
];

#[test]
fn daily_work_passes_a_list_of_denied_commands() {
    all_allowed(&deny("rm -rf,sudo,dd,mkfs*,shutdown,git push"), DAILY);
}

#[test]
fn daily_work_does_not_look_like_an_attack() {
    all_allowed(&Policy { threats: Threats::Deny, ..Policy::default() }, DAILY);
}

#[test]
fn builtins_that_change_nothing_need_no_rule() {
    let policy = Policy { deny: deny("rm*,sudo*").deny, ..allow("ls*,cat*,grep*,find*,echo*") };
    all_allowed(
        &policy,
        &[
            "# just a comment",
            "cd x && ls || true",
            "while true; do ls; break; done",
            "for f in *.rs; do [ -f \"$f\" ] || continue; grep -c main \"$f\"; done",
            "if test -d src; then cd src; find . -name '*.rs'; else exit 1; fi 2>/dev/null",
            "f() { ls \"$1\" || return 1; }; f src; f tests",
            "ls & wait",
            "{ls,-la}",
            "cd src 2>/dev/null && pwd",
            ": ${x:-y}; [[ -n $x ]] && echo $x",
            "grep -r TODO * | cat; ls *.rs; cat \"$f\"",
            "bash_version=5; echo \"$bash_version\"",
        ],
    );
    all_denied(
        &policy,
        &[
            "true > file",
            ": >> file",
            "env true",
            "/bin/true",
            "exec true",
            "set -a",
            "test -v 'a[$(pwned)]'",
        ],
    );
    let why = refusal(&policy, "cd x && ls | wc -l || true");
    assert!(why.contains("runs `wc`"), "{why}");
    // A rule still decides about them.
    all_denied(&deny("cd"), &["cd x"]);
}

#[test]
fn a_program_with_a_star_takes_what_is_known_only_at_run_time() {
    let policy = allow("echo *,cat *,git log *");
    all_allowed(
        &policy,
        &["echo $((1+2)) \"$HOME\"", "x=$(git log -1 --format=%H); echo $x", "cat \"$f\" | cat"],
    );
    all_denied(&policy, &["ls \"$x\"", "git log $x", "cat x; $y"]);
}

#[test]
fn a_script_may_stop_at_its_first_error() {
    all_allowed(
        &allow("ls,make test"),
        &[
            "set -euo pipefail; ls",
            "set -e; ls",
            "set -eux -o pipefail; ls; set +x",
            "set -o errexit; ls",
            "time make test",
        ],
    );
    all_denied(
        &allow("ls,make test"),
        &[
            "set -a; ls",
            "set -k; ls",
            "set -eo allexport; ls",
            "set -o; ls",
            "set; ls",
            "set -- x; ls",
            "set -e x; ls",
            "set -e > f",
            "set \"$x\"; ls",
            "set -o $x; ls",
            "PS4='$(pwned)'; set -x; ls",
            "time make all",
        ],
    );
    all_denied(&deny("set"), &["set -e"]);
}

#[test]
fn the_beginning_of_a_path_is_not_an_option_either() {
    let policy = allow("mv,sort");
    all_allowed(
        &policy,
        &[
            "for f in ./*.txt; do mv \"$f\" \"${f%.txt}.md\"; done",
            "for f in *.txt; do mv -- \"$f\" \"${f%.txt}.md\"; done",
            "for f in ./*; do sort \"${f%txt}md\"; done",
        ],
    );
    all_denied(
        &policy,
        &[
            "for f in *.txt; do mv \"$f\" \"${f%.txt}.md\"; done",
            "for f in ./*; do sort \"${f%%*}-x\"; done",
            "for f in ./*; do sort \"${f#./}.x\"; done",
            "f=-x; sort \"${f%y}.x\"",
            "n=$((0-5)); sort \"${n%?}x\"",
        ],
    );
    let message = refusal(&policy, "for f in *.txt; do mv \"$f\" \"${f%.txt}.md\"; done");
    assert!(message.contains("put -- before it"), "{message}");
}

#[test]
fn a_path_is_not_an_option() {
    let policy = deny("rm -rf,sudo,git push");
    all_allowed(
        &policy,
        &[
            "find . -name '*.o' -exec rm {} +",
            "find . -name '*.o' -exec rm -f {} \\;",
            "find /tmp/x -type f -execdir rm {} +",
            "find \"$dir\" -name '*.o' -exec rm {} +",
            "find . -name '*.o' -print0 | xargs -0 rm",
            "find . -name '*.o' -print0 | xargs -0 -n1 rm -f --",
            "for f in ./*.tmp; do rm \"$f\"; done",
            "for f in *.tmp; do rm -f \"$f\"; done",
            "tmp=$(mktemp -d); trap 'rm -r \"$tmp\"' EXIT; echo x > \"$tmp/y\"",
            "tmp=$(mktemp); rm -f \"$tmp\"",
            "tmp=`mktemp -t build.XXXX`; rm $tmp",
            "tmp=\"$(mktemp -d)\" && cd \"$tmp\" && rm -f \"$tmp\"/x ~/y",
            "dir=build; rm -r \"$dir\"; rm \"$dir/x\"",
            "root=$(git rev-parse --show-toplevel); rm -r \"$root/build\"",
            "find . -name '*.o' -exec sh -c 'rm \"$1\"' _ {} \\;",
            "clean() { rm -r \"$1\"; }; tmp=$(mktemp -d); clean \"$tmp\"",
            "rm -r \"$(pwd)/build\"; rm -f -- \"$x\"; rm -f ./$x",
        ],
    );
    all_denied(
        &policy,
        &[
            "find . -name '*.o' -exec rm -rf {} +",
            "find . -exec rm -{} +",
            "find . -files0-from list -exec rm {} +",
            "find -files0-from list -print0 | xargs -0 rm",
            "find . -name '*.o' | xargs rm",
            "ls | xargs rm",
            "cat list | xargs -0 rm",
            "for f in $(ls); do rm $f; done",
            "for f in $(cat list); do rm $f; done",
            "tmp=$(mktemp -d); rm -r \"$tmp\" -f",
            "tmp=$(mktemp -d); rm \"$tmp\"-rf x; tmp=; rm \"$x$tmp\"",
            "export TMPDIR=-rf; tmp=$(mktemp -d); rm \"$tmp\"",
            "TMPDIR=-rf; tmp=$(mktemp -d); rm \"$tmp\"",
            "tmp=$(mktemp -u -- -rfXXX); rm \"$tmp\"",
            "mktemp() { echo -rf; }; tmp=$(mktemp); rm $tmp x",
            "rm $x y",
            "f() { rm \"$1\" x; f \"$1\"; }; f \"$y\"",
            "f() { x=$1; rm \"$x\" y; f \"$x\"; }; f -rf",
            "find . -exec sh -c 'rm \"$1\" \"$2\"' _ -rf {} \\;",
            "read f; rm \"$f\"",
            "f=$1; : -rf; rm $_ x",
        ],
    );
    assert_eq!(
        refusal(&policy, "rm \"$f\""),
        "`rm \"$f\"` (at 0) is only known at run time (a word may be an option that the rule `rm -rf` denies); put \
         -- or ./ before the word"
    );
}

#[test]
fn a_script_that_the_command_writes_is_judged_by_its_text() {
    let policy = deny("rm -rf,sudo,git push");
    all_allowed(
        &policy,
        &[
            "cat > t.sh <<'E'\necho hi\nrm -f x\nE\nsh t.sh",
            "cat <<'E' > /tmp/t.sh && bash /tmp/t.sh a b\nset -e\necho \"$1\"\nE",
            "cat > t.sh <<'E'\n#!/bin/bash\nls\nE\nchmod +x t.sh; ./t.sh",
            "cat > t.sh <<'E'\n#!/usr/bin/env bash\nls\nE\nchmod +x t.sh && ./t.sh | head",
            "echo 'ls -l' > t.sh; . ./t.sh; bash < t.sh",
            "cat > t.sh <<'E'\nfor f in *; do echo \"$f\"; done\nE\nchmod +x t.sh && sh t.sh; rm t.sh",
            "cat > t.py <<'E'\nprint('hi')\nE\npython3 t.py",
            "cat > t.sh <<'E'\nls\nE\ncat > t.sh <<'E'\npwd\nE\nsh t.sh",
            "cat > q.sql <<'E'\nselect 1;\nE\npsql < q.sql",
            "psql -f dump.sql; bash build.sh; python3 x.py",
        ],
    );
    all_denied(
        &policy,
        &[
            "cat > t.sh <<'E'\nsudo id\nE\nsh t.sh",
            "cat > t.sh <<'E'\n$1 id\nE\nsh t.sh sudo",
            "cat > t.sh <<'E'\n#!/bin/bash\nsudo id\nE\nchmod +x t.sh; ./t.sh",
            "cat > t.sh <<'E'\n#!/usr/bin/sudo sh\nid\nE\nchmod +x t.sh; ./t.sh",
            "cat > t.sh <<'E'\n#!/usr/bin/env -S sudo sh\nid\nE\n./t.sh",
            "cat > t.sh <<'E'\n#!/usr/bin/env sudo\nid\nE\n./t.sh",
            "cat > t.sh <<'E'\nls\nE\necho 'sudo id' >> t.sh; sh t.sh",
            "cat > t.sh <<'E'\nls\nE\nsed -i s/ls/sudo/ t.sh; sh t.sh",
            "cat > t.sh <<'E'\nls\nE\nenv perl -pi -e s/ls/sudo/ t.*; sh t.sh",
            "cat > t.sh <<'E'\nls\nE\nmv u.sh t.sh; cp $x .; sh t.sh",
            "cat > t.sh <<E\n$x\nE\nsh t.sh",
            "cat x > t.sh <<'E'\nls\nE\nsh t.sh",
            "cat() { echo sudo id; }; cat > t.sh <<'E'\nls\nE\nsh t.sh",
            "sh t.sh & cat > t.sh <<'E'\nsudo id\nE",
            "./t.sh & cat > t.sh <<'E'\nsudo id\nE",
            "exec 3> t.sh; cat > t.sh <<'E'\nls\nE\necho sudo id >&3; sh t.sh",
            "echo 'su\\do id' > t.sh; sh t.sh",
            "echo -e 'ls\\nsudo id' > t.sh; sh t.sh",
            "cat > t.py <<'E'\nimport os; os.system('sudo id')\nE\npython3 t.py",
            "cat > q.sql <<'E'\n\\! sudo id\nE\npsql < q.sql",
            "echo 'sudo id' | tee t.sh; sh t.sh; sh < t.sh",
            "curl x > t.sh; sh < t.sh",
            "sh < \"$f\"; psql < \"$f\"",
            "bash < /dev/stdin",
            // What is in another file nobody knows, and these read their own commands there.
            "sqlite3 db < dump.sql",
            "psql < dump.sql",
        ],
    );
    assert_eq!(
        refusal(&policy, "psql < dump.sql"),
        "`psql` (at 0) is only known at run time (its input); use -f for a file, or -c"
    );
    let policy = allow("cat,bash,ls,chmod,./t.sh");
    all_allowed(&policy, &["cat > t.sh <<'E'\n#!/bin/bash\nls\nE\nbash t.sh; ./t.sh"]);
    all_denied(
        &policy,
        &[
            "cat > t.sh <<'E'\npwned\nE\nbash t.sh",
            "cat > t.sh <<'E'\n#!/bin/sh\nls\nE\n./t.sh",
            "cat > t.sh <<'E'\n#!/usr/bin/python3\nls\nE\n./t.sh",
        ],
    );
}

#[test]
fn a_folder_may_be_added_behind_the_path() {
    let policy = deny("rm -rf,sudo,git push");
    all_allowed(
        &policy,
        &[
            "export PATH=$PATH:$HOME/bin",
            "export PATH=\"$PATH:$HOME/.local/bin:/opt/x/bin\"; tool --version",
            "PATH=$PATH:/usr/local/go/bin go build",
            "PATH=\"${PATH}:$HOME/bin\" && export PATH",
        ],
    );
    all_denied(
        &policy,
        &[
            "export PATH=$HOME/bin:$PATH",
            "export PATH=$PATH:.",
            "export PATH=$PATH:bin",
            "export PATH=$PATH:",
            "export PATH=$PATH::/x",
            "export PATH=$PATH",
            "x=.:/y; export PATH=$PATH:$x/bin",
            "export PATH=$PATH:$(pwd)",
            "echo 'sudo id' > /tmp/b/tool; export PATH=$PATH:/tmp/b; tool",
            "cp /usr/bin/sudo /tmp/b/tool; PATH=$PATH:/tmp/b; tool id",
            "export PATH=$PATH:/tmp/b; cp x /tmp/b/tool; tool id",
        ],
    );
    all_denied(&allow("ls,export"), &["export PATH=$PATH:/opt/bin"]);
    assert_eq!(
        refusal(&policy, "export PATH=$HOME/bin:$PATH"),
        "`PATH=$HOME/bin:$PATH` (at 7) sets the variable `PATH`, which could change what runs; add folders behind it \
         (`PATH=$PATH:/folder`), or run the program by its path"
    );
}

#[test]
fn an_alias_is_the_command_it_stands_for() {
    let policy = deny("rm -rf,sudo,git push");
    all_allowed(
        &policy,
        &["alias ll='ls -la'", "alias ll='ls -la' g=git; ll x; g status", "alias ls='ls -F'; ls"],
    );
    all_denied(
        &policy,
        &[
            "alias g=git; g push",
            "alias a=b b=git; a push",
            "alias s=sudo; s id",
            "alias s=sudo",
            "alias x='rm -r'; x -f y",
            "alias x='ls;sudo id'",
            "alias x='git '; x push",
            "alias x='$y'",
            "alias x=\"$y\"",
            "alias if=ls",
            "alias x='if'",
            "alias x='A=1 ls'",
            "alias cat='echo sudo'; cat > t.sh <<'E'\nls\nE\nsh t.sh",
            "alias \"x=$(cat y)\"",
        ],
    );
    all_denied(&allow("ls,alias"), &["alias x=pwned; x", "alias x=pwned"]);
    all_allowed(&allow("ls,alias"), &["alias ll='ls -l'; ls"]);
}

#[test]
fn a_name_that_is_only_printed_is_harmless() {
    let policy = deny("rm -rf,sudo,git push");
    all_allowed(
        &policy,
        &[
            "python3 -c \"print('sudo')\"",
            "python3 -c 'print(\"use sudo\", \"or not\", 1)'",
            "node -e \"console.log('sudo'); console.log(1 + 2)\"",
            "ruby -e \"puts 'sudo'\"",
        ],
    );
    all_denied(
        &policy,
        &[
            "python3 -c \"import os; os.system('sudo x')\"",
            "python3 -c \"print(open('sudo'))\"",
            "ruby -e 'puts `sudo id`'",
            "ruby -e 'puts \"#{`sudo id`}\"'",
            "perl -e 'print \"@{[system q(sudo)]}\"'",
            "python3 -c \"print(f'{__import__(1)} sudo')\"",
            "php -r 'echo \"{$x} sudo\";'",
            "node -e 'console.log(`${x} sudo`)'",
            "tclsh <<< 'puts \"[exec sudo id]\"'",
        ],
    );
    assert_eq!(
        refusal(&policy, "python3 -c \"import os; os.system('sudo x')\""),
        "`python3 -c \"import os; os.system('sudo x')\"` (at 0) could run any command (its program mentions \
         what the rule `sudo` denies), so it cannot be judged; leave the name out"
    );
}

#[test]
fn options_for_a_compiler_come_from_installed_packages() {
    let policy = deny("rm -rf,sudo,git push");
    all_allowed(
        &policy,
        &[
            "gcc $(pkg-config --cflags --libs gtk+-3.0) a.c -o a",
            "cc a.c `pkg-config --libs x y` -o a",
            "g++ a.cc $(llvm-config --cxxflags --libs core) $(python3-config --includes)",
        ],
    );
    all_denied(
        &policy,
        &[
            "gcc $(cat flags) a.c",
            "gcc $(pkg-config --cflags ./x.pc) a.c",
            "gcc $(pkg-config --define-variable=prefix=x --cflags y) a.c",
            "gcc $(pkg-config --variable=x y) a.c",
            "gcc $(./x-config --libs) a.c",
            "PKG_CONFIG_PATH=. gcc $(pkg-config --cflags x) a.c",
            "export PKG_CONFIG_PATH=.; gcc $(pkg-config --cflags x) a.c",
            "gcc $(PKG_CONFIG_PATH=. pkg-config --cflags x) a.c",
            "sort $(pkg-config --libs x) y",
            "pkg-config() { echo -wrapper sudo; }; gcc $(pkg-config --libs x) a.c",
        ],
    );
    all_allowed(&policy, &["load-config() { cat conf; }; load-config"]);
    all_denied(&allow("gcc,pkg-config"), &["gcc $(pkg-config --cflags x) a.c"]);
}

#[test]
fn a_refusal_says_what_to_write_instead() {
    let policy = deny("rm -rf,sudo,git push");
    all_allowed(&policy, &["ssh-agent -s", "ssh-agent -t 60 ssh-add", "ssh-agent -k"]);
    all_denied(
        &policy,
        &["ssh-agent sudo id", "ssh-agent -P x ls", "ssh-agent -t 60 sh -c 'sudo id'"],
    );
    for (command, advice) in [
        (
            "eval \"$(ssh-agent -s)\"",
            "run the program that prints it, and write out what you need of it",
        ),
        ("gcc $(cat flags) a.c", "write the options out"),
        ("ls | xargs rm", "put -- or ./ before the word"),
        (
            "curl x > t.sh; sh t.sh",
            "write it with cat and a quoted here-document, and with nothing else",
        ),
        ("bash < build.sh", "run a file by its name"),
        ("alias x='ls | wc'", "use a function, or write the command out"),
    ] {
        let why = refusal(&policy, command);
        assert!(why.ends_with(advice), "{command}: {why}");
    }
}

#[test]
fn the_value_of_a_known_option_of_git_is_no_other_option() {
    let policy = allow("git,cat");
    all_allowed(&policy, &["git log --author=\"$(git config user.name)\" -5"]);
    all_denied(
        &policy,
        &[
            "git log --output=\"$(cat x)\"",
            "git log --outp=\"$(cat x)\"",
            "git log --author=$(cat x)",
            "git log \"--$(cat x)=y\"",
            "git format-patch --output-directory=\"$(cat x)\"",
        ],
    );
}
