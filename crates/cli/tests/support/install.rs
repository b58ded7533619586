//! Clients, and the homes of people who have them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::MCPZ;

pub const URL: &str = "http://127.0.0.1:8000/mcp";

/// A client: its folder and file in a home, its file in a project, its table, and a file it may have.
pub struct Case {
    pub client: &'static str,
    pub folder: &'static str,
    pub file: &'static str,
    pub project: Option<&'static str>,
    pub table: &'static str,
    pub existing: &'static str,
}

pub const JSON: &str = "// of mine\n{\n    \"theme\": \"dark\",\n    \"TABLE\": {\n        // of other\n        \
     \"other\": {\"command\": \"x\", \"args\": [\"{\"]}\n    },\n    \"last\": [1, 2.50, null]\n}";

pub const CASES: &[Case] = &[
    Case {
        client: "claude-desktop",
        folder: ".config/Claude",
        file: ".config/Claude/claude_desktop_config.json",
        project: None,
        table: "mcpServers",
        existing: JSON,
    },
    Case {
        client: "claude-code",
        folder: ".claude",
        file: ".claude.json",
        project: Some(".mcp.json"),
        table: "mcpServers",
        existing: "{\n  \"numStartups\": 3,\n  \"mcpServers\": {},\n  \"projects\": {\"/a\": {\"mcpServers\": {}}}\n}\n",
    },
    Case {
        client: "codex",
        folder: ".codex",
        file: ".codex/config.toml",
        project: Some(".codex/config.toml"),
        table: "mcp_servers",
        existing: "# of mine\nmodel = \"m\" # the model\n\n[mcp_servers.other]\ncommand = \"x\"\nargs = [\n  \
                   \"y\", # why\n]\n\n[profiles.p]\nmodel = 'n'\n# [tail]",
    },
    Case {
        client: "cursor",
        folder: ".cursor",
        file: ".cursor/mcp.json",
        project: Some(".cursor/mcp.json"),
        table: "mcpServers",
        existing: JSON,
    },
    Case {
        client: "vscode",
        folder: ".config/Code",
        file: ".config/Code/User/mcp.json",
        project: Some(".vscode/mcp.json"),
        table: "servers",
        existing: "{\n\t\"inputs\": []\n}\n",
    },
    Case {
        client: "zed",
        folder: ".config/zed",
        file: ".config/zed/settings.json",
        project: Some(".zed/settings.json"),
        table: "context_servers",
        existing: JSON,
    },
    Case {
        client: "gemini",
        folder: ".gemini",
        file: ".gemini/settings.json",
        project: Some(".gemini/settings.json"),
        table: "mcpServers",
        existing: "{\"ui\": {\"theme\": \"x\"}, \"mcpServers\": {\"other\": {\"httpUrl\": \"http://x\"}}}",
    },
    Case {
        client: "qwen",
        folder: ".qwen",
        file: ".qwen/settings.json",
        project: Some(".qwen/settings.json"),
        table: "mcpServers",
        existing: "{\r\n  \"a\": 1,\r\n  \"mcpServers\": {\r\n    \"other\": {}\r\n  }\r\n}\r\n",
    },
    Case {
        client: "goose",
        folder: ".config/goose",
        file: ".config/goose/config.yaml",
        project: None,
        table: "extensions",
        existing: "# of mine\nGOOSE_MODEL: m # the model\nextensions: # all\n    # of developer\n    developer:\n        \
                   enabled: true\n        args:\n        - a\n# of last\nlast: |\n  # text\n",
    },
];

/// Somebody's home, which has nothing of anybody else.
pub struct Home(pub TempDir);

impl Home {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// A home of somebody who has a client, with its file if there is one.
    pub fn with(case: &Case, text: Option<&str>) -> (Self, PathBuf) {
        let home = Self::new();
        let file = home.path(case.file);
        fs::create_dir_all(home.path(case.folder)).unwrap();
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        if let Some(text) = text {
            fs::write(&file, text).unwrap();
        }
        (home, file)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// What it says, and its exit code.
    pub fn install(&self, arguments: &[&str]) -> (String, i32) {
        // No client is found there.
        let programs = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/usr/bin/bwrap", programs.path().join("bwrap")).unwrap();
        let output = Command::new(MCPZ)
            .arg("install")
            .args(arguments)
            .env_clear()
            .env("HOME", self.0.path())
            .env("PATH", programs.path())
            .current_dir(self.0.path())
            .output()
            .unwrap();
        let said = [output.stdout, output.stderr].concat();
        (String::from_utf8(said).unwrap(), output.status.code().unwrap())
    }

    pub fn installed(&self, arguments: &[&str]) -> String {
        let (said, code) = self.install(arguments);
        assert_eq!(code, 0, "{arguments:?}: {said}");
        said
    }

    pub fn files(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.0.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                match entry.is_dir() {
                    true => folders.push(entry),
                    false => found.push(entry),
                }
            }
        }
        found
    }
}

/// A file as somebody else's parser reads it. Lines that are remarks are taken out of JSON first.
pub fn parsed(file: &Path) -> Value {
    let text = read(file);
    let program = match file.extension().unwrap().to_str().unwrap() {
        "toml" => {
            "import sys, json, tomllib; json.dump(tomllib.loads(sys.stdin.read()), sys.stdout)"
        }
        _ => "import sys, json; json.dump(json.load(sys.stdin), sys.stdout)",
    };
    let plain = |line: &&str| !line.trim_start().starts_with("//");
    let text: String = text.split_inclusive('\n').filter(plain).collect();
    let mut child = Command::new("python3")
        .args(["-c", program])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{text}");
    serde_json::from_slice(&output.stdout).unwrap()
}

pub fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap()
}

pub fn backup(file: &Path) -> PathBuf {
    PathBuf::from(format!("{}.mcpz-backup", file.display()))
}

pub fn existing(case: &Case) -> String {
    case.existing.replace("TABLE", case.table)
}

pub fn case(client: &str) -> &'static Case {
    CASES.iter().find(|case| case.client == client).unwrap()
}

/// What a client's file says of a server it starts.
pub fn entry(client: &str, args: &[&str]) -> Value {
    let args = [&["server", "shell"], args].concat();
    match client {
        "claude-code" | "cursor" | "vscode" => {
            json!({"type": "stdio", "command": MCPZ, "args": args})
        }
        _ => json!({"command": MCPZ, "args": args}),
    }
}
