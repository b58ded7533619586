//! Runs the real tools on small projects, and looks at what is found in what they print. `tests/tools/run` installs
//! them and runs this. With `MCPZ_TEST_RECORD=1`, the outputs are also kept in `src`, for tests that run anywhere.
//!
//! The projects are in `tests/cases`: for each case a command, what has to be found, and the files.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;
use std::process::{Command, Stdio};

use mcpz_extract::{Hint, Kind, extract};
use serde_json::Value;

struct Case {
    name: String,
    command: String,
    cut: bool,
    want: Value,
    files: Vec<(String, String)>,
}

fn cases(text: &str) -> Vec<Case> {
    text.split("\n=== ").map(|case| read(case.strip_prefix("=== ").unwrap_or(case))).collect()
}

fn read(text: &str) -> Case {
    let mut parts = text.split("\n--- ");
    let head = parts.next().unwrap();
    let of = |prefix: &str| {
        head.lines().filter_map(|line| line.strip_prefix(prefix)).collect::<Vec<_>>().join("\n")
    };
    let file = |part: &str| {
        let (name, text) = part.split_once('\n').unwrap_or((part, ""));
        (
            name.to_owned(),
            if text.is_empty() || text.ends_with('\n') {
                text.to_owned()
            } else {
                format!("{text}\n")
            },
        )
    };
    Case {
        name: head.lines().next().unwrap().to_owned(),
        command: of("$ "),
        cut: head.lines().any(|line| line == "cut"),
        want: serde_json::from_str(&of("want "))
            .unwrap_or_else(|error| panic!("{error} in {head}")),
        files: parts.map(file).collect(),
    }
}

/// Whether `found` has all that is wanted: texts contain what is wanted, lists have such an element.
fn has(found: &Value, want: &Value) -> bool {
    match (found, want) {
        (Value::Object(found), Value::Object(want)) => {
            want.iter().all(|(name, want)| found.get(name).is_some_and(|found| has(found, want)))
        }
        (Value::Array(found), Value::Array(want)) => {
            want.iter().all(|want| found.iter().any(|found| has(found, want)))
                && (!want.is_empty() || found.is_empty())
        }
        (Value::String(found), Value::String(want)) => found.contains(want.as_str()),
        _ => found == want,
    }
}

fn check(kind: Kind, folder: &str, tool: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text =
        std::fs::read_to_string(root.join(format!("tests/cases/{folder}/{tool}.txt"))).unwrap();
    let tools = std::env::var("MCPZ_TEST_TOOLS").expect("tests/tools/run sets MCPZ_TEST_TOOLS");
    let mut wrong = Vec::new();
    for case in cases(&text) {
        let project = tempfile::Builder::new().prefix("project").tempdir().unwrap();
        for (name, text) in &case.files {
            let path = project.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        // Where vitest and eslint look for packages.
        if kind != Kind::Table {
            std::os::unix::fs::symlink(
                format!("{tools}/node_modules"),
                project.path().join("node_modules"),
            )
            .unwrap();
        }
        let ran = Command::new("bash")
            .args(["-c", &case.command])
            .current_dir(project.path())
            .env_remove("RUST_BACKTRACE")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let hint =
            Hint { command: Some(&case.command), exit_code: ran.status.code(), ended: !case.cut };
        assert_ne!(
            hint.exit_code,
            Some(127),
            "{tool} is not installed: {}",
            String::from_utf8_lossy(&ran.stderr)
        );
        let found = extract(kind, [&ran.stdout[..], &ran.stderr[..]], &hint, 20_000).unwrap();
        // What recognises nothing claims nothing.
        let refuses = case.want == serde_json::json!({ "complete": false });
        let fits = found.as_ref().map_or(refuses, |found| has(&found.value, &case.want));
        if !fits {
            wrong.push(format!(
                "{tool} {}: {found:#?}\nfrom {ran:?}\nwant {}",
                case.name, case.want
            ));
        }
        if std::env::var_os("MCPZ_TEST_RECORD").is_some() {
            let names = [(project.path().to_str().unwrap(), "/tmp/project"), (&tools, "/tools")];
            record(&root.join(format!("src/{folder}/{tool}")), &case, &ran, &names);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Keeps an output, with other names for the folders of this run.
fn record(folder: &Path, case: &Case, ran: &std::process::Output, names: &[(&str, &str)]) {
    std::fs::create_dir_all(folder).unwrap();
    let text = |bytes: &[u8]| {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let text = names.iter().fold(text, |text, (from, to)| {
            text.replace(from, to).replace(&format!("../..{from}"), to)
        });
        if text.is_empty() || text.ends_with('\n') { text } else { text + "\n" }
    };
    let code = ran.status.code().unwrap_or(-1);
    let cut = if case.cut { "cut\n" } else { "" };
    let (stdout, stderr) = (text(&ran.stdout), text(&ran.stderr));
    let all =
        format!("$ {}\nexit {code}\n{cut}--- stdout\n{stdout}--- stderr\n{stderr}", case.command);
    std::fs::write(folder.join(format!("{}.txt", case.name)), all).unwrap();
}

macro_rules! tools {
    ($($kind:ident $folder:literal: $($name:ident $tool:literal),+;)+) => {
        $($(
            #[test]
            fn $name() {
                check(Kind::$kind, $folder, $tool);
            }
        )+)+
    };
}

tools! {
    Tests "results": results_of_cargo_test "libtest", results_of_nextest "nextest", results_of_pytest "pytest",
        results_of_unittest "unittest", results_of_go_test "go", results_of_jest "jest", results_of_vitest "vitest",
        results_of_mocha "mocha", results_of_node "node", results_in_tap "tap", results_in_junit "junit",
        results_of_ctest "ctest";
    Diagnostics "diagnostics": diagnostics_of_rustc "rustc", diagnostics_of_c_compilers "gcc",
        diagnostics_of_typescript "tsc", diagnostics_of_eslint "eslint", diagnostics_of_go "go",
        diagnostics_of_python "python", diagnostics_of_javac "javac", diagnostics_of_shellcheck "shellcheck";
    Table "table": tables "columns";
}
