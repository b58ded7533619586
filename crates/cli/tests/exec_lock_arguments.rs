//! Deny rules with arguments, such as `git push`, hold for the arguments that a program really gets.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use support::locked::{Programs, has_run};
use support::sandbox::warnings;

#[test]
fn whoever_executes_it_and_however_it_is_spelled() {
    let place = Programs::new();
    let mut server = place.server("deny = [\"speaker push\"]");
    for words in ["'push'", "'push', 'x'", "'-q', 'push'", "'--level', '3', 'push'"] {
        let text = format!("import subprocess\nsubprocess.run(['speaker', {words}])");
        let reply = place.python(&mut server, &text);
        assert!(!has_run(&reply), "{words}: {reply}");
        assert!(warnings(&reply).contains("the rule `speaker push` denies it"), "{reply}");
    }
    for words in ["'pull'", "'pull', 'push'", "''"] {
        let text = format!("import subprocess\nsubprocess.run(['speaker', {words}])");
        assert!(has_run(&place.python(&mut server, &text)), "{words}");
    }
}

#[test]
fn by_a_link_a_copy_a_shell_or_a_script() {
    let place = Programs::new();
    let program = place.folder().join("real");
    std::fs::copy("/usr/bin/env", &program).unwrap();
    let mut server = place.server("deny = [\"real echo\", \"speaker push\"]");
    let made = "import os, shutil, subprocess\nfolder = os.path.dirname(__file__)\n";
    for way in [
        "os.symlink(folder + '/real', folder + '/soft'); os.execv(folder + '/soft', ['soft', 'echo', 'speaker ran'])",
        "os.link(folder + '/real', folder + '/hard'); os.execv(folder + '/hard', ['hard', 'echo', 'speaker ran'])",
        "shutil.copy(folder + '/real', folder + '/copy'); os.execv(folder + '/copy', ['copy', 'echo', 'speaker ran'])",
        "os.execv(folder + '/real', ['other', 'echo', 'speaker ran'])",
        "os.system('x=pu; speaker ${x}sh')",
        "os.system('git -c alias.x=\\'!speaker push\\' x')",
    ] {
        let reply = place.python(&mut server, &format!("{made}{way}"));
        assert!(!has_run(&reply), "{way}: {reply}");
        assert!(warnings(&reply).contains("denies it"), "{way}: {reply}");
    }
    let interpreted = format!("#!{} echo\n", program.display());
    place.file("interpreted", &interpreted);
    let reply = place.python(&mut server, "import subprocess\nsubprocess.run(['interpreted'])");
    assert!(warnings(&reply).contains("the rule `real echo` denies it"), "{reply}");
}

#[test]
fn a_script_that_a_shell_or_interpreter_opens_is_the_program_of_the_rule() {
    let place = Programs::new();
    place.file("spoken.py", "import sys; print('speaker ran', sys.argv[1:])");
    let mut server = place.server("deny = [\"speaker push\", \"spoken.py push\"]");
    let made = "import os, subprocess\nfolder = os.path.dirname(__file__)\n";
    let links = "for name in 'speaker', 'spoken.py': os.symlink(name, folder + '/other-' + name)\n";
    place.python(&mut server, &format!("{made}{links}"));
    for command in [
        "['sh', folder + '/speaker', 'WORD']",
        "['bash', '-o', 'errexit', '+x', folder + '/speaker', 'WORD']",
        "['sh', folder + '/other-speaker', 'WORD']",
        "['python3', '-B', folder + '/spoken.py', 'WORD']",
        "['python3', folder + '/other-spoken.py', 'WORD']",
    ] {
        let mut reply = |word: &str| {
            let command = command.replace("WORD", word);
            place.python(&mut server, &format!("{made}subprocess.run({command})"))
        };
        let refused = reply("push");
        assert!(!has_run(&refused), "{command}: {refused}");
        assert!(warnings(&refused).contains("denies it"), "{command}: {refused}");
        assert!(has_run(&reply("pull")), "{command}");
    }
}

#[test]
fn no_link_through_the_own_folder_in_proc_hides_the_script_that_a_rule_denies() {
    let place = Programs::new();
    let folder = place.folder();
    std::fs::create_dir(folder.join("other")).unwrap();
    place.file("other/speaker", "#!/bin/sh\necho speaker ran\n");
    for (link, name) in [("/proc/self/fd/3", "descriptor"), ("/proc/self/cwd/speaker", "here")] {
        std::os::unix::fs::symlink(link, folder.join("other").join(name)).unwrap();
    }
    let settings = format!("deny = [\"speaker\"]\n[shell_tool]\nworking_dir = {folder:?}");
    let mut server = place.server(&settings);
    for command in [
        "cd other && sh descriptor 3< speaker",
        "cd other && sh here",
        "cd other && exec 3< speaker && sh /proc/self/fd/3",
        "cd other && python3 -c 'import os; os.execvp(\"sh\", [\"sh\", \"/proc/self/cwd/speaker\"])'",
    ] {
        let reply = server.run(command);
        assert!(!has_run(&reply), "{command}: {reply}");
    }
}

#[test]
fn a_folder_that_a_link_leads_to_is_the_one_that_the_process_enters() {
    let [inside, outside] = [(); 2].map(|()| support::plain_folder());
    for folder in [inside.path().join("x"), outside.path().to_owned()] {
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("Makefile"), "test:\n\t@echo speaker ran\n").unwrap();
    }
    let sub = inside.path().join("sub");
    std::fs::create_dir(&sub).unwrap();
    for link in ["self", "thread-self"] {
        let target = format!("/proc/{link}/cwd/x");
        std::os::unix::fs::symlink(target, sub.join(link)).unwrap();
    }
    std::os::unix::fs::symlink(outside.path(), sub.join("x")).unwrap();
    let place = Programs::new();
    let folder = inside.path();
    let settings = format!("allow = [\"make test\"]\n[shell_tool]\nworking_dir = {folder:?}");
    let mut server = place.server_in(folder, &settings);
    assert!(has_run(&server.run("make -C x test")));
    for command in ["make -C sub -C self test", "cd sub && make -C thread-self test"] {
        let reply = server.run(command);
        assert!(!has_run(&reply), "{command}: {reply}");
        assert!(warnings(&reply).contains("was not allowed to execute"), "{reply}");
    }
}

#[test]
fn an_option_counts_behind_however_many_arguments() {
    let place = Programs::new();
    let mut server = place.server("deny = [\"speaker -rf\"]");
    let text = "import subprocess\nsubprocess.run(['speaker'] + ['x' * 30] * 20_000 + OPTIONS)";
    for options in ["['-rf']", "['-f', '-r']", "['-fvr']"] {
        let reply = place.python(&mut server, &text.replace("OPTIONS", options));
        assert!(!has_run(&reply), "{options}");
    }
    assert!(has_run(&place.python(&mut server, &text.replace("OPTIONS", "['-f', '--', '-r']"))));
}

#[test]
fn a_call_ends_in_time_whatever_is_being_decided() {
    let place = Programs::new();
    let rules: Vec<_> = (0..60).map(|at| format!("\"speaker x{at}\"")).collect();
    let mut server = place.server(&format!("deny = [{}]", rules.join(", ")));
    let text = "import subprocess\nsubprocess.run(['speaker'] + ['x'] * 150_000)";
    let path = place.file("program.py", text);
    let began = std::time::Instant::now();
    let command = format!("python3 {}", path.display());
    server.call_raw(serde_json::json!({"command": command, "timeout": 1}));
    assert!(began.elapsed() < std::time::Duration::from_secs(4), "{:?}", began.elapsed());
    assert!(has_run(&server.run("speaker y")));
}

#[test]
fn what_a_pattern_became_is_decided_in_time() {
    let place = Programs::new();
    let folder = place.folder().join("many");
    std::fs::create_dir(&folder).unwrap();
    (0..10_000).for_each(|at| std::fs::write(folder.join(format!("t{at}")), "").unwrap());
    let mut server = place.server("allow = [\"speaker -l\", \"cd\"]");
    let began = std::time::Instant::now();
    let reply = server.run(&format!("cd {}; speaker -l many/*", place.folder().display()));
    assert!(has_run(&reply), "{reply}");
    assert!(began.elapsed() < std::time::Duration::from_secs(5), "{:?}", began.elapsed());
}

#[test]
fn a_copy_of_what_was_installed_since_the_command_before_is_denied() {
    let place = Programs::new();
    let [own, copy] = ["own", "copy"].map(|name| place.folder().join(name));
    for path in [&own, &copy] {
        std::fs::copy("/usr/bin/env", path).unwrap();
    }
    // Files that changed just now are looked at in any case.
    std::thread::sleep(std::time::Duration::from_millis(2100));
    let mut server = place.server("deny = [\"secret\"]");
    let run = format!("{} echo speaker ran", copy.display());
    assert!(has_run(&server.run(&run)));
    std::os::unix::fs::symlink(&own, place.folder().join("secret")).unwrap();
    let reply = server.run(&run);
    assert!(!has_run(&reply), "{reply}");
    assert!(warnings(&reply).contains("the rule `secret` denies it"), "{reply}");
    // What was installed once may still be meant.
    std::fs::remove_file(place.folder().join("secret")).unwrap();
    assert!(!has_run(&server.run(&run)));
}

#[test]
fn no_test_is_run_that_a_link_leads_out_of_the_project_to() {
    let [inside, outside] = [(); 2].map(|()| support::plain_folder());
    for name in ["l.test.js", "test_l.py"] {
        std::fs::write(outside.path().join(name), "").unwrap();
        std::os::unix::fs::symlink(outside.path().join(name), inside.path().join(name)).unwrap();
        std::fs::write(inside.path().join(name.replace('l', "own")), "").unwrap();
    }
    let place = Programs::new();
    for (rule, own, linked) in [
        ("node --test", &["own.test.js"][..], &["l.test.js"][..]),
        ("python3 -m unittest", &["test_own.py", "test_own"][..], &["test_l.py", "test_l"][..]),
    ] {
        let folder = inside.path();
        let settings = format!("allow = [\"{rule}\"]\n[shell_tool]\nworking_dir = {folder:?}");
        let mut server = place.server(&settings);
        let mut is_refused = |file: &str| {
            let reply = server.run(&format!("{rule} {file}"));
            warnings(&reply).contains("was not allowed to execute")
        };
        for file in own {
            assert!(!is_refused(file), "{rule} {file}");
        }
        for file in linked {
            assert!(is_refused(file), "{rule} {file}");
        }
    }
}

#[test]
fn no_package_is_tested_that_a_link_leads_out_of_the_project_to() {
    let [inside, outside] = [(); 2].map(|()| support::plain_folder());
    std::fs::create_dir(inside.path().join("own")).unwrap();
    std::os::unix::fs::symlink(outside.path(), inside.path().join("l")).unwrap();
    let folder = inside.path();
    for (rule, own, linked) in [
        (
            "go test *",
            &["./own", "app/own", "example.com/app/own", "app/...", "./...", "net/http"][..],
            &["./l", "l", "app/l", "example.com/app/l", "app//l", "app/./l/", "app/l/..."][..],
        ),
        ("npm test", &["-- --project=own"], &["-- --project=l", "-- --project=l/part", "-w l"]),
        (
            "bazel test *",
            &["//own:tests", "//own/...", "//..."],
            &["//l:tests", "//l/part:all", "//l/..."],
        ),
    ] {
        let place = Programs::new();
        let tool = rule.split(' ').next().unwrap();
        std::fs::copy("/bin/true", place.folder().join(tool)).unwrap();
        let settings = format!("allow = [{rule:?}]\n[shell_tool]\nworking_dir = {folder:?}");
        let mut server = place.server(&settings);
        let mut is_refused = |package: &str| {
            let reply = server.run(&format!("{tool} test {package}"));
            warnings(&reply).contains("was not allowed to execute")
        };
        for package in own {
            assert!(!is_refused(package), "{package}");
        }
        for package in linked {
            assert!(is_refused(package), "{package}");
        }
    }
}

#[test]
fn what_a_star_in_a_rule_stands_for_leads_nowhere_by_a_link() {
    let [inside, outside] = [(); 2].map(|()| support::plain_folder());
    let folder = inside.path();
    std::fs::create_dir(folder.join("scripts")).unwrap();
    std::fs::write(folder.join("scripts/own"), "exit").unwrap();
    std::fs::write(outside.path().join("other"), "exit").unwrap();
    std::fs::create_dir(folder.join("scripts/a:")).unwrap();
    for link in ["scripts/l", "scripts/a:/l"] {
        std::os::unix::fs::symlink(outside.path(), folder.join(link)).unwrap();
    }
    let place = Programs::new();
    // Node adds the ending itself.
    std::os::unix::fs::symlink(outside.path().join("other"), folder.join("scripts/n.js")).unwrap();
    let absolute = format!("python3 {}/scripts/*", folder.display());
    let name = folder.file_name().unwrap().to_str().unwrap();
    let above = format!("python3 ../{name}/scripts/*");
    for rule in
        ["python3 scripts/*", "bash scripts/*", "bash -o pipefail scripts/*", &absolute, &above]
    {
        let settings = format!("allow = [\"{rule}\"]\n[shell_tool]\nworking_dir = {folder:?}");
        let mut server = place.server(&settings);
        let mut is_refused = |script: &str| {
            let reply = server.run(&rule.replace('*', script));
            warnings(&reply).contains("was not allowed to execute")
        };
        assert!(!is_refused("own l/other"), "{rule}");
        assert!(is_refused("l/other"), "{rule}");
        assert!(is_refused("a://l/other"), "{rule}");
        assert!(is_refused("n"), "{rule}");
    }
}

#[test]
fn a_folder_with_a_program_is_run_only_if_that_is_in_it() {
    let [inside, outside] = [(); 2].map(|()| support::plain_folder());
    let at = |path: &str| inside.path().join(path);
    std::fs::write(outside.path().join("other"), "print('other ran')").unwrap();
    for folder in
        ["scripts/own", "scripts/first", "scripts/package", "scripts/beside", "scripts/java"]
    {
        std::fs::create_dir_all(at(folder)).unwrap();
    }
    std::fs::write(at("scripts/own/__main__.py"), "print('own ran')").unwrap();
    for link in
        ["first/__main__.pyc", "package/__init__.py", "beside.js", "java/A.class", "own/data"]
    {
        std::os::unix::fs::symlink(outside.path().join("other"), at("scripts").join(link)).unwrap();
    }
    let place = Programs::new();
    let folder = inside.path();
    let name = folder.file_name().unwrap().to_str().unwrap();
    let absolute = format!("python3 {}/scripts/*", folder.display());
    let above = format!("python3 ../{name}/scripts/*");
    for rule in ["python3 scripts/*", &absolute, &above] {
        let settings = format!("allow = [\"{rule}\"]\n[shell_tool]\nworking_dir = {folder:?}");
        let mut server = place.server(&settings);
        let mut run = |script: &str| server.run(&rule.replace('*', script));
        assert_eq!(run("own")["output"], "own ran\n", "{rule}");
        for name in ["first", "package", "beside", "beside/", "beside/.", "java"] {
            let reply = run(name);
            assert!(warnings(&reply).contains("was not allowed to execute"), "{name}: {reply}");
        }
    }
}

#[test]
fn a_class_is_run_only_if_it_is_in_the_folder_of_the_rule() {
    let [inside, outside] = [(); 2].map(|()| support::plain_folder());
    let at = |path: &str| inside.path().join(path);
    std::fs::create_dir_all(at("libs/own")).unwrap();
    std::fs::create_dir_all(at("libs/other")).unwrap();
    let links = ["libs/Other.class", "libs/own/Main.class", "libs/other/x.jar"];
    for link in links {
        std::os::unix::fs::symlink(outside.path().join("other"), at(link)).unwrap();
    }
    let place = Programs::new();
    place.file("java", "#!/bin/sh\necho java ran\n");
    let folder = inside.path();
    let settings = format!(
        "allow = [\"java libs.*\", \"java -cp libs/* Main\"]\n[shell_tool]\nworking_dir = {folder:?}"
    );
    let mut server = place.server(&settings);
    for fits in ["libs.Own", "-cp libs/x.jar Main"] {
        assert_eq!(server.run(&format!("java {fits}"))["output"], "java ran\n", "{fits}");
    }
    for leads_out in ["libs.Other", "-cp libs/own Main", "-cp 'libs/other/*' Main"] {
        let reply = server.run(&format!("java {leads_out}"));
        assert!(warnings(&reply).contains("was not allowed to execute"), "{leads_out}: {reply}");
    }
}

#[test]
fn a_rule_does_not_hold_in_a_folder_that_the_command_puts_in_place_of_the_one_where_it_begins() {
    let folder = support::plain_folder();
    let at = |path: &str| folder.path().join(path);
    for (name, says) in [("own", "own ran"), ("other", "other ran")] {
        std::fs::create_dir(at(name)).unwrap();
        let text = format!("test:\n\t@echo {says}\n");
        std::fs::write(at(name).join("Makefile"), text).unwrap();
    }
    let place = Programs::new();
    let begin = at("own");
    let settings =
        format!("allow = [\"make test\", \"mv\"]\n[shell_tool]\nworking_dir = {begin:?}");
    let mut server = place.server(&settings);
    assert_eq!(server.run("make test")["output"], "own ran\n");
    let (own, other, away) = (begin.display(), at("other"), at("away"));
    let (other, away) = (other.display(), away.display());
    let swap = format!("mv {own} {away}; mv {other} {own}");
    let test = serde_json::json!({"command": format!("cd {own}; make test"), "session": "work"});
    assert_eq!(server.call(test.clone())["output"], "own ran\n");
    let reply = server.run(&format!("{swap}; cd {own}; make test"));
    assert!(warnings(&reply).contains("was not allowed to execute"), "{reply}");
    // The next command finds it there, also in a shell that was there before.
    assert_eq!(server.run("make test")["output"], "other ran\n");
    assert_eq!(server.call(test)["output"], "other ran\n");
}

#[test]
fn a_regular_expression_is_held_as_well() {
    let place = Programs::new();
    let mut server = place.server("deny = ['/^speaker .*--force/']");
    let run = |words: &str| format!("import subprocess\nsubprocess.run(['speaker', {words}])");
    let reply = place.python(&mut server, &run("'push', '--force'"));
    assert!(!has_run(&reply), "{reply}");
    assert!(has_run(&place.python(&mut server, &run("'push'"))));
}

#[test]
fn arguments_that_are_known_only_at_run_time_are_left_to_the_kernel() {
    let place = Programs::new();
    let mut server = place.server("lock = true\ndeny = [\"speaker push\"]");
    let reply = server.run("speaker $(echo pull) x");
    assert!(has_run(&reply), "{reply}");
    let reply = server.run("speaker $(echo push) x");
    assert!(!has_run(&reply), "{reply}");
    assert!(warnings(&reply).contains("the rule `speaker push` denies it"), "{reply}");
    let mut server = place.server("lock = false\ndeny = [\"speaker push\"]");
    let reply = server.run("speaker $(echo pull) x");
    assert!(reply.to_string().contains("could be what the rule `speaker push` denies"), "{reply}");
}
