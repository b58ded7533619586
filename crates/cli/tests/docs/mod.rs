//! The project's pages: what blocks, headings and links they have.
//!
//! A fenced block says by its first line what it is:
//!
//! - `console`: commands behind `$`, each followed by what it prints. A page's commands are run from top
//!   to bottom, in one shell, by somebody who is at home in `/home/me`.
//! - `toml`: the configuration file, for all that follows on the page.
//! - `verdicts`: commands, each behind what `mcpz check` says of it.
//! - `mcp`: calls of tools, each followed by its answer.
//! - `sh`, `nginx`, `yaml`: what cannot be run here.
//!
//! In all of them `…` stands for what is left out, or differs from one time to the next: for any text
//! within a line and, alone on a line, for any number of lines. In what is typed or sent, a word with `…`
//! is one that was printed or answered before.

pub mod console;
pub mod matching;
pub mod tools;
pub mod transcript;

use std::path::{Path, PathBuf};

/// Where the project is.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A page that is read.
pub struct Page {
    pub path: PathBuf,
    pub blocks: Vec<Block>,
    pub headings: Vec<String>,
    pub links: Vec<String>,
}

/// A fenced part of a page.
pub struct Block {
    /// What it is said to be.
    pub kind: String,
    /// The line it begins on.
    pub line: usize,
    pub text: String,
}

impl Page {
    pub fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap();
        let (mut blocks, mut headings, mut prose) = (Vec::new(), Vec::new(), String::new());
        let mut open: Option<Block> = None;
        for (line, text) in (1..).zip(text.lines()) {
            match (text.strip_prefix("```"), &mut open) {
                (Some(_), Some(_)) => blocks.extend(open.take()),
                (Some(kind), None) => {
                    open = Some(Block { kind: kind.to_owned(), line, text: String::new() });
                }
                (None, Some(block)) => block.text += &format!("{text}\n"),
                (None, None) => {
                    let heading = text.trim_start_matches('#').strip_prefix(' ');
                    headings.extend(heading.filter(|_| text.starts_with('#')).map(str::to_owned));
                    prose += &format!("{text}\n");
                }
            }
        }
        assert!(open.is_none(), "{} has a block without an end", path.display());
        Self { path: path.to_owned(), blocks, headings, links: links(&prose) }
    }

    /// What a link can be to, behind its `#`.
    pub fn anchors(&self) -> Vec<String> {
        self.headings.iter().map(|heading| anchor(heading)).collect()
    }
}

/// Where the links of a text lead, but for what is in code.
fn links(text: &str) -> Vec<String> {
    let prose: String = text.split('`').step_by(2).collect::<Vec<_>>().join("`");
    let targets = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.map(str::to_owned).collect()
}

/// What a heading is called in a link.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|it| it.is_alphanumeric() || matches!(it, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|it| if it == ' ' { '-' } else { it }).collect()
}

/// Every page of the project.
pub fn all() -> Vec<Page> {
    let mut pages = Vec::new();
    collect(&root(), &mut pages);
    pages.sort();
    pages.iter().map(|path| Page::read(path)).collect()
}

fn collect(folder: &Path, pages: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
        let others = ["target", "node_modules", "dist"].contains(&name.as_str());
        if path.is_dir() && !others && !name.starts_with('.') {
            collect(&path, pages);
        } else if name.ends_with(".md") {
            pages.push(path);
        }
    }
}

/// Those that people are to follow.
pub fn manual() -> Vec<Page> {
    let root = root();
    let ours = |page: &Page| {
        page.path.starts_with(root.join("docs")) || page.path == root.join("README.md")
    };
    all().into_iter().filter(ours).collect()
}
