//! Values that become numbers, names, options or several words, and files with more than one name.
#![allow(clippy::unwrap_used, clippy::panic, dead_code, reason = "a test may panic")]

mod support;

use mcpz_policy::{Policy, Scene, Verdict};
use support::{SCENE, all_allowed, all_denied, allow, deny, refusal};

#[test]
fn arithmetic_takes_only_what_is_known_to_be_a_number() {
    let policy =
        allow("echo,read,tr,printf,let,declare,local,mapfile,getopts,cat,wc,grep,date,seq");
    all_denied(
        &policy,
        &[
            "y='a[$x(pwned)]'; z=${y/x/}; ((z))",
            "x=$(echo 'a[B(pwned)]' | tr A-C '#-%'); echo $((x + 1))",
            "x=$(cat n); echo $((x + 1))",
            "echo $(( $(cat n) + 1 ))",
            "read -r x < h; ((x))",
            "read -r x < h; y=$x; ((y))",
            "read -r x < h; [[ $x -eq 0 ]]",
            "read -r x < h; echo ${PATH:x}",
            "read -r x < h; echo ${a[x]}",
            "read -r x < h; a[$x]=1",
            "read -r x < h; a=([$x]=1)",
            "read -r x < h; a=([x]=1)",
            "read -r x < h; declare -a a=([x]=1)",
            "read -r x < h; declare -a 'a=([x]=1)'",
            "read -r x < h; declare -A \"a=$x\"",
            "read -r x < h; a=(); declare a=$x",
            "read -r x < h; a[1]=y; declare a=$x",
            "read -r x < h; read -ra a < f; declare \"a=$x\"",
            "read -r x < h; let y=x+1",
            "read -r x < h; let \"y=$x\"",
            "read -r x < h; declare -i y=$x",
            "declare -i y; read -r y < h",
            "read -r x < h; SECONDS=$x",
            "read -r SECONDS < h",
            "read -r < h; ((REPLY))",
            "mapfile -t x < h; ((x))",
            "printf -v z 'a[%.1s(pwned)]' '$x'; ((z))",
            "for f in *; do ((f)); done",
            "for f in *; do echo ${a[$f]}; done",
            "f() { ((x = $1)); }; read -r y < h; f \"$y\"",
            "f() { local n=$1; echo $((n)); }; f 'a[$(pwned)]'",
            "set -- 'a[$(pwned)]'; echo $(($1))",
            "n=1; read -r x1 < h; ((x$n))",
            "x=RE; y=PLY; read -r < h; ((${x}${y}))",
            "while read -r n; do ((s += n)); done < h",
        ],
    );
    all_allowed(
        &policy,
        &[
            "x=5; echo $((x + 1)) $((x * x)) $((16#ff)) $((0x1f))",
            "i=0; while [[ $i -lt 3 ]]; do ((i++)); done",
            "for i in 1 2 3; do echo $((i * 2)); done",
            "for i in {1..5}; do echo $((i * 2)); done",
            "for i in $(seq 1 5); do echo $((i * 2)); done",
            "n=$(wc -l < a.txt); echo $((n + 1))",
            "n=$(grep -c x a.txt); echo $((n + 1))",
            "n=$(cat a.txt | wc -l); echo $((n + 1))",
            "s=$(date +%s); echo $(( $(date +%s) - s ))",
            "f() { local n=$1; echo $((n + 1)); }; f 5; f $((2 + 3))",
            "a=(1 2 3); for i in \"${!a[@]}\"; do echo \"${a[$i]}\"; ((s += a[i])); done",
            "read -r x < h; n=${x//[^0-9]/}; echo $((n + 1))",
            "echo $((COLUMNS - 10)) $(($# + 1)) $((RANDOM % 6))",
            "x=7; y=$x; [[ $y -gt 5 ]] && echo big",
            "s=text; echo ${s:1:2} ${s: -1}",
            "declare -A a=([x]=1 [y]=text); a[z]=2; declare -a b=(1 2)",
            "a=(1); f() { local n=$1; echo \"$n\"; }; f text",
        ],
    );
    let why = refusal(&policy, "read -r x; echo $((x))");
    assert!(why.contains("may not be a number"), "{why}");
}

#[test]
fn a_name_that_only_the_run_knows_is_refused() {
    let policy = allow("echo,read,test,unset,printf,[");
    all_denied(
        &policy,
        &[
            "read -r x < h; echo ${!x}",
            "y='a[$x(pwned)]'; z=${y/x/}; echo ${!z}",
            "read -r x < h; echo ${!x@A}",
            "read -r x < h; [[ -v $x ]]",
            "read -r x < h; test -v \"$x\"",
            "test -v 'a[HOME=5]'; echo",
            "test -v 'a[b[HOME++]]'; echo",
            "read -r o x < h; [ \"$o\" \"$x\" ]",
            "read -r x < h; [ $x ]",
            "[ $(echo x) ]",
            "read -r x < h; printf -v \"$x\" y",
            "read -r x < h; unset \"$x\"",
            "y='$x(pwned)'; echo a >& ${y/x/}",
            "read -r x < h; echo a >& $x",
        ],
    );
    all_allowed(
        &policy,
        &[
            "for v in HOME LANG; do echo ${!v}; done",
            "x=HOME; echo ${!x}; [[ -v HOME ]] && test -v LANG",
            "test -v 'a[5]' && test -v 'a[n-1]'",
            "read -r a b < h; [ \"$a\" = \"$b\" ] && [ -n \"$a\" ]",
            "x=a; [ $x = a ]; [ $? -eq 0 ]; [ -n \"$(echo y)\" ]",
            "echo x >&2; n=2; echo x >&$n",
        ],
    );
}

#[test]
fn variables_of_the_request_are_values_like_any_other() {
    let policy = allow("echo");
    let variables =
        [("LANG".to_owned(), "a[$(pwned)]".to_owned()), ("n".to_owned(), "3".to_owned())];
    let scene = Scene { variables: &variables, ..SCENE };
    let verdict = |text: &str| policy.judge(text, "bash", &scene).verdict;
    assert_ne!(verdict("echo $((LANG))"), Verdict::Allow);
    assert_eq!(verdict("echo $((n))"), Verdict::Allow);
    assert_eq!(verdict("echo $((n += 1))"), Verdict::Allow);
}

#[test]
fn a_program_and_its_arguments_are_judged_like_a_script() {
    let judge = |policy: &Policy, words: &[&str]| {
        let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
        policy.judge_words(&words, &SCENE).verdict
    };
    let policy = allow("bash,echo,git log");
    for words in [
        &["bash", "-c", "read x; ((x))"][..],
        &["bash", "-c", "echo $(($1))", "_", "a[$(pwned)]"],
        &["bash", "-c", "git log \"$1\"", "_", "--output=/etc/motd"],
        &["bash", "-c", "pwned"],
        &["true"],
        &["cd", "x"],
    ] {
        assert_ne!(judge(&policy, words), Verdict::Allow, "{words:?}");
    }
    for words in [&["bash", "-c", "echo $(($1))", "_", "5"][..], &["bash", "-c", "cd x && true"]] {
        assert_eq!(judge(&policy, words), Verdict::Allow, "{words:?}");
    }
}

#[test]
fn words_that_may_be_options_are_refused_where_options_run_programs() {
    let policies = [allow("touch,tar,sort,sed,rg,find,xargs,ls,git,cat,read,grep"), deny("pwned")];
    for policy in &policies {
        all_denied(
            policy,
            &[
                "touch -- --checkpoint=1 --checkpoint-action=exec=pwned && tar cf /dev/null *",
                "tar cf x.tar *",
                "sort -S 1k *",
                "sed p *",
                "sed p ?x",
                "sed p [a-z-]*",
                "rg x *",
                "for f in *; do sed p \"$f\"; done",
                "read -r x < h; sort $x",
                "read -r x < h; sort \"$x\"",
                "cat list | xargs sort",
                "{ cat list; find . -print0; } | xargs -0 sed p",
                "find . -print0 | xargs -0 -d ' ' sed p",
                "find . -maxdepth 0 -exec cat $(cat x) \\;",
                "read -r x < h; find . -exec cat \"$x\" -delete \\;",
                "read -r x < h; find . -name f \"$x\"",
                "find *",
            ],
        );
        all_allowed(
            policy,
            &[
                "tar cf x.tar ./*",
                "tar cf x.tar -- *",
                "sort -- *.txt",
                "sort ./*.txt lists/*",
                "sed -n p -- *",
                "sed p lists/*.txt f{1,2}.txt",
                "for f in ./*; do sed p \"$f\"; done",
                "find . -name 'x*' -print0 | xargs -0 sed p",
                "find . -name x | xargs sed p --",
                "find . -name '*.rs' -exec sed -n p {} +",
                "find . -name *.rs",
                "find src/* -type f",
                "ls *.rs; cat $f; cat *; ls -l *",
                "git add *.rs; git log *",
                "ls | xargs cat",
            ],
        );
    }
    // A list of denied programs trusts the names of files a little more.
    let files = [
        "sort *.txt",
        "for f in *.txt; do sort \"$f\"; done",
        "ls | xargs sed p",
        "find -name 'x*' | xargs sed p",
        "find . -name 'x*' | xargs -I% sed p %",
        "grep -rl x src | xargs sed -i s/x/y/",
    ];
    all_denied(&policies[0], &files);
    all_allowed(&policies[1], &files);
}

#[test]
fn known_values_are_judged_as_if_they_stood_there() {
    let policy =
        Policy { write_dirs: vec!["/dev/null".into()], ..allow("find,echo,set,git log,ls") };
    all_denied(
        &policy,
        &[
            "x='; -exec pwned'; find . -maxdepth 0 -exec echo $x \\;",
            "x=-delete; find . -name f \"$x\"",
            "x=-delete; y=$x; find . -name f $y",
            "x=-fls; find . $x /srv/scratch/wrote",
            "x=--output=/srv/scratch/target; git log $x",
            "x='a --output=/srv/scratch/target'; git log $x",
            "git log --outpu{t,}=/srv/scratch/target",
            "f() { git log \"$1\"; }; f --output=/srv/scratch/target",
            "f() { git log \"$@\"; }; f -1 --output=/srv/scratch/target",
            "g() { git log \"$1\"; }; f() { g \"--$1\"; }; f output=/srv/scratch/target",
            "if ls; then f() { git log \"$1\"; }; fi; f --output=/srv/scratch/target",
            "set -- --output=/srv/scratch/target; git log \"$@\"",
            "for x in a --output=/srv/scratch/target; do git log $x; done",
            "x=-1; ls && x=--output=/srv/scratch/target; git log $x",
            "git log $(echo --output=/srv/scratch/target)",
            "git -C . show \"$(echo --output=/srv/scratch/target)\"",
        ],
    );
    all_allowed(
        &policy,
        &[
            "x=-name; find . $x f",
            "x='-1 --stat'; git log $x",
            "f() { git log \"$@\"; }; f -1 --stat; f",
            "git log --{stat,oneline}",
            "set -- -1; git log \"$@\"",
            "git log *; git log -- $(echo x); git log \"$BASE\"..HEAD",
            "for d in src tests; do find $d -name x; ls \"$d\"; done",
        ],
    );
    // Unset where it is used, the variable leaves the sub-command where it is.
    all_denied(&deny("git push"), &["false && x=-C; git $x push"]);
    all_denied(
        &deny("rm"),
        &["x=rm; env $x y", "declare -l x; x=RM; env $x y", "f() { $@; }; f '' rm"],
    );
    all_denied(&deny("rm"), &["x=ls; . ./settings; $x", "f() { env $1; f \"r$1\"; }; f m"]);
    all_allowed(&deny("rm"), &["f() { ls \"$1\"; f \"$1/x\"; }; f a"]);
    all_allowed(
        &deny("rm"),
        &["x=ls; env $x y", "x=ls; $x -l", "for f in *.o; do ls \"$f\"; done"],
    );
    all_allowed(&deny("rm -rf"), &["for f in *.o; do rm -f \"$f\"; done"]);
    let policy = allow("ls,echo");
    all_allowed(&policy, &["run() { echo \"+ $*\"; \"$@\"; }; run ls -l; run echo x"]);
    all_denied(
        &policy,
        &[
            "run() { \"$@\"; }; run rm x",
            "run() { shift; \"$@\"; }; run ls rm x",
            "set -- ls rm; builtin shift; \"$@\"",
            "f() { $@; }; f \"\" rm",
        ],
    );
}

#[test]
fn only_commands_that_list_are_taken_for_a_listing() {
    let policy = allow("find,git,docker,kubectl,grep,head,sort,ls,cat,fd,rg,readlink,which,pwd");
    for output in [
        "git rev-parse -- -delete",
        "git rev-parse -delete",
        "git rev-parse --sq-quote -delete",
        "git rev-list --oneline HEAD",
        "git tag -n",
        "find . -printf -delete",
        "find . -exec cat {} +",
        "fd -x cat",
        "docker exec c cat f",
        "docker ps --format -delete",
        "kubectl exec p -- cat f",
        "kubectl get pods -o name --template -delete",
        "readlink f",
        "grep --color x f",
        "grep -el f",
        "ls | grep -h x f",
        "ls | grep -r x",
        "ls | head f",
        "ls | sort f",
        "cat f",
    ] {
        let script = format!("x=$({output}); find . \"$x\"");
        all_denied(&policy, &[&script]);
    }
    for output in [
        "git rev-parse --show-toplevel",
        "git rev-parse --abbrev-ref HEAD",
        "git describe --tags --abbrev=0",
        "git ls-files",
        "git diff --name-only HEAD~1",
        "find . -name x",
        "docker ps -q",
        "kubectl get pods",
        "readlink -f f",
        "grep -rl x src",
        "ls | grep -v x | head -n 3 | sort",
        "pwd",
    ] {
        let script = format!("x=$({output}); find \"$x\" -name y");
        all_allowed(&policy, &[&script]);
    }
}

#[test]
fn builtins_behind_others_are_split_and_run_like_any_command() {
    all_denied(
        &deny("pwned"),
        &["builtin eval -- pwned", "eval -- pwned", "jobs -x pwned", "builtin jobs -lx pwned"],
    );
    let policy = allow("export,typeset,set,ls,builtin,command,jobs");
    all_denied(
        &policy,
        &[
            "jobs -x pwned",
            "y='1 PS4=$(pwned)'; builtin export LANG=$y; set -x; ls",
            "y='1 PS4=$(pwned)'; type\\set LANG=$y; set -x; ls",
            "builtin export LANG=$(ls)",
        ],
    );
    all_allowed(&policy, &["export LANG=$(ls); jobs -l", "builtin export LANG=\"$(ls)\""]);
}

#[test]
fn standard_input_is_read_whatever_it_is_called() {
    all_denied(
        &deny("pwned"),
        &[
            "sh //dev/stdin <<E\npwned\nE",
            "echo pwned | bash /./dev/stdin",
            ". /usr/../dev/stdin <<E\npwned\nE",
            "source //proc/self/fd/0 <<< pwned",
            "sh /proc/thread-self/fd/0 <<< pwned",
            "sh /dev/fd/3 3<<< pwned",
            "cd /dev; sh stdin <<< pwned",
            "cd /proc/self/fd && bash 0 <<< pwned",
            "cd /proc/self; sh fd/0 <<< pwned",
            "cd \"$x\"; sh fd/3 3<<< pwned",
            "env -C /dev sh stdin <<< pwned",
            "ln -s /dev/stdin x; sh x <<< pwned",
            "ln -s /dev x; sh x/stdin <<< pwned",
            "python3 //dev/stdin <<'E'\nimport os; os.system('pwned')\nE",
            "printf 'x:\\n\\tpwned\\n' | make -f /proc/self/fd/0",
            "printf 'x:\\n\\tpwned\\n' | make -f //dev/stdin",
            "printf 'x:\\n\\tpwned\\n' | make -C /dev -f stdin",
            "/proc/self/exe -c pwned",
            "cd /proc/self && ./exe -c pwned",
            "/dev/fd/3 -c x 3< /bin/bash",
        ],
    );
    all_allowed(
        &deny("pwned"),
        &[
            "sh //dev/stdin <<E\nls\nE",
            "cd build; sh run.sh",
            "cd \"$x\"; sh ./run.sh; make -f Makefile.inc",
            "cat /dev/stdin | sort",
        ],
    );
}

#[test]
fn files_are_written_only_where_they_really_are() {
    let policy = Policy {
        write_dirs: vec!["/srv/proj".into()],
        ..allow("cat,echo,tee,ln,cp,mv,cd,chdir,exec")
    };
    all_denied(
        &policy,
        &[
            "{ cat f > /dev/fd/3; } 3< /etc/motd",
            "{ cat f >> /dev/stdin; } < /etc/motd",
            "{ cat f | tee /dev/fd/3; } 3< /etc/motd",
            "{ echo x > /dev/stdout; } 1< /etc/motd",
            "{ echo x > /dev/stderr; } 2<&0",
            "exec {n}< /etc/motd; echo x > /dev/fd/$n",
            "ln -s /etc/motd e; cp f e",
            "ln -s /etc d; echo x > d/motd",
            "ln -s /etc d; cd d; echo x > motd",
            "ln -s /etc/motd .; echo x > motd",
            "ln -s /etc/motd e; mv e g; echo x > g",
            "ln /etc/motd e; echo x > e",
            "cp -s /etc/motd e; echo x > e",
            "cp $(cat x) f g",
            "cp --symb /etc/motd e; echo x > e",
            "chdir /etc && echo x > motd",
            "f() { echo x > d/motd; }; ln -s /etc d; f",
        ],
    );
    all_allowed(
        &policy,
        &[
            "echo x > /dev/stdout; echo x > /dev/stderr; echo x >&2",
            "echo x > /dev/fd/2 2>/dev/null",
            "ln -s a b; echo x > c; cp c d",
            "cd src && echo x > y",
            "cp *.txt backup/; mv -- $(cat x) backup",
        ],
    );
}

#[test]
fn what_programs_get_is_judged_with_the_values_it_may_have() {
    let policy = allow("ls,export,set,f,declare");
    all_allowed(
        &policy,
        &[
            "level=debug; APP_LEVEL=$level ls",
            "port=80; export PORT=$port; ls",
            "export i=0; : $((i += 1)); ls",
        ],
    );
    all_denied(
        &policy,
        &[
            "tool=/srv/x; APP_TOOL=$tool ls",
            "f() { APP_TOOL=/srv/x; ls; }; export APP_TOOL; f",
            "f() { APP_TOOL=/srv/x; ls; }; set -a; f",
            "f() { APP_TOOL=$1; ls; }; declare -x APP_TOOL; f /srv/x",
            "APP_TOOL=/srv/x; export APP_TOOL; ls",
            "export APP_TOOL=1; APP_TOOL+=/srv/x; ls",
        ],
    );
}

#[test]
fn a_shell_that_reads_its_input_has_arguments_too() {
    all_denied(
        &deny("git push,rm -rf"),
        &[
            "bash -s push <<< 'git $1'",
            "bash -s -- push <<< 'git $1'",
            "sh -s x -rf y <<'E'\nrm $2 $3\nE",
            "bash -s push origin <<< 'git \"$@\"'",
            "bash /dev/stdin push <<< 'git $1'",
        ],
    );
    all_allowed(
        &deny("git push,rm -rf"),
        &["bash -s status <<< 'git $1'", "bash -s <<< 'git log'"],
    );
}

#[test]
fn a_function_for_commands_that_do_not_exist_gets_their_words() {
    all_denied(
        &deny("git push,sudo"),
        &[
            "command_not_found_handle() { git \"$2\"; }; nosuch push",
            "command_not_found_handle() { shift; \"$@\"; }; nosuch git push",
            "command_not_found_handle() { su$1 id; }; 'do'",
            "command_not_found_handle() { git $1; }; push",
        ],
    );
    all_allowed(
        &deny("git push,sudo"),
        &["command_not_found_handle() { echo \"$1: not found\" >&2; return 127; }; nosuch push"],
    );
}
