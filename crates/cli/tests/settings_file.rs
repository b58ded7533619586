//! `--settings`: the rules of a coding assistant's settings hold, and a file that would protect nobody is
//! refused.
#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "a test may panic, and not every test uses all of the support"
)]

mod support;

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::json;
use support::{MCPZ, Server};
use tempfile::TempDir;

struct Settings {
    folder: TempDir,
}

impl Settings {
    fn new(text: &str) -> Self {
        let settings = Self { folder: tempfile::tempdir().unwrap() };
        std::fs::write(settings.path(), text).unwrap();
        settings
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("settings.json")
    }

    /// What `mcpz check` says of a command, and its exit code.
    fn check(&self, command: &str) -> (String, String, i32) {
        let mut check = Command::new(MCPZ);
        check.args(["check", command, "--settings"]).arg(self.path());
        let output = check.env("XDG_CONFIG_HOME", "/nonexistent").output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (text(output.stdout), text(output.stderr), output.status.code().unwrap())
    }
}

/// Files, with commands that may run and commands that may not.
fn judge(files: &[(&str, &[&str], &[&str])]) {
    for (text, allowed, denied) in files {
        let settings = Settings::new(text);
        for (commands, expected) in [(allowed, 0), (denied, 1)] {
            for command in *commands {
                let (said, complaint, code) = settings.check(command);
                assert_eq!((code, &*complaint), (expected, ""), "{text}: {command}: {said}");
            }
        }
    }
}

/// Files that are refused, and what must be among the words.
fn refuse(files: &[(&str, &[&str])]) {
    for (text, parts) in files {
        let settings = Settings::new(text);
        let (said, complaint, code) = settings.check("true");
        assert_eq!((code, &*said), (1, ""), "{text}: {complaint}");
        let path = settings.path().display().to_string();
        let start = format!("mcpz: the settings file {path}");
        assert!(complaint.starts_with(&start), "{text}: {complaint}");
        for part in *parts {
            assert!(complaint.contains(part), "{text}: {part} is not in: {complaint}");
        }
    }
}

#[test]
fn both_formats_hold_and_so_do_all_names_of_the_tool() {
    judge(&[
        (r#"{"coreTools": ["run_shell_command(git)"]}"#, &["git log"], &["ls"]),
        (r#"{"tools": {"core": ["run_shell_command(git)"]}}"#, &["git log"], &["ls"]),
        (r#"{"tools": {"core": ["ShellTool(git)", "ReadFileTool"]}}"#, &["git log"], &["ls"]),
        (r#"{"excludeTools": ["ShellTool(git push)"]}"#, &["git log"], &["git -C . push"]),
        (r#"{"tools": {"exclude": ["run_shell_command(rm)"]}}"#, &["ls"], &["ls; rm x"]),
        (r#"{"tools": {"exclude": ["ShellTool"]}}"#, &[], &["ls"]),
        (r#"{"tools": {"core": ["ShellTool"], "exclude": ["Shell(rm)"]}}"#, &["ls"], &["rm x"]),
        (r#"{"permissions": {"deny": ["Bash(rm *)", "Read(.env)"]}}"#, &["ls"], &["rm", "rm x"]),
        (r#"{"permissions": {"deny": ["Bash(npm run:*)"]}}"#, &["npm test"], &["npm run x"]),
        (r#"{"permissions": {"deny": ["Bash(mkfs*)"]}}"#, &["ls"], &["mkfs.ext4 x", "mkfs x"]),
        (r#"{"permissions": {"deny": ["Bash"]}}"#, &[], &["ls"]),
        (r#"{"permissions": {"deny": ["Bash(*)"]}}"#, &[], &["ls"]),
        (r#"{"tools": {"core": ["run_shell_command(echo a,b)"]}}"#, &["echo a,b"], &["b"]),
        // A list of what may run that has no command on it lets none run.
        (r#"{"tools": {"core": ["read_file", "glob"]}}"#, &[], &["ls"]),
        (r#"{"coreTools": []}"#, &[], &["ls"]),
        (r#"{"coreTools": ["git"]}"#, &[], &["git log", "ls"]),
        (r#"{"coreTools": ["run_shell_command"]}"#, &["ls", "rm x"], &[]),
        // A name nobody knows is a tool of somebody's, or a command.
        (r#"{"excludeTools": ["rm", "mcp__notes__search"]}"#, &["ls"], &["rm x"]),
    ]);
}

#[test]
fn what_approves_without_asking_restricts_nothing_and_what_asks_does() {
    judge(&[
        (
            r#"{"tools": {"allowed": ["run_shell_command(git)"], "exclude": ["ShellTool(rm)"]}}"#,
            &["ls", "git log"],
            &["rm x"],
        ),
        (
            r#"{"permissions": {"allow": ["Bash(git *)"], "ask": ["Bash(git push *)"]}}"#,
            &["ls", "git log"],
            &["git push"],
        ),
        (r#"{"tools": {"confirmationRequired": ["run_shell_command(rm)"]}}"#, &["ls"], &["rm x"]),
    ]);
    let asks = Settings::new(r#"{"permissions": {"ask": ["Bash(git push)"]}}"#);
    let (said, _, _) = asks.check("git push");
    assert!(said.contains("mcpz cannot ask anyone"), "{said}");
    refuse(&[
        (r#"{"tools": {"allowed": ["run_shell_command(git)"]}}"#, &["restricts no command"]),
        (r#"{"allowedTools": ["ShellTool(git)"]}"#, &["restricts no command", "`tools.allowed`"]),
        (r#"{"permissions": {"allow": ["Bash(git *)"]}}"#, &["`permissions.allow` only say"]),
    ]);
}

#[test]
fn old_and_new_rules_hold_together() {
    judge(&[
        (
            r#"{"excludeTools": ["run_shell_command(rm)"], "tools": {"exclude": ["ShellTool(dd)"]},
                "permissions": {"deny": ["Bash(sudo *)"]}}"#,
            &["ls"],
            &["rm x", "dd", "sudo ls"],
        ),
        (
            r#"{"coreTools": ["run_shell_command(git)", "run_shell_command(ls)"],
                "tools": {"core": ["run_shell_command(git log)", "run_shell_command(cat)"]}}"#,
            &["git log -3"],
            &["git push", "ls", "cat x"],
        ),
        (
            r#"{"coreTools": ["run_shell_command"], "tools": {"core": ["run_shell_command(git)"]}}"#,
            &["git log"],
            &["ls"],
        ),
        (
            r#"{"coreTools": ["run_shell_command(ls)"], "tools": {"core": ["ShellTool(git)"]}}"#,
            &[],
            &["git log", "ls"],
        ),
    ]);
}

#[test]
fn comments_and_trailing_commas_are_read_and_what_is_none_of_our_business_is_not() {
    let text = "\u{feff}// mine\n{\n  /* what may run */ \"tools\": {\n    \"core\": [\n      \
                \"run_shell_command(git)\", // only this\n    ],\n    \"sandbox\": \"docker\",\n    \
                \"sandboxAllowedPaths\": [\"/tmp\"],\n    \"shell\": {\"pager\": \"cat\"},\n  },\n  \
                \"mcpServers\": {\"x\": {\"command\": \"y\", \"excludeTools\": [\"z\"]}},\n  \
                \"mcp\": {\"excluded\": [\"x\"]}, \"allowMCPServers\": [\"x\"], \"hooks\": {},\n  \
                \"hideBanner\": true, \"disableAutoUpdate\": true, \"toolCallCommand\": \"z\",\n  \
                \"security\": {\"blockGitExtensions\": true}, \"excludedProjectEnvVars\": [\"A\"],\n}\n";
    judge(&[(text, &["git log"], &["ls"])]);
}

#[test]
fn a_key_that_looks_like_a_rule_and_is_not_one_is_refused() {
    let top = [
        "core_tools",
        "coretools",
        "CoreTools",
        "coreTool",
        "core-tools",
        "excludedTools",
        "exclude_tools",
        "excludetools",
        "disabledTools",
        "blockedCommands",
        "allowedCommands",
        "denyCommands",
        "toolsExclude",
        "deny",
        "allow",
        "denylist",
        "permission",
        "tool",
        "restrictedShellCommands",
    ];
    let inner = [
        ("tools", "excluded"),
        ("tools", "deny"),
        ("tools", "blocked"),
        ("tools", "Core"),
        ("tools", "excludeTools"),
        ("tools", "allowlist"),
        ("tools", "exlude"),
        ("permissions", "denied"),
        ("permissions", "Deny"),
        ("permissions", "exclude"),
        ("permissions", "asks"),
    ];
    // Beside a rule that is understood: it is not the whole file that counts.
    let rule = r#""excludeTools": ["run_shell_command(dd)"]"#;
    for key in top {
        let text = format!(r#"{{{rule}, "{key}": ["run_shell_command(rm)"]}}"#);
        refuse(&[(&text, &[&format!("has `{key}`, which looks like a rule"), "`tools.core`"])]);
        let text = format!(r#"{{{rule}, "{key}": {{"x": 1}}}}"#);
        refuse(&[(&text, &[&format!("`{key}`")])]);
    }
    for (section, key) in inner {
        let text = format!(r#"{{{rule}, "{section}": {{"{key}": ["ls"]}}}}"#);
        refuse(&[(&text, &[&format!("has `{section}.{key}`, which looks like a rule")])]);
    }
    refuse(&[
        (
            r#"{"commands": ["run_shell_command(rm)"]}"#,
            &["has `commands`, which looks like a rule"],
        ),
        (r#"{"tools": {"no": ["ShellTool(rm)"]}}"#, &["has `tools.no`, which looks like a rule"]),
    ]);
}

#[test]
fn whole_files_of_both_programs_are_read() {
    judge(&[
        (
            include_str!("settings_file/qwen.json"),
            &["ls", "git log"],
            &["rm x", "git push", "dd if=x"],
        ),
        (include_str!("settings_file/gemini.json"), &["ls", "git log"], &["rm x", "git push"]),
    ]);
}

#[test]
fn a_rule_where_none_is_read_is_refused_at_any_depth() {
    for (text, key) in [
        (r#""security": {"excludeTools": ["run_shell_command(rm)"]}"#, "security.excludeTools"),
        (r#""security": {"blockedTools": ["rm"]}"#, "security.blockedTools"),
        (r#""ui": {"disabledTools": ["run_shell_command"]}"#, "ui.disabledTools"),
        (r#""general": {"tools": {"exclude": ["rm"]}}"#, "general.tools.exclude"),
        (r#""general": {"permissions": {"ask": ["rm"]}}"#, "general.permissions.ask"),
        (r#""tools": {"shell": {"exclude": ["rm"]}}"#, "tools.shell.exclude"),
        (r#""tools": {"shell": {"deny": "rm"}}"#, "tools.shell.deny"),
        (r#""tools": {"shell": {"disabled": true}}"#, "tools.shell.disabled"),
        (r#""forbidden": ["rm"]"#, "forbidden"),
        (r#""policyPaths": ["policies"]"#, "policyPaths"),
        (r#""disabled": ["rm"]"#, "disabled"),
        (r#""exclusions": ["rm"]"#, "exclusions"),
        (r#""security": {"denied": {"x": "rm"}}"#, "security.denied"),
        (r#""security": {"forbidden": "rm"}"#, "security.forbidden"),
        (r#""security": {"exludeTools": ["rm"]}"#, "security.exludeTools"),
        (r#""security": {"prohibitedCommands": ["rm"]}"#, "security.prohibitedCommands"),
        (r#""skills": {"blockedCommands": ["rm"]}"#, "skills.blockedCommands"),
        (r#""hooks": {"excludeTools": ["rm"]}"#, "hooks.excludeTools"),
        (r#""hooks": {"BeforeTool": [{"deny": ["rm"]}]}"#, "hooks.BeforeTool.deny"),
        (r#""a": [[{"b": {"c": ["Bash(rm *)"]}}]]"#, "a.b.c"),
        (r#""a": {"b": "run_shell_command(rm)"}"#, "a.b"),
        (r#""a": {"b": "run_shell_command"}"#, "a.b"),
        (r#""a": {"b": ["bash(rm)"]}"#, "a.b"),
        (r#""a": {"b": ["Shell"]}"#, "a.b"),
        (r#""a": {"ShellTool(rm)": "no"}"#, "a.ShellTool(rm)"),
        (r#""a": {"run_shell_command": false}"#, "a.run_shell_command"),
        (r#""env": {"RULE": "Bash(rm)"}"#, "env.RULE"),
        (r#""mcpServers": {"excludeTools": ["rm"]}"#, "mcpServers.excludeTools"),
        (
            r#""mcpServers": {"x": {"excludeTools": ["run_shell_command"]}}"#,
            "mcpServers.x.excludeTools",
        ),
        (r#""mcpServers": {"x": {"includeTools": ["Bash(git)"]}}"#, "mcpServers.x.includeTools"),
        (r#""mcpServers": {"x": {"blockedCommands": ["rm"]}}"#, "mcpServers.x.blockedCommands"),
    ] {
        let text = format!(r#"{{"excludeTools": ["run_shell_command(dd)"], {text}}}"#);
        let complaint = format!("has `{key}`, which looks like a rule");
        refuse(&[(&text, &[&complaint, "use `tools.core`"])]);
    }
}

#[test]
fn an_entry_that_is_not_understood_is_refused() {
    for entry in [
        "run_shell_command(git",
        "run_shell_command)",
        "run_shell_command()",
        "ShellTool( )",
        "run_shell_comand(rm)",
        "run_shell_comand",
        "runShellCommand(rm)",
        "nonsense(",
        "nonsense(rm)",
        "execute_command(rm)",
        "execute_command",
        "bash",
        "shell",
        "terminal",
        "",
    ] {
        for key in ["excludeTools", "coreTools"] {
            let text = json!({ key: ["run_shell_command(dd)", entry] }).to_string();
            let quoted = format!("in `{key}` that is not understood: {entry}; write it as");
            refuse(&[(&text, &[&quoted, "run_shell_command(COMMAND)"])]);
        }
    }
    for entry in ["5", "null", r#"["run_shell_command(rm)"]"#, r#"{"command": "rm"}"#] {
        let text = format!(r#"{{"excludeTools": ["run_shell_command(dd)", {entry}]}}"#);
        let quoted = format!("in `excludeTools` that is not understood: {entry}; write it as");
        refuse(&[(&text, &[&quoted])]);
    }
    for (entry, advice) in [
        ("run_shell_command(rm -rf \"/\")", "one command without quotes"),
        ("Bash(curl * | sh)", "one command without quotes"),
        ("run_shell_command(ls; rm)", "one command without quotes"),
        ("run_shell_command($TOOL)", "one command without quotes"),
        ("run_shell_command(rm,dd)", "one command without quotes"),
        ("Bash(git * main)", "use `*` only at the end"),
        ("Bash(* --force)", "use `*` only at the end"),
        ("Bash(rm -rf*)", "use `*` only at the end"),
    ] {
        let text = json!({"tools": {"exclude": [entry]}}).to_string();
        refuse(&[(&text, &["in `tools.exclude` that is not understood: ", entry, advice])]);
    }
}

#[test]
fn a_file_of_the_wrong_shape_or_without_a_rule_is_refused() {
    refuse(&[
        (r#"{"coreTools": "run_shell_command(git)"}"#, &["a list as its `coreTools`"]),
        (r#"{"excludeTools": {"run_shell_command": true}}"#, &["a list as its `excludeTools`"]),
        (r#"{"excludeTools": null}"#, &["a list as its `excludeTools`"]),
        (r#"{"tools": {"exclude": "rm"}}"#, &["a list as its `tools.exclude`"]),
        (r#"{"permissions": {"deny": 1}}"#, &["a list as its `permissions.deny`"]),
        (r#"{"tools": ["run_shell_command(git)"]}"#, &["an object as its `tools`"]),
        (r#"{"permissions": "deny"}"#, &["an object as its `permissions`"]),
        (
            r#"{"excludeTools": ["run_shell_command(rm)"], "excludeTools": []}"#,
            &["has `excludeTools` twice"],
        ),
        (r#"{"tools": {"core": []}, "tools": {}}"#, &["has `tools` twice"]),
        ("", &["restricts no command"]),
        ("[]", &["restricts no command"]),
        ("{}", &["restricts no command", "leave the file out"]),
        (r#"{"theme": "dark", "tools": {"sandbox": true}}"#, &["restricts no command"]),
        (r#"{"excludeTools": []}"#, &["restricts no command"]),
        (r#"{"excludeTools": ["write_file", "Edit(src/**)"]}"#, &["restricts no command"]),
        (r#"{"excludeTools": ["run_shell_command(rm)"]"#, &["is not valid JSON"]),
    ]);
}

#[test]
fn a_server_holds_to_the_file_and_does_not_start_on_one_that_protects_nobody() {
    let settings = Settings::new("{\"tools\": {\"exclude\": [\"ShellTool(rm)\"]}} // mine");
    let path = settings.path();
    let mut server = Server::start(&["--tools", "all", "--settings", path.to_str().unwrap()]);
    for (tool, arguments) in [
        ("execute_command", json!({"command": "ls; rm x"})),
        ("shell", json!({"command": "ls; rm x"})),
        ("run_shell_command", json!({"command": "ls; rm x", "is_background": false})),
    ] {
        let answer = server.tool(tool, arguments).to_string();
        assert!(answer.contains("denied by the rule `rm`"), "{tool}: {answer}");
    }
    std::fs::write(&path, r#"{"tools": {"excluded": ["run_shell_command(rm)"]}}"#).unwrap();
    let mut command = Command::new(MCPZ);
    command.args(["server", "shell", "--settings"]).arg(&path).stdin(Stdio::null());
    let output = command.env("XDG_CONFIG_HOME", "/nonexistent").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), &*output.stdout), (Some(1), &b""[..]));
    assert!(said.contains("has `tools.excluded`, which looks like a rule"), "{said}");
}
