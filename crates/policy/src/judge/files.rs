//! Judges the files that redirections and programs write.

use super::{Judge, Ruling};
use crate::denial::{Denial, Why};
use crate::script::{Redirect, RedirectKind, Span, Word};
use crate::traces::Traces;

impl Judge<'_> {
    /// Judges a redirection. `content` is what the file then contains, if that is known.
    pub(super) fn redirect(&mut self, redirect: &Redirect, content: Option<&str>) -> Ruling {
        let (word, writes) = match &redirect.kind {
            RedirectKind::Read(word) => (word, false),
            RedirectKind::Write(word) => (word, true),
            RedirectKind::Duplicate(word) => {
                (word, !is_descriptor(word) && !self.knowledge.is_descriptor(word))
            }
            RedirectKind::HereString(_) | RedirectKind::HereDocument(_) => return Ok(()),
        };
        let text = word.text().unwrap_or_default();
        let is_network =
            |text: &str| text.starts_with("/dev/tcp/") || text.starts_with("/dev/udp/");
        let texts = self.knowledge.texts(word).unwrap_or_default();
        if is_network(&word.prefix()) || texts.iter().any(|text| is_network(text)) {
            return Err(self.deny(redirect.span.clone(), Why::Network));
        }
        if let (RedirectKind::Duplicate(_), true) = (&redirect.kind, writes) {
            // Bash expands such a name twice.
            if text.contains(['$', '`']) {
                self.evaluate(&text, &word.span)?;
            } else if !self.knowledge.is_inert(word) {
                self.unresolved(word.span.clone(), "the name of a file that bash expands twice")?;
            }
        }
        if matches!(redirect.kind, RedirectKind::Duplicate(_))
            && self.knowledge.may_be_shells_descriptor(word)
        {
            self.unresolved(word.span.clone(), "a descriptor that the command did not open")?;
        }
        if !writes || word.is_pipe() {
            return Ok(());
        }
        match content.filter(|_| word.literal().is_some()) {
            Some(text) => self.knowledge.add_written_text(word, text),
            None => self.knowledge.add_written_file(word),
        }
        let folders = &self.policy.write_dirs;
        match folders.is_empty() || self.knowledge.is_within(word, folders) {
            true => Ok(()),
            false => Err(self.not_writable(redirect.span.clone(), word)),
        }
    }

    /// Judges a file that a program's arguments name as its output.
    pub(super) fn write(&mut self, word: &Word) -> Ruling {
        if word.is_pipe() {
            return Ok(());
        }
        self.knowledge.add_written_file(word);
        let folders = &self.policy.write_dirs;
        let inside = |word: &Word| self.knowledge.is_within(word, folders);
        match folders.is_empty() || word.alternatives().iter().all(inside) {
            true => Ok(()),
            false => Err(self.not_writable(word.span.clone(), word)),
        }
    }

    /// Judges a file that a program writes although that is not its purpose. With an allow list and no
    /// `write_dirs`, it may do so in the working directory.
    pub(super) fn write_aside(&mut self, word: &Word) -> Ruling {
        if self.policy.allow.is_empty() || !self.policy.write_dirs.is_empty() {
            return self.write(word);
        }
        self.knowledge.add_written_file(word);
        let here = [self.scene.directory.to_owned()];
        match self.knowledge.is_within(word, &here) {
            true => Ok(()),
            false => Err(self.not_writable(word.span.clone(), word)),
        }
    }

    /// Judges a file that a command takes away, if it is known where that is.
    pub(super) fn take(&self, word: &Word) -> Ruling {
        let folders = &self.policy.write_dirs;
        let is_fine = |word: &Word| {
            if word.literal().is_some() {
                return self.knowledge.is_within(word, folders);
            }
            // A pattern stays in the folder before it.
            let beginning = word.beginning();
            let folder = beginning.rsplit_once('/').map(|(folder, _)| format!("{folder}/"));
            folder.is_none_or(|folder| {
                self.knowledge.is_within(&Word::known(folder, word.span.clone()), folders)
            })
        };
        match folders.is_empty() || word.alternatives().iter().all(is_fine) {
            true => Ok(()),
            false => Err(self.not_writable(word.span.clone(), word)),
        }
    }

    /// Takes note of what a command copies with its links. Where it may write, links are as they were before.
    pub(super) fn copy_links(&mut self, sources: &[Word], made: &[Word]) {
        let folders = &self.policy.write_dirs;
        let inside = |word: &Word| self.knowledge.is_within(word, folders);
        if folders.is_empty() || sources.iter().all(inside) {
            return;
        }
        for file in made {
            // The files in a folder have names of their own.
            let text = file.text().unwrap_or_default();
            match text.rsplit('/').find(|part| !part.is_empty()) {
                None | Some("." | "..") => {
                    self.knowledge.add_link(&Word::unknown(false, file.span.clone()));
                }
                Some(_) => self.knowledge.add_link(file),
            }
        }
    }

    /// Judges the folder for temporary files, in which programs write without being told. The usual ones are harmless.
    pub(super) fn temporary_folder(&self, value: Option<&Word>, span: &Span) -> Ruling {
        let folders = &self.policy.write_dirs;
        let is_usual = |text: &str| ["", "/tmp", "/var/tmp"].contains(&text.trim_end_matches('/'));
        let is_fine = |word: &Word| {
            word.is_temporary()
                || word.text().is_some_and(|text| is_usual(&text))
                || self.knowledge.is_within(word, folders)
        };
        match value {
            _ if folders.is_empty() => Ok(()),
            Some(word) if is_fine(word) => Ok(()),
            Some(word) => Err(self.not_writable(span.clone(), word)),
            None => Err(self.deny(span.clone(), Why::Writes { path: None })),
        }
    }

    /// The files that the name of a program means wherever the command may run.
    pub(super) fn files(&self, name: Option<&str>) -> Vec<String> {
        name.map(|name| self.knowledge.directories.files(name)).unwrap_or_default()
    }

    /// Takes note of a file that is run. It may still be running when a later command writes it.
    pub(super) fn run_file(&mut self, file: &Word) {
        if file.literal().is_none_or(|path| path.contains('/')) {
            self.leave(Traces::Values);
        }
        self.knowledge.add_run_file(file);
    }

    fn not_writable(&self, span: Span, word: &Word) -> Denial {
        self.deny(span, Why::Writes { path: word.text().map(Into::into) })
    }
}

/// Whether it is a descriptor's number, or `-`, which closes one.
fn is_descriptor(word: &Word) -> bool {
    let text = word.text().unwrap_or_default();
    text == "-"
        || (!text.is_empty() && text.trim_end_matches('-').bytes().all(|b| b.is_ascii_digit()))
}
