//! Commands whose outputs are read: real tools in small projects that are written for them.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::find;

/// A command, and what an answer must not lose of its output.
pub struct Sample {
    pub name: &'static str,
    tool: &'static str,
    pub command: String,
    pub folder: PathBuf,
    /// The kinds of data that are in the output.
    pub extractions: &'static [&'static str],
    /// Names, and lines that tell of errors.
    names: Vec<String>,
    errors: Vec<String>,
}

/// What programs take for a sign that an agent reads their output, or nobody.
const SIGNS: &[&str] = &["AI_AGENT", "AGENT", "CLAUDECODE", "CI", "NO_COLOR", "GIT_PAGER", "PAGER"];

/// Names of tests that fail.
const FAILING: [&str; 3] =
    ["rounds_halves_to_even", "rejects_an_empty_name", "keeps_the_order_of_keys"];

/// All samples, with so many tests, lines and files in them.
pub fn samples(folder: &Path, cases: usize) -> Vec<Sample> {
    let builders = [
        cargo_test,
        cargo_build,
        pytest,
        go_test,
        vitest,
        gcc,
        noisy_log,
        list,
        processes,
        git_log,
    ];
    builders.iter().map(|build| build(folder, cases)).collect()
}

/// Removes from a command's environment what makes programs print less.
pub fn forget_agents(command: &mut Command) {
    for sign in SIGNS {
        command.env_remove(sign);
    }
}

impl Sample {
    fn new(name: &'static str, tool: &'static str, command: &str, folder: PathBuf) -> Self {
        fs::create_dir_all(&folder).expect("there is room for files");
        let (names, errors) = (Vec::new(), Vec::new());
        Self { name, tool, command: command.to_owned(), folder, extractions: &[], names, errors }
    }

    fn file(self, name: &str, text: &str) -> Self {
        let path = self.folder.join(name);
        fs::create_dir_all(path.parent().expect("it is below the folder")).expect("there is room");
        fs::write(path, text).expect("there is room for files");
        self
    }

    fn extractions(self, extractions: &'static [&'static str]) -> Self {
        Self { extractions, ..self }
    }

    /// What every short form has to have.
    fn names<T: Into<String>>(self, names: impl IntoIterator<Item = T>) -> Self {
        Self { names: names.into_iter().map(Into::into).collect(), ..self }
    }

    /// What every view has to have.
    fn errors<T: Into<String>>(self, errors: impl IntoIterator<Item = T>) -> Self {
        Self { errors: errors.into_iter().map(Into::into).collect(), ..self }
    }

    /// Whether the tool is installed.
    pub fn is_there(&self) -> bool {
        find(self.tool).is_some()
    }

    pub fn facts(&self) -> usize {
        self.names.len() + self.errors.len()
    }

    /// The facts that a form promises to keep.
    pub fn facts_in(&self, form: &str) -> impl Iterator<Item = &str> {
        let names = !matches!(form, "json" | "changes");
        let errors = matches!(form, "default" | "full" | "folded" | "errors");
        let names = self.names.iter().filter(move |_| names);
        names.chain(self.errors.iter().filter(move |_| errors)).map(String::as_str)
    }

    /// The command as a person would run it, with nobody but a person to read it.
    pub fn shell_command(&self) -> String {
        let folder = self.folder.display();
        format!("unset {}; cd '{folder}' && {}", SIGNS.join(" "), self.command)
    }
}

/// Some text for each number up to a count.
fn repeated(count: usize, text: impl Fn(usize) -> String) -> String {
    (0..count).map(text).collect()
}

fn cargo_test(folder: &Path, cases: usize) -> Sample {
    let mut source = repeated(cases, |n| {
        format!("#[test]\nfn adds_{n}() {{ assert_eq!({n} + 1, {}); }}\n", n + 1)
    });
    for (n, name) in FAILING.iter().enumerate() {
        let _ =
            writeln!(source, "#[test]\nfn {name}() {{ assert_eq!({n}, 7, \"{name} is wrong\"); }}");
    }
    let manifest = "[package]\nname = \"sample\"\nedition = \"2021\"\n[workspace]\n";
    Sample::new("`cargo test`", "cargo", "cargo test --offline", folder.join("cargo-test"))
        .file("Cargo.toml", manifest)
        .file("src/lib.rs", &source)
        .extractions(&["tests"])
        .names(FAILING)
        .errors(FAILING.map(|name| format!("{name} is wrong")))
}

fn cargo_build(folder: &Path, cases: usize) -> Sample {
    let unused =
        repeated(cases / 10, |n| format!("pub fn part_{n}() {{ let unused_{n} = {n}; }}\n"));
    let wrong = "pub fn name() -> String { 5 }\npub fn other() { missing_function(); }\n";
    let manifest = "[package]\nname = \"sample\"\nedition = \"2021\"\n[workspace]\n";
    let command = "cargo build --offline --message-format json";
    Sample::new("`cargo build`, JSON", "cargo", command, folder.join("cargo-build"))
        .file("Cargo.toml", manifest)
        .file("src/lib.rs", &(unused + wrong))
        .extractions(&["diagnostics", "json"])
        .names(["mismatched types", "cannot find function `missing_function`"])
}

fn pytest(folder: &Path, cases: usize) -> Sample {
    let mut source = "import pytest\n\n".to_owned();
    let _ = writeln!(
        source,
        "@pytest.mark.parametrize(\"n\", range({cases}))\ndef test_adds(n):\n    assert n + 1 > n\n"
    );
    for (n, name) in FAILING.iter().enumerate() {
        let _ = writeln!(source, "def test_{name}():\n    assert {n} == 7, \"{name} is wrong\"\n");
    }
    Sample::new("`pytest -v`", "pytest", "pytest -v", folder.join("pytest"))
        .file("test_sample.py", &source)
        .extractions(&["tests"])
        .names(FAILING)
        .errors(FAILING.map(|name| format!("{name} is wrong")))
}

fn go_test(folder: &Path, cases: usize) -> Sample {
    let mut source = "package sample\n\nimport \"testing\"\n\n".to_owned();
    source += &repeated(cases, |n| format!("func TestAdds{n}(t *testing.T) {{}}\n"));
    for name in FAILING {
        let _ =
            writeln!(source, "func Test_{name}(t *testing.T) {{ t.Error(\"{name} is wrong\") }}");
    }
    Sample::new("`go test -v`", "go", "go test -v ./...", folder.join("go"))
        .file("go.mod", "module sample\n\ngo 1.19\n")
        .file("sample_test.go", &source)
        .extractions(&["tests"])
        .names(FAILING)
        .errors(FAILING.map(|name| format!("{name} is wrong")))
}

fn vitest(folder: &Path, cases: usize) -> Sample {
    let mut source = "import { expect, test } from \"vitest\";\n".to_owned();
    source += &repeated(cases, |n| {
        format!("test(\"adds {n}\", () => expect({n} + 1).toBe({}));\n", n + 1)
    });
    for (n, name) in FAILING.iter().enumerate() {
        let _ =
            writeln!(source, "test(\"{name}\", () => expect({n}, \"{name} is wrong\").toBe(7));");
    }
    let folder = folder.join("vitest");
    let sample = Sample::new("`vitest run`", "vitest", "vitest run --reporter verbose", folder)
        .file("package.json", "{\"type\": \"module\"}\n")
        .file("sample.test.js", &source)
        .extractions(&["tests"])
        .names(FAILING)
        .errors(FAILING.map(|name| format!("{name} is wrong")));
    // It is imported from a folder of packages above the tests.
    let program = find("vitest").and_then(|path| path.canonicalize().ok());
    let packages =
        program.as_ref().and_then(|path| path.ancestors().find(|it| it.ends_with("node_modules")));
    if let Some(packages) = packages {
        let link = sample.folder.join("node_modules");
        std::os::unix::fs::symlink(packages, link).expect("there is room for files");
    }
    sample
}

fn gcc(folder: &Path, cases: usize) -> Sample {
    let mut source = "#include <stdio.h>\n".to_owned();
    source +=
        &repeated(cases / 4, |n| format!("int part_{n}(int x) {{ int unused_{n}; return x; }}\n"));
    source +=
        "int total(void) { return missing_name; }\nint main(void) { struct absent it; return 0 }\n";
    Sample::new("`gcc -Wall`", "gcc", "gcc -Wall -c main.c", folder.join("gcc"))
        .file("main.c", &source)
        .extractions(&["diagnostics"])
        .names(["‘missing_name’ undeclared", "storage size of ‘it’", "expected ‘;’ before"])
}

fn noisy_log(folder: &Path, cases: usize) -> Sample {
    let line = |n: usize| {
        let (minute, second) = (n / 60 % 60, n % 60);
        format!(
            "2026-11-18T10:{minute:02}:{second:02}.{:03}Z INFO [worker-{}] request {} served in {} ms\n",
            n * 37 % 1000,
            n % 8,
            40_000 + n,
            3 + n * 17 % 90
        )
    };
    let error =
        "2026-11-18T10:03:21.512Z ERROR [worker-3] request lost: connection to db-2 refused";
    let half = cases / 2;
    let log = repeated(half, line) + error + "\n" + &repeated(cases - half, |n| line(half + n));
    Sample::new("a log with an error", "cat", "cat server.log", folder.join("log"))
        .file("server.log", &log)
        .errors([error])
}

fn list(folder: &Path, cases: usize) -> Sample {
    let names: Vec<_> = (0..cases / 4).map(|n| format!("invoice-{}.pdf", 2000 + 13 * n)).collect();
    let sample = Sample::new("`ls -l`", "ls", "ls -l", folder.join("list")).file("README", "\n");
    let sample = names.iter().fold(sample, |sample, name| sample.file(name, name));
    sample.extractions(&["table"])
}

fn processes(folder: &Path, _: usize) -> Sample {
    Sample::new("`ps aux`", "ps", "ps aux", folder.join("processes")).extractions(&["table"])
}

fn git_log(folder: &Path, cases: usize) -> Sample {
    let sample = Sample::new("`git log`", "git", "git log", folder.join("git"));
    let subjects = [
        "Fix the rounding of totals",
        "Read settings once",
        "Say which file is missing",
        "Update the manual",
    ];
    let mut import = String::new();
    for n in 0..cases / 10 {
        let subject = format!("{} ({n})", subjects[n % subjects.len()]);
        let _ = write!(
            import,
            "commit refs/heads/main\ncommitter Ada Example <ada@example.org> {} +0000\ndata {}\n{subject}\n",
            1_790_000_000 + n * 5000,
            subject.len(),
        );
    }
    if sample.is_there() {
        let sample = sample.file("import", &import);
        let import = "git init -q -b main && git fast-import --quiet <import && rm import";
        let folder = &sample.folder;
        let done = Command::new("sh").args(["-c", import]).current_dir(folder).status();
        assert!(done.is_ok_and(|status| status.success()), "git imports commits");
        return sample;
    }
    sample
}
