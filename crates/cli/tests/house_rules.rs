//! Rules about the source itself, which nobody has to remember as they are checked here.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Where a file may name what others must not, and why.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("std::env", "cli/src/environment.rs", "is where the environment is read"),
    ("std::env", "cli/src/reference.rs", "has a test that can be told to write its page"),
    ("std::env", "agent/src/launcher.rs", "hands the environment of the agent on to commands"),
    ("std::env", "sandbox/src/seccomp.rs", "names the processor, not the environment"),
    ("/proc", "policy/src/paths.rs", "knows paths that scripts can name"),
    ("/proc", "cli/src/doctor.rs", "looks at settings of the kernel"),
    ("/proc", "cli/src/setup.rs", "names the program itself"),
];

/// A longer file holds more than one thing.
const MOST_LINES: usize = 500;
const MOST_COLUMNS: usize = 120;

/// How many names the engine may export.
const MOST_EXPORTED: usize = 47;

struct Source {
    /// From the folder of all crates.
    name: String,
    /// The crate, and the modules within it.
    module: Vec<String>,
    text: String,
}

impl Source {
    fn krate(&self) -> &str {
        &self.module[0]
    }

    /// The text without the tests at its end.
    fn untested(&self) -> &str {
        self.text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default()
    }

    /// The same without comments.
    fn code(&self) -> String {
        let lines =
            self.untested().lines().map(|line| line.split("// ").next().unwrap_or_default());
        lines.filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
    }
}

fn crates() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// All files of the crates that are built into the program.
fn sources() -> Vec<Source> {
    let mut sources = sources_and_tests();
    sources.retain(|source| {
        let parts = source.name.split('/');
        !parts.into_iter().any(|part| ["tests", "tests.rs", "bin"].contains(&part))
    });
    assert!(sources.len() > 200, "{} files", sources.len());
    sources
}

fn sources_and_tests() -> Vec<Source> {
    let mut sources = Vec::new();
    for krate in std::fs::read_dir(crates()).unwrap() {
        for folder in ["src", "tests"] {
            collect(&krate.as_ref().unwrap().path().join(folder), &mut sources);
        }
    }
    sources
}

fn collect(folder: &Path, sources: &mut Vec<Source>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.push(read(&path));
        }
    }
}

fn read(path: &Path) -> Source {
    let name = path.strip_prefix(crates()).unwrap().to_str().unwrap().to_owned();
    let parts = name.trim_end_matches(".rs").split('/').filter(|part| *part != "src");
    let module = parts.filter(|part| !["lib", "main"].contains(part)).map(str::to_owned).collect();
    Source { text: std::fs::read_to_string(path).unwrap(), name, module }
}

fn is_excepted(what: &str, file: &str) -> bool {
    EXCEPTIONS.iter().any(|(rule, excepted, _)| *rule == what && *excepted == file)
}

#[test]
fn only_one_file_reads_the_environment() {
    for source in &sources() {
        let reads = source.code().contains("std::env");
        assert!(!reads || is_excepted("std::env", &source.name), "{}", source.name);
    }
}

#[test]
fn only_the_agent_and_the_sandbox_look_into_proc() {
    for source in sources().iter().filter(|it| !["agent", "sandbox"].contains(&it.krate())) {
        let looks = source.code().contains("/proc");
        assert!(!looks || is_excepted("/proc", &source.name), "{}", source.name);
    }
}

#[test]
fn every_exception_is_needed() {
    let sources = sources();
    for (what, file, _) in EXCEPTIONS {
        let source = sources.iter().find(|source| source.name == *file);
        assert!(source.is_some_and(|source| source.code().contains(what)), "{what} in {file}");
    }
}

#[test]
fn files_are_short_and_begin_with_what_they_hold() {
    for source in sources_and_tests() {
        let lines = source.text.lines().count();
        assert!(lines <= MOST_LINES, "{} has {lines} lines", source.name);
    }
    for source in sources() {
        assert!(source.text.starts_with("//! "), "{} does not say what it holds", source.name);
        let long = source.untested().lines().position(|it| it.chars().count() > MOST_COLUMNS);
        assert_eq!(long, None, "a line of {} is too long", source.name);
    }
}

#[test]
fn the_engine_has_few_doors() {
    let sources = sources();
    let engine = sources.iter().find(|source| source.name == "engine/src/lib.rs").unwrap();
    let exported = used(&engine.code()).into_iter().filter(|(public, _)| *public).count();
    assert!((30..=MOST_EXPORTED).contains(&exported), "{exported} names");
}

#[test]
fn every_dependency_is_used() {
    let mut sources: BTreeMap<_, String> = BTreeMap::new();
    for source in sources_and_tests() {
        sources.entry(source.krate().to_owned()).or_default().push_str(&source.text);
    }
    for (krate, text) in sources {
        let manifest = crates().join(&krate).join("Cargo.toml");
        let manifest: toml::Table = std::fs::read_to_string(manifest).unwrap().parse().unwrap();
        for section in ["dependencies", "dev-dependencies"] {
            let names = manifest.get(section).and_then(|it| it.as_table()).into_iter().flatten();
            for (name, _) in names {
                let used = text.contains(&format!("{}::", name.replace('-', "_")));
                assert!(used, "{krate} does not use {name}");
            }
        }
    }
}

/// Modules with the same parent use each other in one direction, with all that is below them. A module may
/// use its parent, except the root of its crate, which is above all others.
#[test]
fn no_modules_use_each_other_in_a_circle() {
    let sources = sources();
    let modules: BTreeSet<_> = sources.iter().map(|source| source.module.clone()).collect();
    // Below each module, which of its children use which.
    let mut uses: BTreeMap<Vec<String>, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    let names = Names::new(&sources, &modules);
    for source in &sources {
        for path in paths(&source.code()) {
            let Some(used) = names.module(&source.module, &path) else { continue };
            let is_root = source.module.len() == 1 || path.len() == 1 || path[0] == "super";
            assert!(
                is_root || used.len() > 1,
                "{} uses {} of its lib.rs",
                source.name,
                path.join("::")
            );
            let pairs = source.module.iter().zip(&used);
            let shared = pairs.take_while(|(ours, theirs)| ours == theirs).count();
            if let (Some(ours), Some(theirs)) = (source.module.get(shared), used.get(shared)) {
                let siblings = uses.entry(source.module[..shared].to_vec()).or_default();
                siblings.entry(ours.clone()).or_default().insert(theirs.clone());
            }
        }
    }
    assert!(uses.len() > 20, "{}", uses.len());
    for (parent, siblings) in &uses {
        for start in siblings.keys() {
            let mut reached = BTreeSet::new();
            let mut next: Vec<_> = siblings[start].iter().collect();
            while let Some(module) = next.pop() {
                if reached.insert(module) {
                    next.extend(siblings.get(module).into_iter().flatten());
                }
            }
            assert!(!reached.contains(start), "{start} in {} uses itself", parent.join("::"));
        }
    }
}

/// What modules are called by others.
struct Names<'a> {
    modules: &'a BTreeSet<Vec<String>>,
    /// What a module passes on, by its name, and the path it has there.
    passed_on: BTreeMap<(Vec<String>, String), Vec<String>>,
}

impl<'a> Names<'a> {
    fn new(sources: &[Source], modules: &'a BTreeSet<Vec<String>>) -> Self {
        let mut passed_on = BTreeMap::new();
        for source in sources {
            for path in used(&source.code()).into_iter().filter(|(public, _)| *public) {
                let (_, path) = path;
                if let Some(name) = path.last() {
                    passed_on.insert((source.module.clone(), name.clone()), path.clone());
                }
            }
        }
        Self { modules, passed_on }
    }

    /// The module a path leads to, if it is in the same crate.
    fn module(&self, from: &[String], path: &[String]) -> Option<Vec<String>> {
        let mut rest = path.iter().peekable();
        let mut at = match rest.peek()?.as_str() {
            "crate" => from[..1].to_vec(),
            "super" | "self" => from.to_vec(),
            _ => {
                let child = [from, &path[..1]].concat();
                return self.modules.contains(&child).then(|| self.within(from.to_vec(), path));
            }
        };
        while let Some("crate" | "super" | "self") = rest.peek().map(|part| part.as_str()) {
            if rest.next().is_some_and(|part| part == "super") {
                at.pop();
            }
        }
        let rest: Vec<_> = rest.cloned().collect();
        Some(self.within(at, &rest))
    }

    fn within(&self, mut at: Vec<String>, rest: &[String]) -> Vec<String> {
        for name in rest {
            let child = [at.as_slice(), std::slice::from_ref(name)].concat();
            if self.modules.contains(&child) {
                at = child;
            } else if let Some(path) = self.passed_on.get(&(at.clone(), name.clone())) {
                return self.module(&at, path).unwrap_or(at);
            } else {
                break;
            }
        }
        at
    }
}

/// The paths in a text that may lead to other modules.
fn paths(code: &str) -> Vec<Vec<String>> {
    let mut paths: Vec<_> = used(code).into_iter().map(|(_, path)| path).collect();
    for root in ["crate::", "super::"] {
        for (at, _) in code.match_indices(root) {
            let inside = code[..at].ends_with(|c: char| c.is_alphanumeric() || "_:".contains(c));
            let end = code[at..].find(|c: char| !c.is_alphanumeric() && !"_:".contains(c));
            let path = &code[at..end.map_or(code.len(), |end| at + end)];
            if !inside {
                let parts = path.split("::").filter(|part| !part.is_empty());
                paths.push(parts.map(str::to_owned).collect());
            }
        }
    }
    paths
}

/// The paths of `use` lines, and whether they are passed on to others.
fn used(code: &str) -> Vec<(bool, Vec<String>)> {
    let mut all = Vec::new();
    for (at, _) in code.match_indices("use ") {
        let line = code[..at].rfind('\n').map_or(0, |at| at + 1);
        let before = code[line..at].trim();
        let tree = code[at + 4..].split(';').next().unwrap_or_default();
        if before.is_empty() || before.starts_with("pub") && !before.contains(' ') {
            let mut paths = Vec::new();
            expand(&[], tree, &mut paths);
            all.extend(paths.into_iter().map(|path| (!before.is_empty(), path)));
        }
    }
    all
}

/// The paths in a tree such as `a::{b, c::{d, e}}`.
fn expand(before: &[String], tree: &str, paths: &mut Vec<Vec<String>>) {
    let (own, inner) = match tree.split_once('{') {
        Some((own, inner)) => (own, inner.trim_end().strip_suffix('}')),
        None => (tree.split(" as ").next().unwrap_or_default(), None),
    };
    let own = own.split("::").map(str::trim).filter(|part| !part.is_empty());
    let path: Vec<_> = before.iter().cloned().chain(own.map(str::to_owned)).collect();
    let Some(inner) = inner else { return paths.push(path) };
    let (mut depth, mut start) = (0, 0);
    for (at, c) in inner.char_indices().chain([(inner.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let part = &inner[start..at];
                start = at + 1;
                if !part.trim().is_empty() {
                    expand(&path, part, paths);
                }
            }
            _ => {}
        }
    }
}
