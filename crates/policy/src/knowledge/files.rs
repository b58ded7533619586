//! Files that the request wrote, by their base names, and what it wrote into them.

use std::collections::{BTreeMap, BTreeSet};

use super::Knowledge;
use crate::names::Names;
use crate::paths::{Target, base_name};
use crate::script::Word;

/// Programs that change the content of no file among their arguments, but run one of them or the command in them.
const READERS: Names = Names(
    ". [ bash cat cd chmod command dash diff echo env exec file grep head ls mkdir nice node nohup \
     printf psql pwd python python3 rg rm sh sha256sum shellcheck sleep source stat tail test time timeout touch \
     unlink wc",
);

#[derive(Debug, Clone, Default)]
pub struct Files {
    /// The ones with a content that only the run will know, `None` for one whose name it will only know.
    unclear: BTreeSet<Option<String>>,
    /// The ones with known texts, each of which the file may have.
    texts: BTreeMap<String, BTreeSet<String>>,
    /// The ones that were run as programs.
    run: BTreeSet<Option<String>>,
}

impl Files {
    /// Whether one of them may have the name of an option.
    pub fn may_be_options(&self) -> bool {
        let odd = |name: &Option<String>| name.as_ref().is_none_or(|name| name.starts_with('-'));
        self.unclear.iter().any(odd) || self.texts.keys().any(|name| name.starts_with('-'))
    }

    fn is_unclear(&self, base: &str) -> bool {
        self.unclear.iter().any(|written| written.as_deref().is_none_or(|name| name == base))
    }
}

impl Knowledge {
    pub fn add_written_file(&mut self, file: &Word) {
        let name = base_of(file);
        self.has_changed |= self.files.unclear.insert(name.clone());
        self.may_have_run(&name);
    }

    /// Adds a file that contains this text and nothing else.
    pub fn add_written_text(&mut self, file: &Word, text: &str) {
        let Some(name) = base_of(file) else { return self.add_written_file(file) };
        let texts = self.files.texts.entry(name.clone()).or_default();
        self.has_changed |= texts.insert(text.to_owned());
        self.may_have_run(&Some(name));
    }

    /// Takes note of a command that may change the files it names.
    pub fn may_have_changed(&mut self, words: &[Word]) {
        let name = words[0].text().map(|name| base_name(&name).to_owned()).unwrap_or_default();
        if self.files.texts.is_empty() || self.files.texts.contains_key(&name) || READERS.has(&name)
        {
            return;
        }
        let may_be = |word: &Word, base: &str| word.literal().is_none_or(|it| it.contains(base));
        let mut names = Vec::from_iter(self.files.texts.keys().cloned());
        names.retain(|base| words[1..].iter().any(|word| may_be(word, base)));
        for base in names {
            self.has_changed |= self.files.unclear.insert(Some(base));
        }
    }

    /// Takes note of a file that is run as a program.
    pub fn add_run_file(&mut self, file: &Word) {
        self.files.run.insert(base_of(file));
    }

    /// A file that was run before it was written may still be running: `sh x & echo … > x`.
    fn may_have_run(&mut self, name: &Option<String>) {
        self.runs_out_of_order |= self.files.run.contains(name) || self.files.run.contains(&None);
    }

    /// Whether there may be a file or a link that only the request made.
    pub fn has_made_files(&self) -> bool {
        let keeps = |name: &Option<String>| name.as_deref() != Some("null");
        !self.links.is_empty()
            || !self.files.texts.is_empty()
            || self.files.unclear.iter().any(keeps)
    }

    /// Whether the request may have written this file.
    pub fn has_written(&self, path: &str) -> bool {
        let base = base_name(path);
        self.files.is_unclear(base) || self.files.texts.contains_key(base)
    }

    /// The texts that a file which the request wrote may have, if all of them are known.
    pub fn texts_of_file(&self, file: &Word) -> Vec<String> {
        let known = |base: &String| !self.files.is_unclear(base) && !self.is_link(file);
        let base = file.literal().and_then(|_| base_of(file)).filter(known);
        let texts = base.and_then(|base| self.files.texts.get(&base));
        texts.into_iter().flatten().cloned().collect()
    }

    /// Whether nobody knows what a program reads from this file: it is the program's input, or the request wrote it.
    pub fn has_unknown_content(&self, file: &Word) -> bool {
        file.text().is_none_or(|path| path == "-" || self.has_written(&path))
            || self.target(file) != Target::File
    }
}

fn base_of(file: &Word) -> Option<String> {
    file.text().map(|path| base_name(&path).to_owned())
}
