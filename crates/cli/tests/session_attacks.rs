//! Sessions: what a command does to its shell never becomes the text that runs next, or the answer to another call.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::path::Path;

use serde_json::{Value, json};
use support::Server;
use tempfile::TempDir;

/// The shells that a policy can judge.
const SHELLS: [&str; 2] = ["/bin/sh", "/bin/bash"];

/// A server in a directory of its own.
fn start(folder: &TempDir, shell: &str) -> Server {
    Server::start(&["-s", shell, "-w", folder.path().to_str().unwrap()])
}

fn say(server: &mut Server, session: &str, command: &str) -> Value {
    server.call(json!({"command": command, "session": session, "timeout": 20}))
}

#[test]
fn nothing_that_a_command_sets_runs_in_the_next() {
    for shell in SHELLS {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("orders"), "touch pwned\0").unwrap();
        let mut server = start(&folder, shell);
        let everywhere = [
            "_mcpz_o='touch pwned;' _mcpz_t='touch pwned' _mcpz_c='0; touch pwned'",
            "_mcpz_q() { touch pwned; }",
            "readonly _mcpz_t=x _mcpz_o=x _mcpz_c=1",
            "set -- 'touch pwned'; IFS=\\; REPLY='touch pwned'",
            "set -fu; unset PWD; OLDPWD='$(touch pwned)'",
            "PWD='$(touch pwned)'; PS1=$PWD; PS4=$PWD; ENV=orders",
            "alias eval='touch pwned;' builtin='touch pwned;' command='touch pwned;' printf='touch pwned;'",
            "exec 3<orders 4<orders 9<orders; exec 0<orders",
            "exec 0<&-",
            "printf() { touch pwned; }",
        ];
        let in_bash = [
            "trap '_mcpz_t=\"touch pwned\" REPLY=\"touch pwned\"; set -- \"touch pwned\"' DEBUG; set -T",
            "declare -u _mcpz_t; declare -i _mcpz_c",
            "declare -n _mcpz_t=other; other='touch pwned'",
            "exec 60<orders 61<orders 63<orders 255<orders",
            "exec 61<&- 63<&- 255<&-",
            "shopt -s expand_aliases; alias eval='touch pwned;' builtin='touch pwned;'",
            "PROMPT_COMMAND='touch pwned'; BASH_ENV=orders; set -o posix",
        ];
        let in_bash = in_bash.iter().filter(|_| shell == "/bin/bash");
        for (number, command) in everywhere.iter().chain(in_bash).enumerate() {
            let session = number.to_string();
            say(&mut server, &session, command);
            let next = say(&mut server, &session, "echo Next");
            assert_eq!(next["output"], "Next\n", "{shell}: {command}: {next}");
            assert!(!folder.path().join("pwned").exists(), "{shell}: {command}");
            say(&mut server, &session, "exit");
        }
    }
}

#[test]
fn a_function_that_replaces_our_builtins_disturbs_only_its_own_session() {
    for shell in SHELLS {
        let folder = tempfile::tempdir().unwrap();
        let mut server = start(&folder, shell);
        for function in ["builtin", "command", "eval", "printf", "exit", "set", "read", "source"] {
            let define = format!("{function}() {{ echo replaced; }}");
            for command in [define.as_str(), "touch other", "touch other"] {
                let said = json!({"command": command, "session": function, "timeout": 0.5});
                let output = server.call(said)["output"].clone();
                assert!(!output.to_string().contains("other"), "{shell}: {function}: {output}");
            }
            assert_eq!(say(&mut server, "other", "echo fine")["output"], "fine\n", "{function}");
        }
    }
}

#[test]
fn nobody_can_open_the_orders_of_a_session_again() {
    for shell in SHELLS {
        let folder = tempfile::tempdir().unwrap();
        let mut server = start(&folder, shell);
        let write = "for file in /proc/$$/fd/*; do \
                     case ${file##*/} in 1|2|62) ;; *) (printf 'touch pwned\\n\\0' >$file) 2>/dev/null;; esac; \
                     done; echo written";
        assert_eq!(say(&mut server, "work", write)["output"], "written\n", "{shell}");
        let steal = "touch stolen; for file in /proc/$$/fd/*; do \
                     case ${file##*/} in 1|2|62) ;; *) (head -c 9 <$file >>stolen &) 2>/dev/null;; esac; \
                     done; echo waiting";
        assert_eq!(say(&mut server, "work", steal)["output"], "waiting\n", "{shell}");
        assert_eq!(
            say(&mut server, "work", "echo Next; cat stolen")["output"],
            "Next\n",
            "{shell}"
        );
        assert!(!folder.path().join("pwned").exists(), "{shell}");
        // Programs do not inherit them.
        let inherited = say(&mut server, "work", "ls -l /proc/self/fd | grep -c socket");
        assert_eq!(inherited["output"], "0\n", "{shell}");
    }
}

#[test]
fn what_others_write_to_the_pipe_for_replies_is_no_reply() {
    for shell in SHELLS {
        let folder = tempfile::tempdir().unwrap();
        let mut server = start(&folder, shell);
        let wait = |file: &str| format!("until [ -e {file} ]; do sleep 0.01; done");
        let lie = r"printf '9 /nowhere\0\0t0123456789abcdef 9 h /nowhere\0garbage' >/dev/fd/62";
        say(&mut server, "work", &format!("({}; {lie}; touch said) &", wait("go")));
        let told = say(&mut server, "work", &format!("touch go; {}; echo mine", wait("said")));
        let expected = (&json!(0), &json!("mine\n"), &json!(folder.path()));
        assert_eq!((&told["return_code"], &told["output"], &told["cwd"]), expected, "{shell}");
        let flood = "head -c 3000000 /dev/zero | tr '\\0' x >/dev/fd/62; echo done; (exit 3)";
        let told = say(&mut server, "work", flood);
        assert_eq!(
            (&told["return_code"], &told["output"]),
            (&json!(3), &json!("done\n")),
            "{shell}"
        );
        assert_eq!(say(&mut server, "work", "echo $?")["output"], "3\n", "{shell}");
    }
}

#[test]
fn a_shell_that_cannot_report_ends() {
    if !Path::new("/bin/bash").exists() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut server = start(&folder, "/bin/bash");
    let told = say(&mut server, "work", "echo said; exec 62>&-");
    assert_eq!(told["output"], "said\n");
    assert!(told["message"].as_str().unwrap().contains("this command ended the session"), "{told}");
    assert_eq!(say(&mut server, "work", "echo fine")["output"], "fine\n");
}
