//! The name of a command, and whether an allow rule means the program that it leads to.
//!
//! A path is compared part by part with that of a rule, after both have become absolute: a rule such as `./gradlew`
//! begins where the request begins, and the command wherever a `cd` may have led. A path that a link could lead astray
//! matches no rule.

use std::borrow::Cow;
use std::cell::OnceCell;

use crate::identity;
use crate::names::Names;
use crate::paths::{ProgramPaths, base_name};
use crate::pattern::glob;
use crate::script::Word;

/// A command's name, prepared once for all rules.
pub struct CommandName {
    literal: Option<String>,
    pub(super) base: String,
    /// Everything that its base name stands for.
    names: OnceCell<Vec<String>>,
    /// Where it may be, if it is a path and that is known.
    paths: Option<ProgramPaths>,
}

/// Folders of the system, whose programs are what their names say.
const SYSTEM: Names = Names("/bin/ /usr/bin/ /usr/local/bin/ /sbin/ /usr/sbin/ /usr/local/sbin/");

/// Builtins that change what the shell does later. A pattern such as `e*` does not allow them.
const CHANGE_SHELL: Names = Names(
    ". alias bind builtin complete declare enable eval exec export fc hash local mapfile \
     readonly set shopt source trap typeset unalias unset",
);

impl CommandName {
    pub fn of(words: &[Word]) -> Self {
        let literal = words.first().and_then(Word::literal).map(Cow::into_owned);
        let base = literal.as_deref().map(base_name).unwrap_or_default().to_lowercase();
        Self { literal, base, names: OnceCell::new(), paths: None }
    }

    /// The same with the places where the program may be.
    pub fn at(self, paths: Option<ProgramPaths>) -> Self {
        Self { paths, ..self }
    }

    pub(super) fn names(&self) -> &[String] {
        self.names
            .get_or_init(|| identity::names(&self.base).into_iter().map(str::to_owned).collect())
    }

    /// The name, unless only the run will know it.
    pub fn known(&self) -> Option<&str> {
        self.literal.as_deref()
    }

    /// The files that it may be, if it is a relative path and they are known.
    pub fn files(&self) -> Option<Vec<String>> {
        let is_relative = self.known().is_some_and(|name| !name.starts_with('/'));
        self.paths.as_ref().filter(|_| is_relative).map(|paths| paths.files().to_vec())
    }

    /// Whether the name of an allow rule means it.
    pub(super) fn is_allowed_by(&self, pattern: &str) -> bool {
        let Some(name) = self.known() else { return false };
        if pattern == "*" {
            return true;
        }
        if pattern.contains('*') && CHANGE_SHELL.has(name) {
            return false;
        }
        match pattern.contains('/') {
            true => self.is_at(pattern),
            false => self.bare().is_some_and(|bare| glob(pattern, bare)),
        }
    }

    /// Whether it is a path that the path of a rule means.
    pub fn is_at(&self, pattern: &str) -> bool {
        self.paths.as_ref().is_some_and(|paths| paths.are_all(pattern))
    }

    /// The name alone, if it is not a path, or the path of a program of the system.
    fn bare(&self) -> Option<&str> {
        let name = self.known()?;
        if !name.contains('/') {
            return Some(name);
        }
        let system = SYSTEM.iter().find_map(|folder| name.strip_prefix(folder));
        Some(system.unwrap_or(name)).filter(|bare| !bare.contains('/'))
    }

    /// Whether a regular expression that matches the command's text matches its program: neither a blank in the name
    /// nor a folder on its path passes for something else. A path needs a rule that is about paths.
    pub(super) fn is_what_it_says(&self, about_paths: bool) -> bool {
        let Some(name) = self.known() else { return false };
        let is_direct = || self.paths.as_ref().is_some_and(ProgramPaths::are_as_written);
        !name.contains(char::is_whitespace)
            && (self.bare().is_some() || (about_paths && is_direct()))
    }
}
