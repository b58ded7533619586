//! Interpreters open programs that rules deny, as files and as modules.
#![allow(clippy::unwrap_used, clippy::panic, dead_code, reason = "a test may panic")]

mod support;

use mcpz_policy::{ExactCall, Policy, Rule, Scene, Verdict};
use support::{SCENE, all_allowed, all_denied, deny};

#[test]
fn a_denied_module_is_denied_however_python_runs_it() {
    all_denied(
        &deny("pip install"),
        &[
            "python3 -m cProfile -m pip install x",
            "python3 -m cProfile -o out -s time -m pip install x",
            "python3 -m cProfile -m -o out pip install x",
            "python3 -m profile -m pip install x",
            "python3 -m cProfile /usr/bin/pip install x",
            "python3 -m trace --count -C /tmp --module pip install x",
            "python3 -m trace -t --module=pip install x",
            "python3 -m runpy pip install x",
            "python3 -m runpy pip.__main__ install x",
            "python3 -m coverage run -m pip install x",
            "python3 -m cProfile -m trace -t --module pip install x",
            "python3 -mcProfile -m pip install x",
            "python3 -m pdb -m pip install x",
        ],
    );
    all_allowed(
        &deny("pip install"),
        &[
            "python3 -m cProfile -m pip list",
            "python3 -m cProfile -o out app.py install x",
            "python3 -m trace --count app.py install",
            "python3 -m coverage run app.py install",
            "python3 app.py -m pip install x",
        ],
    );
    let usual = format!("python3 -m coverage run --branch -m pytest {}", "-k x ".repeat(40));
    all_allowed(&deny("pip install"), &[&usual]);
    let many = format!("python3 -m cProfile {} -m app", "-o x ".repeat(40));
    all_denied(&deny("pip install"), &[&many]);
}

#[test]
fn a_denied_program_is_known_by_the_folder_it_is_in() {
    let pip = Scene { directory: "/usr/lib/python3/dist-packages/pip", ..SCENE };
    let judged = |policy: &Policy, command: &str| policy.judge(command, "bash", &pip).verdict;
    for program in [".", "./", "./.", "__main__.py", "./__main__.py", "../pip", "_vendor/.."] {
        let command = format!("python3 {program} install x");
        assert!(matches!(judged(&deny("pip install"), &command), Verdict::Deny(_)), "{command}");
        let command = format!("python3 {program} list");
        assert_eq!(judged(&deny("pip install"), &command), Verdict::Allow, "{command}");
    }
    all_denied(
        &deny("pip install,npm test"),
        &[
            "cd /usr/lib/python3/dist-packages/pip; python3 . install x",
            "cd /usr/lib/node_modules/npm && node . test",
            "cd \"$x\"; python3 . install x",
            "cd \"$x\"; python3 __main__.py install x",
        ],
    );
    all_allowed(&deny("pip install"), &["python3 . install x", "cd \"$x\"; python3 . list"]);
}

#[test]
fn an_option_of_an_interpreter_takes_the_next_word_as_it_does() {
    all_denied(
        &deny("pip install,npm test,bundle install,composer install"),
        &[
            "python3 --check-hash-based-pycs always -m pip install x",
            "python3 -E /usr/bin/pip install x",
            "python3 -I /usr/bin/pip install x",
            "python3 -BW ignore /usr/bin/pip install x",
            "python3 -BW ignore -m pip install x",
            "python3 -Wignore -m pip install x",
            "node --title x /usr/bin/npm test",
            "node --input_type module /usr/bin/npm test",
            "node -C x --require y /usr/bin/npm test",
            "node --no-warnings /usr/bin/npm test",
            "ruby -C /tmp /usr/bin/bundle install",
            "ruby -E utf-8 /usr/bin/bundle install",
            "ruby -wI lib /usr/bin/bundle3.1 install",
            "ruby --enable gems /usr/bin/bundle install",
            "php -d memory_limit=-1 /usr/bin/composer install",
            "php -f composer.phar install",
            "php -n -f composer.phar -- install",
        ],
    );
    // Here the policy would already refuse the mention.
    for words in [
        "python3 -W pip install x",
        "python3 -c 1 pip install",
        "node --title npm test.js",
        "node -p 1 npm test",
        "node x.js npm test",
        "ruby -C bundle install.rb",
        "php -d npm test.php",
    ] {
        let (name, rest) = words.split_once(' ').unwrap();
        let call = ExactCall::new(name, rest.split(' '));
        let opened = call.opened(&|_| None).unwrap();
        let rules = ["pip install", "npm test", "bundle install"].map(|it| Rule::new(it).unwrap());
        let mut opened = opened;
        let is_denied = opened.any(|call| rules.iter().any(|rule| rule.denies(&call)));
        assert!(!is_denied, "{words}");
    }
}

#[test]
fn a_file_that_only_the_run_will_know_is_left_to_the_keeper() {
    let commands = ["python3 $(echo mb/pip) install x", "node \"$script\" test"];
    let policy = deny("pip install,npm test");
    all_denied(&policy, &commands);
    all_allowed(&policy, &["python3 \"$script\" list", "python3 \"$script\""]);
    all_allowed(&deny("rm -rf,git push"), &commands);
    let held = Scene { locked: true, ..SCENE };
    for command in commands {
        assert_eq!(policy.judge(command, "bash", &held).verdict, Verdict::Allow, "{command}");
    }
}

#[test]
fn a_script_that_a_shell_opens_is_its_program() {
    all_denied(
        &deny("deploy.sh push"),
        &[
            "sh deploy.sh push",
            "bash -e ./deploy.sh push",
            "bash -o errexit +x tools/deploy.sh push",
            "bash +o posix deploy.sh push",
            "sh -- deploy.sh push",
        ],
    );
    all_allowed(&deny("deploy.sh push"), &["sh deploy.sh list", "bash other.sh push", "sh -c ls"]);
}

#[test]
fn a_script_is_the_same_with_a_dot_before_it() {
    all_denied(&deny("python3 deploy.py"), &["python3 deploy.py", "python3 -B ././deploy.py x"]);
    all_denied(&deny("sh ./x.sh"), &["sh x.sh", "sh ./x.sh"]);
    all_allowed(&deny("python3 deploy.py"), &["python3 ./deploy.pyc", "python3 ."]);
}
