//! Ways around a policy through the language of the shell. Each one was run once to confirm it.
#![allow(clippy::unwrap_used, clippy::panic, dead_code, reason = "a test may panic")]

mod support;

use mcpz_policy::{Policy, Rule, Verdict};
use support::developer::{ALLOWED, developer};
use support::{SCENE, all_allowed, all_denied, allow, deny};

#[test]
fn conditions_hide_nothing() {
    all_denied(
        &developer(),
        &[
            "[[ =~ ]]\nrm x\n[[ a ]]",
            "[[ a == =~ ]]\nrm x\n[[ a ]]",
            "[[ -n =~ ]]\nrm x\n[[ a ]]",
            "[[ a =~ ]] ]]\nrm x",
            "[[ a\nrm x ]]",
        ],
    );
}

#[test]
fn text_that_is_evaluated_is_code() {
    all_denied(
        &developer(),
        &[
            "set -- 'a[$(rm x)]'; echo $(( $1 ))",
            "f() { echo $(( $1 )); }; f 'a[$(rm x)]'",
            "for x in 'a[$(rm x)]'; do echo $(( $x )); done",
            "bash -c 'echo $(( $1 ))' _ 'a[$(rm x)]'",
            "env 'x=a[$(rm x)]' bash -c 'echo $((x))'",
            "set -- 'a[$(rm x)]'; eval 'echo $((x=$1))'",
            "read -r x <<'E'\na[$(rm x)]\nE\necho $((x))",
            "while read -r x; do echo $((x)); done <<'E'\na[$(rm x)]\nE",
            "echo ${a['$(rm x)']}",
            "a=abc; echo ${a:'$(rm x)'}",
            "x='a['; x+='$(rm x)]'; echo $((x))",
            "a='x[$'; b='(rm x)]'; c=$a$b; echo $((c))",
            "printf -v x 'a[\\044(rm x)]'; echo $((x))",
            "x=$(printf 'a[\\044(rm x)]'); echo $((x))",
            "x=$(printf '\\141[\\044(rm x)]'); [[ $x -eq 1 ]]",
            "declare -i x; x='a[$(rm x)]'",
            "let 'x=a[$(rm x)]'",
        ],
    );
}

#[test]
fn a_function_is_unknown_to_other_processes() {
    let policy = allow("git,tar,flock,scp,rg,go,ls,trap,eval,find");
    for run in [
        "git -c core.pager=evil log",
        "git rebase -x evil main",
        "git clone -u evil x y",
        "tar -I evil -xf x",
        "flock f -c evil",
        "flock -c evil f",
        "scp -S evil a b:",
        "rg --pre evil x",
        "go test -exec evil",
        "PAGER=evil git log",
    ] {
        assert!(!support::is_allowed(&policy, &format!("evil() {{ ls; }}; {run}")), "{run}");
    }
    all_allowed(&policy, &["f() { ls; }; trap f EXIT", "f() { ls; }; eval 'f x'"]);
}

#[test]
fn modes_and_tables_of_the_shell_stay_as_they_are() {
    all_denied(
        &developer(),
        &[
            "eval(){ :; }; POSIXLY_CORRECT=1; eval 'rm x'",
            "eval(){ :; }\nset -o posix\neval 'rm x'",
            "BASH_ALIASES[ls]='rm x'\nls",
            "BASH_CMDS[ls]=/any/rm; ls x",
            "mapfile -tC 'rm x; :' -c 1 a < f",
            "export {PATH,Y}=/mnt/ev; ls",
            "printf -v{x,PATH} /mnt/ev; ls",
            "x=-vPATH; printf \"$x\" /mnt/ev; ls",
            "x='-v PATH /mnt/ev'; printf $x; ls",
            "x=n; declare -$x r=PATH; r=/mnt/ev; ls",
            "((PATH=1)); ls",
            "let PATH=1; ls",
        ],
    );
    all_denied(
        &allow("eval,unset,:,trap"),
        &[
            "evil() { :; }; eval 'unset -f evil'; evil x",
            "evil() { :; }; trap 'unset -f evil' DEBUG; evil x",
        ],
    );
    all_denied(&deny("rm"), &["$'rm\\400zz' x"]);
}

#[test]
fn a_text_is_read_in_the_language_of_its_shell() {
    for command in [
        "trap '[[ a || rm x ]]' EXIT",
        "trap 'ls &>x rm y' EXIT",
        ". /dev/stdin <<'E'\n[[ a || rm x ]]\nE",
        "echo $((ls # $(rm x)\n) ) # ))",
        "[[ a || rm x ]]",
    ] {
        assert_ne!(developer().judge(command, "sh", &SCENE).verdict, Verdict::Allow, "{command}");
    }
    all_denied(&developer(), &["eval 'time ! \\rm a'", "eval 'time rm a'"]);
}

#[test]
fn text_that_bash_expands_twice_is_code() {
    all_denied(
        &developer(),
        &[
            "echo >& '$(rm x)'",
            "x='$(rm x)'; echo >& \"$x\"",
            "set -- '$(rm x)'; echo >&\"$1\"",
            "declare -a 'x=($(rm x))'",
            "declare -a x; declare 'x=($(rm x))'",
            "y='($(rm x))'; declare -a x=$y",
            "set -- '$(rm x)'; declare -A \"m=([$1]=1)\"",
            "set -- 'a[$(rm x)]'; OPTIND=$1",
            "set -- 'a[$(rm x)]'; RANDOM=$1",
            "x=a[\\$\\(rm\\ x\\)]; echo $((x))",
            "test {-v,'a[$(rm x)]'}",
            "unset PATH; a=PATH; : ${!a:=/mnt/ev}; ls",
            "a=PATH; let \"$a=1\"; ls",
            "a=PATH; (( $a = 1 )); ls",
            "trap {rm,EXIT}",
        ],
    );
}

#[test]
fn parentheses_are_arithmetic_or_nothing() {
    all_denied(
        &developer(),
        &[
            "false && echo $((echo a # ) ) ; rm x\n))",
            "echo $((echo $(cat <<E\n'\nE\n); rm x))",
            "cat <<E\n ';#\nE\necho \"$((echo $(cat <<E\n)b# \nE\n); ! rm x))\"",
        ],
    );
}

#[test]
fn a_variable_that_changes_is_not_taken_for_what_it_was() {
    all_denied(
        &developer(),
        &[
            "find . $Q-exec rm x \\;",
            "find . \"$Q\"-exec rm {} \\;",
            "find . \"${Q}-exec\" rm {} +",
            "a=-exec; find . $Q$a rm {} \\;",
            "x=a; unset x; find . \"$x-exec\" rm x ';'",
            "sed p \"$Q-e1e rm x\" f",
            "sed p $Q'-e1e rm x' f",
            "find . -name f $Q-delete",
            "f() { sed p \"$x\" f; }; read -r x <<< '-e1e rm x'; f",
            "f() { sed p \"$x\" f; }; printf -v x '%s' '-e1e rm x'; f",
            "f() { sed p \"$x\" f; }; export x='-e1e rm x'; f",
            "f() { sed p \"$x\" f; }; eval \"x='-e1e rm x'\"; f",
            "f() { sed -n \"$x\" f; }; read -r x <<< '1e rm x'; f",
            "for i in 1 2; do sed p \"$x\" f; read -r x <<< '-e1e rm x'; done",
            "trap 'sed \"$p\" f' EXIT; export p='1e rm x'",
            "g() { sed \"$x\" f; }; f() { local x=$1; g; }; f '1e rm x'",
            ": '1e rm x'; sed \"$_\" f",
            ": -exec; find . \"$_\" rm x \\;",
            "read -r <<< '1e rm x'; sed \"$REPLY\" f",
            "mapfile -t <<< '1e rm x'; sed \"$MAPFILE\" f",
            "[[ '1e rm x' =~ .* ]]; sed \"$BASH_REMATCH\" f",
            "env 'Q=1e rm x' bash -c 'sed \"$Q\" f'",
            "env Q=-exec bash -c 'find . $Q rm x \\;'",
            "IFS=,; x='f,-e1erm'; sed p $x",
            "IFS=,; x='.,-exec,rm,x,;'; find $x",
            "nproc() { echo '1e rm x'; }; sed \"$(nproc)\" f",
            "x[0]='-e1e rm x'; sed p \"$x\" f",
            "for i in 1 2; do v+='/x;e rm x;'; done; sed \"$v/p\" f",
            "sed \"s${Q},.*,rm x,e;#11\" f",
            "date '+-e1e rm x' | xargs -d '\\n' sed p f",
            "basename -- -exec | xargs -I{} find . {} rm x ';'",
            "touch -- '-e1e rm x'; ls | xargs -d '\\n' sed p f",
            "x='a[0+$'; y='(rm x)]'; z=$x$y; echo $((z))",
            "x=$(printf 'a[\\U24(rm x)]'); echo $((x))",
        ],
    );
    all_denied(
        &allow("eval,unset,:,trap,."),
        &[
            "evil() { :; }; eval 'un\\set -f evil'; evil x",
            "evil() { :; }; trap 'un\\set -f evil' DEBUG; evil x",
            "evil() { :; }; . /dev/stdin <<< 'unset -f evil'; evil x",
        ],
    );
    all_denied(&deny("rm"), &["env =~ bash -c 'rm x'", "env =x rm y"]);
}

#[test]
fn text_in_braces_is_code_once_it_is_evaluated() {
    all_denied(
        &developer(),
        &[
            ": ${x:='a[$(rm x)]'}; echo $((x))",
            "y=${x:-'a[$(rm x)]'}; echo $((y))",
            "y=\"${x:-a[\\$(rm x)]}\"; echo $((y))",
            "z=1; y=${z/1/'a[$(rm x)]'}; echo $((y))",
            "echo >& ${x:-'$(rm x)'}",
            "cat > g <<E\na[\\$(rm x)]\nE\nread x < g; echo $((x))",
        ],
    );
    all_denied(
        &deny("rm"),
        &["a[ #]; rm x", "a[;#]; rm x", "(a[)#]; rm x)", "a[<<E #]; rm x\nE", "time a[ #]; rm x"],
    );
    all_denied(&allow("install"), &["install -s --strip-program=rm f g"]);
}

#[test]
fn values_of_options_that_vanish_hide_nothing() {
    all_denied(
        &developer(),
        &[
            "env -u $Q ls rm x",
            "exec -a $Q ls rm x",
            "command time -f $Q ls rm x",
            "xargs -E $Q ls rm < f",
            "x='5 rm x'; nice -n $x ls",
            "sed -e $Q '1e rm x' f",
            "awk -F $Q , 'BEGIN{system(\"rm x\")}'",
            "git -C $Q . push",
            "x='. push'; git -C $x log",
            "git -C $Q . -c alias.p='!rm x' p",
            "awk 'BEGIN{x=1system(\"rm x\")}'",
            "awk \"BEGIN{x=${Q}system(\\\"rm x\\\")}\"",
            "awk 'BEGIN{print \"x\",\n\"y\" > \"/tmp/pwn\"}'",
            "test \"$Q-v\" 'a[$(rm x)]'",
            "x=-v; [ \"$x\" 'a[$(rm x)]' ]",
            "find . $!-exec rm x ';'",
            "sed p $!-e1erm f",
            "tar cf /dev/null $Q--checkpoint=1 $Q--checkpoint-action=exec='rm x' f",
        ],
    );
    all_denied(
        &allow("eval,trap,:,cat,echo,wait"),
        &[
            "(eval 'evil() { :; }; :'); evil x",
            "eval 'evil() { :; }; :' | cat; evil x",
            "trap 'evil() { :; }; :' EXIT; evil x",
        ],
    );
    let policy = Policy { write_dirs: vec!["/srv/proj".into()], ..developer() };
    all_denied(
        &policy,
        &[
            "find .. -maxdepth 0 -exec cp f {} ';'",
            "find .. -maxdepth 0 | xargs cp f",
            "find .. -name f -exec sort -o {} {} ';'",
        ],
    );
    let relative = Policy { write_dirs: vec![".".into()], ..developer() };
    all_denied(&relative, &["echo x > /etc/f"]);
    all_allowed(&relative, &["echo x > f", "exec {fd}> log.txt; echo x >&$fd"]);
}

#[test]
fn honest_work_is_let_through() {
    let policy = Policy {
        deny: Rule::list("rm,sudo,git push").unwrap(),
        ..allow(&format!("{ALLOWED},kubectl,docker,nproc,ssh,dirname,basename,rsync,less"))
    };
    all_allowed(
        &policy,
        &[
            "curl -sS \"$URL\" | jq .",
            "url=http://localhost:8080; curl -s $url/health",
            "rg \"$pattern\" src",
            "sort \"$f\" | uniq -c | sort -rn | head",
            "make -j$(nproc)",
            "git fetch origin \"$BRANCH\"",
            "git clone \"$URL\" repo",
            "sed -n \"${start},${end}p\" file",
            "v=1.2; sed -i \"s/VERSION/$v/g\" file",
            "find \"$dir\" -type f -exec grep -l foo {} \\;",
            "find src -name \"*.$ext\" -exec wc -l {} +",
            "find . -name '*.rs' -print0 | xargs -0 sed -i 's/foo/bar/g'",
            "echo \"${v//[^a-z]/}\" \"${line//[[:space:]]/}\" \"${x:-'none'}\"",
            "cleanup() { docker compose down; }; trap cleanup EXIT; docker compose up -d",
            "printf \"${GREEN}%s${NC} %s\\n\" a b",
            "NODE_OPTIONS=--max-old-space-size=4096 npm run build",
            "MAKEFLAGS=-j4 make",
            "awk '{ s += $1 } END { if (NR > 0) print \"avg: \" s/NR }' f",
            "awk '{print $1 | \"sort\"}' f",
            "[[ \"$x\" =~ ^(a b)$ ]] && echo 1",
            "for f in ./*.txt; do sed -n 1p \"$f\"; done",
            "kubectl get pods | grep x | xargs -I{} kubectl logs {}",
            "exec > >(tee log) 2>&1; ls",
            "make CC=gcc CFLAGS='-O2 -g' all",
            "sed -e '1i\\' -e 'header' f",
        ],
    );
}

#[test]
fn the_line_editor_of_read_has_keys_that_run_commands() {
    all_denied(&deny("rm"), &["read -e line", "read -rep 'Name: ' line", "read -i x -e line"]);
    all_allowed(&deny("rm"), &["read -rp 'Name: ' line", "read -r e"]);
}

#[test]
fn descriptors_of_the_shell_itself_are_out_of_reach() {
    all_denied(
        &deny("rm"),
        &[
            "exec 3<&10",
            "cat <&10",
            "x=10; cat <&$x",
            "cat <&$((5 + 5))",
            "read -u 10 line",
            "read -u11 line",
            "mapfile -u 12 lines",
            "exec 3<&10-",
        ],
    );
    all_allowed(
        &deny("rm"),
        &[
            "exec 3<notes; cat <&3; exec 3<&-",
            "echo oops >&2",
            "exec 10<notes; cat <&10",
            "exec {fd}<notes; read -u $fd line; cat <&$fd; exec {fd}<&-",
            "while read -u 3 -r line; do echo \"$line\"; done 3<notes",
        ],
    );
}
