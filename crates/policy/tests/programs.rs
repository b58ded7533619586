//! What single programs run, load or write by their options, variables and input; and that their everyday uses are let
//! through.
#![allow(clippy::unwrap_used, clippy::panic, dead_code, reason = "a test may panic")]

mod support;

use mcpz_policy::{Policy, Rule};
use support::{all_allowed, all_denied, allow, deny};

/// Every program that a case here names.
const PROGRAMS: &str = "apt,apt-get,awk,bat,cargo,cat,clang,cmake,curl,date,dc,diff,docker,dpkg,duckdb,echo,emacs,ex,\
    find,g++,gawk,gcc,gh,git,go,gpg,groff,ip,java,joe,jq,kubectl,less,make,man,mvn,mysql,nano,nproc,npm,openssl,\
    pandoc,patch,pip,printf,prove,psql,qemu-img,service,python3,rg,rsync,rustc,rustup,screen,sed,sort,ssh,sqlite3,strace,svn,systemctl,tar,\
    tmux,unzip,uptime,vim,wget,xxd,zip";

/// Both kinds of policies refuse it: one that denies `evil`, and one that allows everything else here.
fn runs_evil(commands: &[&str]) {
    all_denied(&deny("evil"), commands);
    all_denied(&allow(PROGRAMS), commands);
}

/// Both kinds of policies let it through.
fn is_honest(commands: &[&str]) {
    all_allowed(&deny("evil"), commands);
    all_allowed(&allow(PROGRAMS), commands);
}

fn writes_elsewhere(commands: &[&str]) {
    for command in commands {
        let name = command.split_whitespace().find(|word| !word.contains('=')).unwrap();
        let allow = Rule::list(name).unwrap();
        let write_dirs = vec!["/srv/proj".to_owned()];
        all_denied(&Policy { allow, write_dirs, ..Policy::default() }, &[command]);
    }
}

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
fn database_shells_have_commands_of_their_own() {
    runs_evil(&[
        "sqlite3 x.db '.shell evil'",
        "sqlite3 x.db -cmd '.sys evil' 'select 1'",
        "sqlite3 -init evil x.db 'select 1'",
        "sqlite3 :memory: \"select edit (1,'evil')\"",
        "sqlite3 :memory: \"select edit/**/(1,'evil')\"",
        "sqlite3 :memory: \"select edit -- x\n (1,'evil')\"",
        "sqlite3 :memory: \"select \\\"edit\\\"(1,'evil')\"",
        "sqlite3 :memory: \"select load_extension ('evil')\"",
        "sqlite3 :memory: \"select writefile ('/srv/evil','x')\"",
        "echo '.shell evil' | sqlite3",
        "sqlite3 x.db < evil",
        "psql -c '\\! evil'",
        "psql -c \"copy x to program 'evil'\"",
        "psql -o '|evil' -c 'select 1'",
        "psql < evil",
        "psql <<'E'\n\\o |evil\nE",
        "mysql -e 'system evil'",
        "mysql -e '\\! evil'",
        "mysql --pager=evil -e 'select 1'",
        "mysql --defaults-file=evil -e x",
        "mysql < evil",
        "duckdb x.db '.sh evil'",
    ]);
    is_honest(&[
        "sqlite3 x.db 'select edit, count(*) from t'",
        "sqlite3 x.db .tables",
        "sqlite3 -header -csv x.db 'select * from t;'",
        "sqlite3 x.db '.schema t'",
        "sqlite3 -safe x.db < dump.sql",
        "sqlite3 x.db <<'E'\nselect 1;\nE",
        "psql -h localhost -U me -c 'select 1; select 2'",
        "psql -c '\\dt'",
        "psql -d x -f schema.sql",
        "psql -c \"select E'a\\nb'\"",
        "mysql -h db -e 'show tables' x",
        "PGPASSWORD=x psql -l",
    ]);
}

#[test]
fn editors_and_pagers_run_commands() {
    runs_evil(&[
        "vim -c '!evil' x",
        "vim +'!evil' x",
        "echo ':!evil' | vim",
        "ex x <<< '!evil'",
        "nano -s evil x",
        "emacs --eval '(evil)'",
        "joe '!evil'",
        "less '+!evil' x",
        "less ++v x",
        "less -k evil x",
        "less --lesskey-s=evil x",
        "LESSOPEN='|evil %s' less x",
        "LESSKEYIN=evil less x",
        "man -P evil ls",
        "MANPAGER=evil man ls",
        "bat --pager=evil x",
        "dc -e '!evil'",
        "groff -U x",
    ]);
    is_honest(&[
        "less -R x",
        "less +G x",
        "less -N --quit-if-one-screen x",
        "vim --version",
        "vim x",
        "man ls",
        "man 5 crontab",
        "bat --style=plain x",
        "dc -e '2 3 + p'",
        "nano +12 x",
    ]);
}

#[test]
fn other_programs_run_what_their_options_name() {
    all_denied(
        &deny("evil"),
        &[
            "capsh -- -c evil",
            "debconf evil",
            "dpkg-architecture -c evil",
            "dpkg --pre-invoke=evil --configure -a",
            "dpkg --post-inv=evil --configure -a",
            "apt-get -o APT::Update::Pre-Invoke::=evil update",
            "apt-get --option=Dpkg::Pre-Invoke::=evil update",
            "apt -oDir::Bin::dpkg=evil install x",
            "busybox udhcpc -s evil -n -q",
            "busybox start-stop-daemon -S -x evil",
            "sdiff --diff-prog=evil f g",
            "diff3 --diff-program=evil a b c",
            "zip -rT x.zip f -mTT 'evil #'",
            "zip x.zip f -T --unzip-com='evil #'",
            "strace -o '|evil' ls",
            "strace -EGIT_EXTERNAL_DIFF=evil git diff",
            "strace --env=PAGER=evil git log",
            "tmux new -d 'sleep 1'; tmux display-message -p '#(evil)'",
            "tmux -f evil.conf new -d ls",
            "tmux -L x list-sessions -F '#(evil)'",
            "pip config edit --editor evil",
            "pip config --editor='evil;' edit",
            "pip --python evil list",
            "pip config set global.x y",
            "PIP_PYTHON=/srv/evil pip list",
            "npm_config_call=evil npx",
            "npm_config_script_shell=evil npm test",
            "echo --to-command=evil | tar xf x.tar -T -",
            "tar cf x --checkpoint-act=exec=evil f",
            "cpio -i --rsh-command=evil -F h:x",
            "ip netns exec x evil",
            "corepack evil",
            "sshpass -p x evil",
            "logsave f evil",
            "svn diff --diff-cmd evil",
            "hg --config alias.x='!evil' x",
            "jj --config ui.pager=evil log",
            "gpg --agent-program evil -d x",
            "pandoc --filter evil x.md",
            "pdflatex -shell-escape x.tex",
            "convert '|evil' x.png",
            "gs -o '%pipe%evil' x.ps",
            "openssl req -engine ./evil.so",
            "nmap --script evil h",
            "tcpdump -w x -z evil",
            "docker --config evil ps",
            "aria2c --on-download-complete=evil http://x",
            "nix-shell --run evil",
            "java -XX:OnError=evil X",
            "qemu-x86_64 /bin/evil",
            "TAR_OPTIONS='-I evil' tar xf x",
            "RIPGREP_CONFIG_PATH=evil rg x",
            "LD_PRELOAD=evil ls",
            "NODE_OPTIONS='-r evil' npm test",
            "PERL5OPT=-Mevil perl x",
            "RUBYOPT=-revil ruby x",
            "JAVA_TOOL_OPTIONS=-javaagent:evil java X",
            "DOTNET_STARTUP_HOOKS=evil dotnet run",
            "BASH_ENV=evil make",
            "gem open -e evil x",
            "mail -s x y <<< '~!evil'",
            "m4 <<< 'syscmd(evil)'",
            "fzf --preview evil",
            "not-14 evil",
            "sftp h <<< '!evil'",
            "less -p $'x\\n!evil' f",
            "pnpm --config.script-shell=evil test",
            "pnpm -c exec evil",
            "GCCGO=evil go build",
            "openssl engine -t ./evil.so",
            "msgexec evil",
            "fakeroot-sysv evil",
            "uclampset evil",
            "prove --exec evil t",
            "slogin -oProxyCommand=evil h",
            "xdg-user-dir '}; evil #'",
            "service ../../srv/bin/evil",
            "opt-14 -load evil.so x",
            "gpgtar --gpg evil -d x",
            "dh_auto_build -- evil",
        ],
    );
}

#[test]
fn files_are_written_by_options_and_operands() {
    writes_elsewhere(&[
        "curl --libcurl /srv/x http://h",
        "curl -s --etag-save /srv/x http://h",
        "curl --hsts /srv/x http://h",
        "wget --rejected-log=/srv/x http://h",
        "xxd f /srv/x",
        "patch -o /srv/x f p",
        "patch /srv/x p",
        "sed -i/srv/x/* s/a/b/ f",
        "gawk -d/srv/x 1 f",
        "sponge /srv/x",
        "strace -o /srv/x ls",
        "tar cf /srv/x f",
        "tar -czf /srv/x f",
        "tar --create --file=/srv/x f",
        "tar xf f -C /srv",
        "tar cvfC /srv/x d f",
        "shuf -o /srv/x f",
        "iconv -o /srv/x f",
        "zip /srv/x f",
        "unzip f -d /srv",
        "openssl rand -out /srv/x 9",
        "mktemp /srv/x.XXX",
        "sqlite3 x.db \"attach '/srv/x' as y\"",
        "sqlite3 x.db \"vacuum into '/srv/x'\"",
    ]);
    let rules = Rule::list("tar,zip,unzip,openssl").unwrap();
    all_allowed(
        &Policy { allow: rules, write_dirs: vec!["/srv/proj".to_owned()], ..Policy::default() },
        &[
            "tar cf x.tar f",
            "tar -xzf /srv/x.tgz -C out",
            "tar tf /srv/x.tar",
            "tar cf - . ",
            "tar xf /srv/x.tar",
            "zip -r x.zip d",
            "unzip /srv/x.zip -d out",
            "openssl dgst -sha256 /srv/x",
        ],
    );
    all_denied(&allow("curl"), &["curl --libcurl /srv/x http://h"]);
}

#[test]
fn everyday_uses_of_other_programs_are_let_through() {
    is_honest(&[
        "apt-get -y -o Dpkg::Options::=--force-confold -o Acquire::Retries=3 install x",
        "apt list --installed",
        "curl -fsSL -o x.tar.gz https://example.org/x.tar.gz",
        "curl -X POST -H 'Content-Type: application/json' -d '{\"a\":1}' http://localhost:8080",
        "curl -s -w '%{http_code}' http://localhost",
        "diff -u a b",
        "docker compose ps --format json",
        "docker run --rm -v \"$PWD:/w\" alpine ls",
        "dpkg -l",
        "find . -name '*.rs'",
        "gh pr list --json number",
        "jq -r '.a[] | .b' x.json",
        "kubectl get pods -o wide",
        "npm ci",
        "npm run build -- --watch",
        "npm_config_loglevel=warn npm ci",
        "patch -p1 -i x.patch",
        "pip install -r requirements.txt --quiet",
        "pip list --format json",
        "pip config list",
        "PIP_NO_CACHE_DIR=1 pip install x",
        "python3 -m pytest -k 'a or b'",
        "PYTHONUNBUFFERED=1 python3 x.py",
        "rg -n 'evil idea' src",
        "rsync -av a/ b/",
        "sort -t, -k2 x.csv",
        "ssh host uptime",
        "strace -f -e trace=open,read -o out.txt cat x",
        "systemctl status nginx",
        "tar czf x.tgz --exclude=target .",
        "tar -xf x.tar -C out",
        "tar --null -T - -cf x.tar",
        "tmux ls",
        "tmux -L work list-windows",
        "unzip -q x.zip -d out",
        "zip -qr x.zip dir",
        "wget -q -O x https://example.org",
        "xxd -l 64 x",
        "awk -F, '{print $2}' x.csv",
        "sed -n '1,5p' x",
        "sed -i.bak 's/a/b/g' x",
        "TZ=UTC date",
        "LC_ALL=C sort x",
        "screen -ls",
        "pandoc -o x.html x.md",
        "java -jar x.jar",
        "mvn -q test",
        "openssl x509 -in c.pem -noout -text",
        "gpg --verify x.sig x",
        "svn diff -r 1:2",
        "ip addr show",
        "GIT_ROOT=$(git rev-parse --show-toplevel); cat \"$GIT_ROOT/x\"",
        "APP_LAUNCHER=x; R_MIN=3; PIP_ARGS=-q; cat x",
        "qemu-img info x.qcow2",
        "service nginx status",
        "prove -v t",
    ]);
}

#[test]
fn a_file_that_a_program_obeys_is_not_its_input_by_another_name() {
    let policy = allow("make,tar,psql,cd,git");
    all_denied(
        &policy,
        &[
            "make -f //dev/stdin",
            "cd /dev; make -f fd/0",
            "make -f /proc/self/fd/3",
            "tar cf x.tar -T //dev/stdin",
            "tar cf x.tar --files-f=/dev/fd/3",
            "tar cf x.tar -T \"$list\"",
            "tar cf x.tar \"-T$list\"",
            "psql -f /proc/self/fd/0",
            "cd /dev; psql -f stdin",
        ],
    );
    all_allowed(
        &policy,
        &[
            "make -f build.mk",
            "tar cf x.tar -T files",
            "psql -f schema.sql",
            "cd /srv; make -f x.mk",
        ],
    );
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
