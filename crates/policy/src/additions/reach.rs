//! Where a rule holds for a program that can run anything.
//!
//! A rule such as `make test` means the makefile of the project, or one of a folder in it. A rule that names a file or
//! a module means that one, and in another folder the same words name another.

use super::operands::is_test_file;
use super::row::{Kind, Operands};
use super::table::row;
use super::{Arguments, CHECKS, matter_to};
use crate::identity;
use crate::names::Names;
use crate::opened;
use crate::programs;

/// With how many steps a path may be followed. A file with more is taken for one elsewhere.
const MOST_STEPS: usize = 64;

/// The directories in which a rule holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    Anywhere,
    /// The one where the rules begin.
    Here,
    /// That one, and those below it.
    Below,
}

/// Modules of Python that run the code of the directory in any case. Others may import it by accident.
const TOOLS: Names = Names("pytest unittest pip build tox nox");

/// Programs that run scripts from the folder of the project, which may be above the directory.
const SCRIPTS: Names = Names("npm pnpm yarn bun");

/// Programs whose operand is a file or class in the directory.
const CLASSES: Names = Names("java jshell kotlin scala groovy dart expect gdb lldb unittest");

/// Programs that take lists of files and folders, with a `:` between them.
const CLASS_PATHS: Names = Names("java javac jshell kotlin kotlinc scala scalac groovy");

/// Where a call holds that a rule allows.
pub fn reach(program: &str, given: Arguments<'_, '_>) -> Reach {
    let program = identity::program(program);
    let named = || (0..given.words.len()).filter(|at| given.names(*at));
    let text = |at: usize| given.text(at).unwrap_or_default();
    let inner = named().find(|at| matter_to(&text(*at)));
    let is_interpreter = programs::is_interpreter(program);
    let is_here = match () {
        () if named().all(|at| programs::is_information(program, &text(at)))
            && named().next().is_some() =>
        {
            false
        }
        () if is_interpreter => {
            let runs_module = |at: usize| {
                let (_, name) = opened::in_letters(program, &text(at)).filter(|it| it.0 == 'm')?;
                Some(if name.is_empty() {
                    (text(at + 1).into_owned(), at + 2)
                } else {
                    (name, at + 1)
                })
            };
            match named().find_map(runs_module) {
                Some((module, after)) if TOOLS.has(&module) => {
                    let all_before = named()
                        .take_while(|at| *at < after)
                        .all(|at| text(at).starts_with('-') || text(at) == module);
                    return if all_before {
                        reach(&module, given.after(after))
                    } else {
                        Reach::Here
                    };
                }
                Some(_) => true,
                None => !named().all(|at| CHECKS.has(&text(at)) && text(at) == "--test"),
            }
        }
        () => {
            let inner_at = inner.unwrap_or(given.words.len());
            named().take_while(|at| *at < inner_at).any(|at| !is_plain(program, given, at))
        }
    };
    // It looks for files from the folder of the project, wherever that is.
    let names_test =
        || (0..given.words.len()).any(|at| !given.names(at) && is_test_file(&text(at)));
    match inner {
        _ if is_here => Reach::Here,
        _ if SCRIPTS.has(program) && names_test() => Reach::Here,
        Some(at) if !is_interpreter => reach(&text(at), given.after(at + 1)),
        _ => Reach::Below,
    }
}

/// The same for a shell: a script that the rule names is another one in another directory.
pub fn reach_of_shell(shell: &str, given: Arguments<'_, '_>) -> Reach {
    let shell = identity::program(shell);
    let texts = (0..given.words.len()).filter(|at| given.names(*at)).map(|at| given.text(at));
    let texts: Vec<_> = texts.map(Option::unwrap_or_default).collect();
    let is_inline = |text: &str| programs::is_inline_option(shell, text);
    let is_here = |text: &str| !text.starts_with(['-', '+', '/', '~']);
    match !texts.iter().any(|it| is_inline(it)) && texts.iter().any(|it| is_here(it)) {
        true => Reach::Here,
        false => Reach::Anywhere,
    }
}

/// What a call names besides the rule.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct AddedPlaces {
    /// Directories, or files in them, from which the program works, each perhaps from the one before.
    pub folders: Vec<String>,
    pub files: Vec<String>,
    /// Files that a `*` of the rule stands for in a path that may lead out, and the folder before it.
    pub below: Vec<(String, String)>,
}

/// The directories and files that a call names besides the rule, and from which the program works.
pub fn added_places(program: &str, given: Arguments<'_, '_>) -> AddedPlaces {
    let program = identity::program(program);
    let row = row(program);
    let text = |at: usize| given.text(at).unwrap_or_default().into_owned();
    let mut added = AddedPlaces::default();
    for at in (0..given.words.len()).filter(|at| !given.names(*at)) {
        let word = text(at);
        match row.option(&word) {
            Kind::Place => added.folders.push(text(at + 1)),
            Kind::PlaceIn => {
                added.folders.extend(word.split_once('=').map(|(_, value)| value.to_owned()));
            }
            _ if row.operands == Operands::Tests && !word.starts_with('-') => {
                added.files.extend(files_of(program, &word))
            }
            // The table allows it in any directory, but not by a link out of there.
            _ => {
                let value = word.split_once('=').filter(|_| word.starts_with('-'));
                let path = value.map_or(&*word, |(_, value)| value);
                // As Bazel names a folder of the project.
                let path = path.strip_prefix("//").unwrap_or(path);
                if CLASS_PATHS.has(program) {
                    let parts = path.split(':').filter(|part| !part.is_empty());
                    added.files.extend(parts.flat_map(classes_of));
                } else if is_relative(path) {
                    added.files.extend(files_of(program, path));
                }
            }
        }
    }
    added
}

fn is_relative(word: &str) -> bool {
    !word.starts_with(['-', '/']) && !leaves(word)
}

fn leaves(path: &str) -> bool {
    path.split('/').any(|step| step == "..")
}

/// The files and folders that a part of a class path may mean: `libs/*` is every archive in `libs`, and `app.Main` may
/// be a class.
fn classes_of(part: &str) -> [String; 2] {
    let (folder, class) = (part.strip_suffix("/*"), part.replace('.', "/"));
    [folder.unwrap_or(part).to_owned(), format!("{class}.class")]
}

/// The files that a word may mean: `t.py::name`, `t.rb:12` and `t.rb[1:1]` are parts of one, `tests.t.Name` may be the
/// module of one, and `example.com/app/part` is the folder `part` in the module of Go that is called `example.com/app`.
fn files_of(program: &str, word: &str) -> Vec<String> {
    if word.split(['.', '/']).count() > MOST_STEPS {
        return vec!["/".to_owned()];
    }
    let ends = [word.find("::"), word.find('['), word.find(':')];
    let parts = ends.into_iter().flatten().map(|end| word[..end].to_owned());
    let is_module = word
        .split('.')
        .all(|part| !part.is_empty() && part.chars().all(|it| it.is_alphanumeric() || it == '_'));
    let dots = word.match_indices('.').map(|(at, _)| at).chain([word.len()]);
    let modules = dots.filter(|_| is_module).map(|end| {
        let path = word[..end].replace('.', "/");
        [format!("{path}.py"), path]
    });
    let package = word.split(':').next().filter(|it| it.contains('/') && !leaves(it));
    let package = package.filter(|_| program == "go");
    let package = package.map(|it| it.strip_suffix("...").unwrap_or(it));
    let steps = package.into_iter().flat_map(|it| it.split('/'));
    let steps: Vec<_> = steps.filter(|step| !matches!(*step, "" | ".")).collect();
    let folders = (0..steps.len()).map(move |first| steps[first..].join("/"));
    let files = [word.to_owned()].into_iter().chain(parts).chain(modules.flatten()).chain(folders);
    files.filter(|file| !file.is_empty()).collect()
}

/// Whether a word of the rule means the same in every directory, or what the directory makes of it: a sub-command, a
/// goal, an option without a value.
fn is_plain(program: &str, given: Arguments<'_, '_>, at: usize) -> bool {
    const ANY_PACKAGE: Names = Names(". ./... //...");
    let row = row(program);
    let text = given.text(at).unwrap_or_default();
    let next = given.text(at + 1).filter(|_| given.names(at + 1));
    let has_value = next.is_some_and(|next| !next.starts_with('-'));
    match text.strip_prefix('-') {
        Some(_) if matches!(row.option(&text), Kind::Flag) && !text.contains('=') => true,
        // Its letters may be a value.
        Some(letters) if !text.starts_with("--") && letters.chars().count() > 1 => false,
        Some(_) => !has_value && !text.contains('='),
        None if CLASSES.has(program) => false,
        None if matches!(row.operands, Operands::Tests | Operands::TestNames) => false,
        None => ANY_PACKAGE.has(&text) || !is_file(&text),
    }
}

/// Whether it may be the path of a file, or a module.
fn is_file(text: &str) -> bool {
    let ends_like_file = text.rsplit_once('.').is_some_and(|(_, end)| {
        end.starts_with(|first: char| first.is_alphabetic() || first == '*')
    });
    text.starts_with('.') || text.contains('/') && !text.starts_with('/') || ends_like_file
}
