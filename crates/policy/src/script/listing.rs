//! Commands whose output is only file names, numbers and the like.
//!
//! Their output cannot be an option, so it may become an argument; a number may also be evaluated. A function of the
//! same name could print anything, so the parser refuses to define one.

use std::borrow::Cow;
use std::ops::Range;

use super::{Origin, Piece, Script, SimpleCommand, Word};
use crate::names::Names;

/// Commands that list, unless they are given a format.
const LISTING: Names = Names("docker fd find kubectl ls nproc pwd readlink realpath wc which");

/// Sub-commands of git that list.
const GIT: Names = Names("branch describe ls-files merge-base remote rev-list rev-parse tag");

/// The ones that print nothing else than hashes, names of commits, or paths from the root.
const PATHS_OF_GIT: Names = Names("describe merge-base rev-list rev-parse");

/// Commands that print some of the lines they read.
const CHOOSING: Names = Names("grep head rg sort tail uniq");

/// Commands that can print a number, or a single name.
const PRINTING: Names =
    Names("arch date getconf git hostname id mktemp nproc seq stat tput uname whoami");

/// Commands that print the options that compilers need for a package.
const CONFIGS: Names = Names(
    "curl-config freetype-config gsl-config icu-config llvm-config mariadb_config mysql_config \
     pcre-config pg_config pkg-config pkgconf python-config python3-config sdl-config sdl2-config \
     wx-config xml2-config",
);

/// Whether a function of this name could pass for a command that lists.
pub fn is_listing(name: &str) -> bool {
    LISTING.has(name) || CHOOSING.has(name) || PRINTING.has(name) || CONFIGS.has(name)
}

/// A word's text, in which any number stands for another.
fn number_or_text(word: &Word) -> Option<Cow<'_, str>> {
    let is_number = |piece: &Piece| matches!(piece, Piece::Unknown { origin: Origin::Number, .. });
    word.literal().or_else(|| word.pieces.iter().all(is_number).then_some(Cow::from("1")))
}

impl SimpleCommand {
    /// Whether all it prints is a number.
    fn counts(&self) -> bool {
        let Some(words) = self.words.iter().map(number_or_text).collect::<Option<Vec<_>>>() else {
            return false;
        };
        let words: Vec<_> = words.iter().map(AsRef::as_ref).collect();
        let [name, arguments @ ..] = words.as_slice() else { return false };
        let letters = |argument: &&str, fine: &str| {
            let letters = argument.strip_prefix('-').unwrap_or("-");
            !letters.is_empty() && letters.chars().all(|letter| fine.contains(letter))
        };
        match (*name, arguments) {
            ("nproc" | "getconf", _) => true,
            ("wc", [option]) => letters(option, "clmw"),
            ("grep", [option, rest @ ..]) => {
                let operands = rest.iter().filter(|argument| !argument.starts_with('-')).count();
                letters(option, "cEFivwxa")
                    && option.contains('c')
                    && operands == rest.len()
                    && operands < 3
            }
            ("date", arguments) => {
                let mut formats = arguments.iter().filter_map(|word| word.strip_prefix("+%"));
                let letter = |part: &str| part.len() == 1 && "sNYmdHMSjuwyGVg".contains(part);
                formats.next().is_some_and(|format| format.split('%').all(letter))
                    && formats.next().is_none()
            }
            ("id", [option]) => ["-u", "-g"].contains(option),
            ("stat", [option, format, ..]) => {
                *option == "-c"
                    && ["%s", "%Y", "%X", "%Z", "%W", "%i", "%h", "%u", "%g"].contains(format)
                    && !arguments[2..].iter().any(|argument| argument.starts_with('-'))
            }
            ("tput", [what]) => ["cols", "lines"].contains(what),
            ("git", ["rev-list", rest @ ..]) => {
                rest.contains(&"--count") && !rest.iter().any(|word| word.starts_with("--format"))
            }
            _ => false,
        }
    }

    /// Whether all it prints is numbers, a line each.
    fn counts_up(&self) -> bool {
        let texts: Option<Vec<_>> = self.words.iter().map(number_or_text).collect();
        let is_number =
            |text: &Cow<'_, str>| text.bytes().all(|byte| b"0123456789.".contains(&byte));
        texts.is_some_and(|texts| texts[0] == "seq" && texts[1..].iter().all(is_number))
    }

    /// Whether all it prints is one word without blanks, which is not an option.
    fn prints_name(&self) -> bool {
        let Some(words) = self.words.iter().map(Word::literal).collect::<Option<Vec<_>>>() else {
            return false;
        };
        let words: Vec<_> = words.iter().map(AsRef::as_ref).collect();
        match words.as_slice() {
            ["arch" | "hostname" | "uname" | "whoami"] => true,
            ["uname", option] => ["-s", "-m", "-r", "-n", "-p"].contains(option),
            ["id", option] => ["-un", "-gn", "-nu", "-ng"].contains(option),
            ["git", "branch", "--show-current"] => true,
            ["git", sub @ ("describe" | "merge-base" | "rev-parse"), rest @ ..] => {
                // A path may have blanks.
                let path = |word: &&str| word.starts_with("--show") || word.ends_with("-dir");
                git_lists(sub, rest) && !rest.iter().any(path)
            }
            _ => false,
        }
    }

    /// Whether all it prints is a path from the root, or the name of a commit.
    fn prints_path(&self) -> bool {
        let first = self.words.first().and_then(Word::literal).unwrap_or_default();
        let second = self.words.get(1).and_then(Word::literal).unwrap_or_default();
        self.lists() && (first == "pwd" || (first == "git" && PATHS_OF_GIT.has(&second)))
    }

    /// Whether all it prints is options for compilers, from files that packages installed.
    fn prints_flags(&self) -> bool {
        const OPTIONS: Names = Names(
            "--cflags --cflags-only-I --cflags-only-other --cppflags --cxxflags --embed --includes \
             --ldflags --libs --libs-only-L --libs-only-l --libs-only-other --static --system-libs",
        );
        let Some(words) = self.words.iter().map(Word::literal).collect::<Option<Vec<_>>>() else {
            return false;
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || "_.+-".contains(c);
        let is_package = |word: &str| {
            !word.starts_with('-') && !word.ends_with(".pc") && word.chars().all(plain)
        };
        let [name, arguments @ ..] = words.as_slice() else { return false };
        CONFIGS.has(name)
            && self.assignments.is_empty()
            && arguments.iter().all(|word| OPTIONS.has(word) || is_package(word))
    }

    /// Whether all it prints is the path of a temporary file.
    fn makes_temporary(&self) -> bool {
        const FLAGS: Names = Names("-d -q -t --directory --quiet --tmpdir");
        let Some(words) = self.words.iter().map(Word::literal).collect::<Option<Vec<_>>>() else {
            return false;
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || "_./-".contains(c);
        let is_template = |word: &str| !word.starts_with('-') && word.chars().all(plain);
        let [name, arguments @ ..] = words.as_slice() else { return false };
        name == "mktemp"
            && self.assignments.is_empty()
            && arguments.iter().all(|word| FLAGS.has(word) || is_template(word))
    }

    /// Whether all it prints is names and numbers that are not options.
    fn lists(&self) -> bool {
        let Some(words) = self.words.iter().map(Word::text).collect::<Option<Vec<_>>>() else {
            return false;
        };
        let words: Vec<_> = words.iter().map(AsRef::as_ref).collect();
        let [name, arguments @ ..] = words.as_slice() else { return false };
        // A format makes them print anything.
        let has_format = |word: &&str| {
            let option = ["-o", "--format", "--template", "--output"];
            word.contains(['%', '{', '+', '=', '\\'])
                || option.iter().any(|it| word.starts_with(it))
        };
        match (*name, arguments) {
            ("git", [sub, rest @ ..]) => git_lists(sub, rest),
            _ if arguments.iter().any(has_format) => false,
            ("find", _) => {
                !arguments.iter().any(|word| PRINTS.iter().any(|it| word.starts_with(it)))
            }
            ("fd", _) => !arguments.iter().any(|word| {
                word.starts_with("-x") || word.starts_with("-X") || word.starts_with("--exec")
            }),
            ("docker", [sub, ..]) => ["ps", "images"].contains(sub),
            ("kubectl", _) => arguments.contains(&"get"),
            ("readlink", [option, ..]) => ["-f", "-e", "-m"].contains(option),
            ("realpath", _) => !arguments.iter().any(|word| word.starts_with("--rel")),
            ("grep" | "rg", _) => self.chooses(arguments),
            (name, _) if CHOOSING.has(name) => {
                let is_file = |word: &&str| {
                    !word.starts_with('-') && !word.bytes().all(|byte| byte.is_ascii_digit())
                };
                self.piped && !arguments.iter().any(is_file)
            }
            (name, _) => LISTING.has(name),
        }
    }

    /// Whether `grep` prints only names of files, or some of the lines it reads from another command.
    fn chooses(&self, arguments: &[&str]) -> bool {
        const FLAGS: &str = "EFHILPZachinosvwxz0";
        let flags = |word: &str, more: &str| {
            let letters = word.strip_prefix('-').unwrap_or_default();
            let known = |letter: char| FLAGS.contains(letter) || more.contains(letter);
            !letters.is_empty() && letters.chars().all(known)
        };
        let (options, others): (Vec<_>, Vec<_>) =
            arguments.iter().partition(|word| word.starts_with('-'));
        let names = |word: &&&str| {
            let long = ["--files", "--files-with-matches", "--files-without-match"];
            long.contains(*word) || (flags(word, "lrR") && word.contains(['l', 'L']))
        };
        let by_name = options.iter().any(names)
            && options.iter().all(|word| word.starts_with("--") || flags(word, "lrR"));
        by_name || (self.piped && others.len() < 2 && options.iter().all(|word| flags(word, "")))
    }
}

/// What makes `find` print something other than paths from the starting points that it is given.
const PRINTS: Names = Names("-printf -exec -ok -ls -fprint -fls -files0-from");

/// Whether a sub-command of git prints only names, numbers and hashes. `git rev-parse` repeats options that it does
/// not know, and others print messages with some of theirs.
fn git_lists(sub: &str, arguments: &[&str]) -> bool {
    const OPTIONS: Names = Names(
        "--abbrev-ref --abbrev=0 --all --always --cached --contains --count --deleted \
         --exact-match --exclude-standard --git-dir --is-inside-work-tree --list --long \
         --max-count=1 --merged --modified --name-only --no-merged --others --remotes --short \
         --show-current --show-prefix --show-toplevel --staged --tags --verify -1 -a -l -n1 -r -z",
    );
    let lists = GIT.has(sub) || (sub == "diff" && arguments.contains(&"--name-only"));
    let mut before = arguments.iter().take_while(|word| **word != "--");
    let known = |word: &&str| !word.starts_with('-') || OPTIONS.has(word);
    let repeats = sub == "rev-parse" && arguments.contains(&"--");
    lists && before.all(known) && !repeats
}

impl Script {
    /// Where the output of these commands comes from.
    pub(super) fn output(&self, commands: Range<usize>, quoted: bool) -> Origin {
        let all = &self.commands[commands.clone()];
        let together = all.iter().all(|command| command.pipeline == all[0].pipeline);
        match all {
            [.., last] if together && last.counts() => Origin::Number,
            [only] if only.prints_flags() => Origin::Flags,
            [only] if only.makes_temporary() => Origin::Temporary,
            [only] if only.prints_name() || (quoted && only.prints_path()) => Origin::Listed,
            _ => Origin::Commands(commands),
        }
    }

    /// Whether these commands are one that prints numbers, a line each.
    pub fn counts_up(&self, commands: Range<usize>) -> bool {
        matches!(&self.commands[commands], [only] if !only.words.is_empty() && only.counts_up())
    }

    /// Whether these commands are one that prints a path from the root, or the name of a commit.
    pub fn prints_path(&self, commands: Range<usize>) -> bool {
        matches!(&self.commands[commands], [only] if only.prints_path())
    }

    /// Whether a command prints paths that begin with a directory, each with a zero byte behind it.
    pub fn finds_paths(&self, at: usize) -> bool {
        let words = &self.commands[at].words;
        let has = |text: &str| words.iter().any(|word| word.literal().is_some_and(|it| it == text));
        words.first().and_then(Word::literal).is_some_and(|name| name == "find") && has("-print0")
    }

    /// Whether a command that lists prints names that are not files', or chooses among them.
    pub fn lists_names(&self, at: usize) -> bool {
        const FILES: Names = Names("fd find ls pwd readlink realpath which");
        const FILES_OF_GIT: Names = Names("diff ls-files rev-parse");
        let words = &self.commands[at].words;
        let text = |at: usize| words.get(at).and_then(Word::literal).unwrap_or_default();
        match &*text(0) {
            "git" => !FILES_OF_GIT.has(&text(1)),
            name if CHOOSING.has(name) => self.commands[at].piped,
            name => !FILES.has(name),
        }
    }

    /// Whether there are commands in this range, and all of them list.
    pub fn lists(&self, commands: Range<usize>) -> bool {
        !commands.is_empty() && self.commands[commands].iter().all(SimpleCommand::lists)
    }
}
