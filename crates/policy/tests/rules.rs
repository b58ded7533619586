//! Which commands rules match.
#![allow(clippy::unwrap_used, clippy::panic, dead_code, reason = "a test may panic")]

mod support;

use mcpz_policy::{Policy, Rule, Scene, Unresolved, Verdict};
use support::{all_allowed, all_denied, allow, deny, is_allowed, refusal};

#[test]
fn without_rules_everything_is_allowed() {
    all_allowed(
        &Policy::default(),
        &["rm -rf / ; :(){ :|:& };:", "if", "'", "$x", "LD_PRELOAD=x ls"],
    );
    assert!(!Policy::default().restricts());
}

#[test]
fn an_allow_list_refuses_what_is_not_on_it() {
    let policy = allow("ls*,cat*,echo*");
    all_allowed(
        &policy,
        &["ls", "ls -la /tmp", "lsblk", "  cat f", "echo 'a; b' \"c | d\"", "ls *.rs ~ '$1'"],
    );
    all_denied(
        &policy,
        &["rm x", "./ls", "/tmp/ls", "sudo ls", "", "  ", "lsdir/../../bin/rm", "LS"],
    );
}

#[test]
fn a_program_of_the_system_is_known_by_its_path_too() {
    let policy = allow("ls,./gradlew,/opt/tool/bin/tool");
    all_allowed(&policy, &["/bin/ls", "/usr/local/bin/ls", "./gradlew test", "/opt/tool/bin/tool"]);
    all_denied(&policy, &["/usr/bin/../../tmp/ls", "/srv/proj/ls", "gradlew", "tool", "bin/ls"]);
}

#[test]
fn a_deny_list_refuses_by_name_at_any_path() {
    let policy = deny("rm*,sudo,/usr/bin/touch");
    all_denied(
        &policy,
        &["rm x", "rmdir x", "/bin/rm x", "./x/rm x", "sudo ls", "RM x", "touch x", "/bin/touch x"],
    );
    all_allowed(&policy, &["ls rm", "sudoedit x", "git rm x", "echo sudo"]);
}

#[test]
fn deny_wins_over_allow() {
    let both = Policy { deny: Rule::list("rm,git push").unwrap(), ..allow("*") };
    all_denied(&both, &["rm x", "git push", "env rm x", "ls && rm x"]);
    all_allowed(&both, &["ls", "./anything", "git status"]);
}

#[test]
fn a_rule_of_several_words_is_about_sub_commands_and_options() {
    let policy = deny("rm -rf,git push,docker system prune,git commit --amend");
    all_denied(
        &policy,
        &[
            "rm -rf x",
            "rm -fr x",
            "rm -r -f x",
            "rm -r x -f",
            "rm --recursive --force x",
            "rm --rec --for x",
            "rm -Rf x",
            "git push",
            "git -C . push origin",
            "git --no-pager push",
            "git -c user.name=x push",
            "git --work-tree /x push",
            "/usr/bin/git push",
            "docker --context a system prune",
            "docker system prune -f",
            "git commit -m x --amend",
            "git commit --amen",
            "git {push,x}",
            "git $x",
            "git pu*",
        ],
    );
    all_allowed(
        &policy,
        &[
            "rm -r x",
            "rm x",
            "rm -- -rf",
            "git status",
            "git log --grep=push",
            "git stash push",
            "git log push",
            "docker system df",
            "docker image prune",
            "git commit -m 'git push'",
            "git --no-pager log push",
        ],
    );
}

#[test]
fn an_allow_rule_of_several_words_needs_them_all() {
    let policy = allow("git status,npm run *,python3 -m pytest,cargo test");
    all_allowed(
        &policy,
        &[
            "git status -s",
            "git -C x status",
            "npm run build",
            "npm run",
            "python3 -m pytest -q",
            "cargo test",
        ],
    );
    all_denied(
        &policy,
        &[
            "git",
            "git push status",
            "git stash",
            "npm publish",
            "python3 -m http.server",
            "cargo $x",
        ],
    );
}

#[test]
fn a_regular_expression_is_about_the_decoded_command() {
    let policy =
        Policy { deny: vec![Rule::new(r"/^curl .*evil\.com/").unwrap()], ..Policy::default() };
    all_denied(&policy, &["curl https://evil.com/x", "cu'r'l 'https://ev'il.com"]);
    all_allowed(&policy, &["curl https://good.com/x", "echo curl evil.com"]);
    let policy =
        Policy { allow: vec![Rule::new("/^(ls|cat)( [a-z]+)*$/").unwrap()], ..Policy::default() };
    all_allowed(&policy, &["ls", "cat a b"]);
    all_denied(&policy, &["ls /etc", "ls $x", "rm a"]);
    assert!(Rule::new("/(/").is_err());
}

#[test]
fn a_rule_is_held_to_its_examples() {
    let rule = Rule::new("git push").unwrap();
    let examples = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert!(rule.check(&examples(&["git -C x push"]), &examples(&["git stash push"])).is_ok());
    let missed = rule.check(&examples(&["git pull"]), &[]).unwrap_err();
    assert_eq!(
        missed.to_string(),
        "the rule `git push` should match its example `git pull`, but does not"
    );
    let caught = rule.check(&[], &examples(&["git push -f"])).unwrap_err();
    assert_eq!(
        caught.to_string(),
        "the rule `git push` should not match its example `git push -f`, but does"
    );
}

#[test]
fn a_refusal_says_which_part_and_why() {
    let mut rule = Rule::new("rm").unwrap();
    rule.reason = Some("use `trash` instead".into());
    let policy = Policy { deny: vec![rule], ..Policy::default() };
    assert_eq!(
        refusal(&policy, "cd x && rm -r y"),
        "`rm -r y` (at 8) is denied by the rule `rm`: use `trash` instead"
    );
    assert_eq!(
        refusal(&allow("ls,cat"), "ls; make"),
        "`make` (at 4) runs `make`, which is not on the allow list; allowed: ls, cat"
    );
    for moved in ["cd /tmp && ./check", "ln -s /bin/id check; ./check"] {
        let refused = refusal(&allow("cd,ln,./check"), moved);
        assert!(refused.contains("may not be the file that the allow list means"), "{refused}");
    }
    assert_eq!(
        refusal(&deny("rm"), "$tool x"),
        "`$tool x` (at 0) is only known at run time (it could be what the rule `rm` denies); \
         write the command out"
    );
    let writes = Policy { write_dirs: vec!["/srv/proj".into()], ..Policy::default() };
    assert_eq!(
        refusal(&writes, "echo x > $out"),
        "`> $out` (at 7) writes to a file that is only known at run time; write its path out"
    );
    assert_eq!(
        refusal(&deny("rm"), "echo 'x"),
        "`'` (at 5) is not understood: a quote is not closed"
    );
    assert_eq!(
        refusal(&deny("rm"), "PATH=. ls"),
        "`PATH=.` (at 0) sets the variable `PATH`, which could change what runs; add folders behind it \
         (`PATH=$PATH:/folder`), or run the program by its path"
    );
}

#[test]
fn what_only_the_run_will_know_can_be_allowed() {
    let policy = Policy { unresolved: Unresolved::Allow, ..deny("rm") };
    all_allowed(&policy, &["$tool x", "eval \"$x\"", "/bin/r? x", "bash -c \"$x\""]);
    all_denied(&policy, &["rm x", "eval 'rm x'", "$x; rm y"]);
    let policy = Policy { unresolved: Unresolved::Allow, ..allow("ls") };
    assert!(is_allowed(&policy, "$tool x"));
}

#[test]
fn builtins_that_change_the_shell_need_a_rule_of_their_own() {
    all_denied(
        &allow("e*,s*,a*,t*"),
        &["export A=1", "eval ls", "set -a", "source x", "alias", "trap '' INT"],
    );
    all_allowed(&allow("export,set,eval,ls"), &["export A=1", "set -e; ls", "eval ls"]);
}

#[test]
fn words_that_no_shell_reads_are_judged_as_they_are() {
    let judge = |policy: &Policy, words: &[&str]| {
        let words: Vec<_> = words.iter().map(ToString::to_string).collect();
        policy.judge_words(&words, &support::SCENE).verdict == Verdict::Allow
    };
    assert!(judge(&allow("echo"), &["echo", "$(rm x); `ls`"]));
    assert!(!judge(&deny("rm"), &["/bin/rm", "x"]));
    assert!(!judge(&deny("rm"), &["env", "rm", "x"]));
    assert!(!judge(&deny("rm"), &["sh", "-c", "ls; rm x"]));
    assert!(!judge(&deny("rm"), &[]));
}

#[test]
fn variables_of_a_request_are_judged_too() {
    let judge = |policy: &Policy, name: &str, value: &str| {
        let variables = [(name.to_owned(), value.to_owned())];
        let scene = Scene { variables: &variables, ..support::SCENE };
        policy.judge("ls", "bash", &scene).verdict == Verdict::Allow
    };
    let policy = allow("ls,cat");
    for (name, value) in [("LANG", "C"), ("PORT", "80"), ("GIT_PAGER", "cat"), ("PAGER", "")] {
        assert!(judge(&policy, name, value), "{name}");
    }
    for (name, value) in
        [("PATH", "."), ("BASH_ENV", "x"), ("BASH_FUNC_ls%%", "() { rm; }"), ("PAGER", "rm x")]
    {
        assert!(!judge(&policy, name, value), "{name}");
    }
    assert!(judge(&Policy::default(), "PATH", "."));
    assert!(judge(&deny("rm"), "MY_OWN", "$(rm x)"));
    assert!(!judge(&policy, "MY_OWN", "$(rm x)"));
    assert!(judge(&allow("ls,MY_*=*"), "MY_OWN", "$(rm x)"));
    assert!(!judge(&allow("ls,MY_OWN=ls"), "MY_OWN", "$(rm x)"));
}

#[test]
fn with_an_allow_list_programs_get_only_harmless_variables() {
    let policy = allow("zgrep,grep,ls,env,export,set,declare,npm,strace,for");
    all_denied(
        &policy,
        &[
            "GREP=evil zgrep x f.gz",
            "FUTURE_HOOK=evil npm test",
            "export FUTURE_HOOK=evil; npm test",
            "FUTURE_HOOK=evil; export FUTURE_HOOK; npm test",
            "export FUTURE_HOOK; FUTURE_HOOK=evil; npm test",
            "export FUTURE_HOOK=1; FUTURE_HOOK=evil; npm test",
            "declare -x FUTURE_HOOK=evil; npm test",
            "set -a; FUTURE_HOOK=evil; npm test",
            "set -o allexport; FUTURE_HOOK=evil; npm test",
            "env FUTURE_HOOK=evil npm test",
            "strace -E FUTURE_HOOK=evil npm test",
            "strace -EFUTURE_HOOK=evil npm test",
        ],
    );
    all_allowed(
        &policy,
        &[
            "FUTURE_HOOK=evil; ls $FUTURE_HOOK",
            "set -a; PORT=1; npm test",
            "CI=1 NODE_ENV=test LOG_LEVEL=debug npm test",
            "DATABASE_URL=postgres://db/x?ssl=1 NPM_TOKEN=abc npm test",
            "LC_ALL=C TZ=UTC ls",
            "GREP=grep; export GREP; zgrep x f.gz",
            "IFS=, ls",
            "strace -E LANG=C npm test",
        ],
    );
    all_allowed(&allow("npm,FUTURE_*=*"), &["FUTURE_HOOK=evil npm test"]);
    all_allowed(&allow("*"), &["FUTURE_HOOK=evil npm test"]);
    all_allowed(&deny("rm"), &["FUTURE_HOOK=evil npm test"]);
    assert!(
        refusal(&policy, "FUTURE_HOOK=evil npm test")
            .ends_with("a rule `FUTURE_HOOK=*` would allow it")
    );
}

#[test]
fn shells_that_are_not_understood_run_nothing() {
    let verdict = |shell| allow("ls").judge("ls", shell, &support::SCENE).verdict;
    assert_eq!(verdict("/bin/dash"), Verdict::Allow);
    assert_ne!(verdict("/usr/bin/fish"), Verdict::Allow);
    assert_eq!(
        Policy::default().judge("ls", "/usr/bin/fish", &support::SCENE).verdict,
        Verdict::Allow
    );
}

#[test]
fn interpreters_on_an_allow_list_are_noticed() {
    assert_eq!(allow("ls,python3,bash,git,node").open_doors(), ["python3", "bash", "node"]);
    assert_eq!(allow("ls,git").open_doors(), [""; 0]);
}

#[test]
fn a_regular_expression_reads_past_the_end_of_a_line() {
    let policy = deny("/^git push .*--force/");
    all_denied(&policy, &["git push -o 'one\ntwo' --force", "git push $'\\n' --force"]);
    all_allowed(&policy, &["git push -o 'one\ntwo'"]);
}

#[test]
fn a_star_in_an_argument_of_an_allow_rule_keeps_to_the_folder() {
    let policy = allow("python3 scripts/*,python3 *.py,node tools/*.js,make *,perl ../t/*.pl");
    all_allowed(
        &policy,
        &[
            "python3 scripts/a/b",
            "python3 x.py -v",
            "node tools/x.js",
            "make -j4 ../x",
            "perl ../t/x.pl",
        ],
    );
    all_denied(
        &policy,
        &[
            "python3 scripts/../x",
            "python3 scripts/../../../dev/stdin",
            "python3 '-cimport os;os.system(\"evil\")#.py'",
            "node tools/../x.js",
            "perl ../t/../x.pl",
        ],
    );
}

#[test]
fn an_operator_that_the_shell_does_not_have_is_named() {
    let judgement = deny("rm").judge("cat <<< x", "sh", &support::SCENE);
    let Verdict::Deny(denial) = judgement.verdict else { panic!("it is refused") };
    assert_eq!(denial.part, "<<<");
    assert!(denial.to_string().contains("only bash has this operator"), "{denial}");
}

#[test]
fn a_refused_use_of_a_program_is_told_which_uses_are_allowed() {
    let told = refusal(&allow("ls,git status,git log,gitk"), "git push");
    assert!(
        told.ends_with("is not among the allowed uses of `git`: git status, git log"),
        "{told}"
    );
    let told = refusal(&allow("ls,git status"), "rm x");
    assert!(told.ends_with("which is not on the allow list; allowed: ls, git status"), "{told}");
}
