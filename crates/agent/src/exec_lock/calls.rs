//! Whether a program may be executed with the arguments that it gets, where it gets them.
//!
//! The arguments have to be what the command says, and the keeper knows more than the policy did: what became of each
//! word, and the directory. So where a rule allows one use of a program that can run anything, it is asked again.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use mcpz_policy::Reach;

use super::denied::Asking;
use super::real_path::real_path;
use super::target::Target;
use crate::exec_rules::{AllowedCall, AllowedProgram, Argument, CallLimit};

/// How many words are compared with how many others. A process waits for the answer, and so does the run.
const MOST_PAIRS: usize = 1 << 24;

/// How many entries of a folder are looked through.
const MOST_ENTRIES: usize = 100_000;

/// Whether a program may be executed with these arguments, of which the first is its name. By another name or path it
/// may take the others differently.
pub fn takes(
    program: &AllowedProgram,
    target: &Target,
    arguments: &[Vec<u8>],
    asking: Asking<'_>,
) -> bool {
    let Some(calls) = &program.calls else { return true };
    let Some((name, given)) = arguments.split_first() else { return false };
    let is_its_name =
        name == target.name().as_bytes() || name == target.path.as_os_str().as_encoded_bytes();
    let fits = |call: &AllowedCall| fits(call, program, target, given, asking);
    is_its_name && calls.iter().any(fits)
}

fn fits(
    call: &AllowedCall,
    program: &AllowedProgram,
    target: &Target,
    given: &[Vec<u8>],
    asking: Asking<'_>,
) -> bool {
    if (asking.is_over)() {
        return false;
    }
    let Some(counts) = counts(&call.words, given) else { return false };
    let Some(limit) = &call.limit else { return true };
    let Ok(rule) = mcpz_policy::Limit::new(&limit.rule, &program.name) else { return false };
    let directory = target.directory();
    let is_allowed = |words: &[&str]| {
        let place = rule.place(words);
        place.is_some_and(|place| is_within(&place, limit, &directory))
    };
    let given: Result<Vec<_>, _> = given.iter().map(|word| std::str::from_utf8(word)).collect();
    let Ok(given) = given else { return false };
    // The rule counts what a pattern became as the one word that it was.
    is_allowed(&given) || {
        let most = counts.iter().copied().max().unwrap_or(0);
        let fits = |nth| !(asking.is_over)() && is_allowed(&reading(&given, &counts, nth));
        most > 1 && (0..most).all(fits)
    }
}

/// The arguments with only one of those that each word became.
fn reading<'a>(given: &[&'a str], counts: &[usize], nth: usize) -> Vec<&'a str> {
    let (mut at, mut words) = (0, Vec::new());
    for count in counts {
        words.extend(nth.checked_rem(*count).map(|nth| given[at + nth]));
        at += count;
    }
    words
}

/// Whether a directory is where the rule holds, and nothing that the call adds leads out of there by a link.
fn is_within(place: &mcpz_policy::Place, limit: &CallLimit, directory: &Path) -> bool {
    let begin = &limit.directory;
    let is_below = |path: &Path| !begin.as_os_str().is_empty() && path.starts_with(begin);
    let is_there = match place.reach {
        Reach::Anywhere => true,
        Reach::Here => directory == begin,
        Reach::Below => is_below(directory),
    };
    let mut from = vec![directory.to_owned()];
    let leads_inside = |from: &[PathBuf], path: &String| {
        from.iter().all(|folder| is_inside(&folder.join(path), &is_below))
    };
    // Each folder may be meant from the one before.
    let enters = |folder: &String| {
        let is_inside = leads_inside(&from, folder);
        let last = from.last().map(|last| last.join(folder));
        from = [directory.to_owned()].into_iter().chain(last).collect();
        is_inside
    };
    is_there
        && place.added.folders.iter().all(enters)
        && place
            .added
            .files
            .iter()
            .all(|file| from.iter().all(|folder| runs_inside(&folder.join(file), &is_below)))
        && place.added.below.iter().all(|(file, folder)| is_below_folder(directory, file, folder))
}

/// Whether a path leads to what is in this folder, and not to the folder. Both may begin in the directory.
fn is_below_folder(directory: &Path, path: &str, folder: &str) -> bool {
    let path = directory.join(path);
    real_path(&directory.join(folder)).is_ok_and(|folder| {
        real_path(&path).ok().as_ref() != Some(&folder)
            && runs_inside(&path, &|path: &Path| path.starts_with(&folder))
    })
}

/// Whether a path leads inside, or nowhere yet but to a new name inside.
fn is_inside(path: &Path, is_below: &impl Fn(&Path) -> bool) -> bool {
    match real_path(path) {
        Ok(real) => is_below(&real),
        Err(_) => {
            let found = fs::symlink_metadata(path);
            let is_new = found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
            is_new
                && path.parent().is_some_and(|folder| {
                    is_inside(folder, is_below)
                        && path.file_name().is_some_and(|name| is_beginning(folder, name, is_below))
                })
        }
    }
}

/// Whether a path leads inside, and so does what programs run for it: for a folder `x`, `python3 x` runs
/// `x/__main__.py`, and `node x` perhaps `x.js`.
fn runs_inside(path: &Path, is_below: &impl Fn(&Path) -> bool) -> bool {
    // Without slashes and dots at its end.
    let path: PathBuf = path.components().collect();
    is_inside(&path, is_below)
        && (!path.is_dir() || {
            let beside = path.parent().zip(path.file_name());
            let is_among = |folder: &Path| real_path(folder).is_ok_and(|real| is_below(&real));
            beside
                .filter(|(folder, _)| is_among(folder))
                .is_none_or(|(folder, name)| is_beginning(folder, name, is_below))
                && holds_inside(&path, is_below)
        })
}

/// Whether all files in a folder lead inside that programs run if they are given the folder.
fn holds_inside(folder: &Path, is_below: &impl Fn(&Path) -> bool) -> bool {
    const FIRST: [&str; 5] = ["index", "package", "__init__", "__main__", "build"];
    const ENDINGS: [&str; 3] = ["go", "class", "jar"];
    all_inside(folder, is_below, |name| {
        let name = Path::new(name);
        let is = |part: Option<&OsStr>, all: &[&str]| {
            part.and_then(OsStr::to_str).is_some_and(|it| all.contains(&it))
        };
        is(name.file_prefix(), &FIRST) || is(name.extension(), &ENDINGS)
    })
}

/// Whether all files with this name and an ending lead inside: `node scripts/x` means `x.js`.
fn is_beginning(folder: &Path, name: &OsStr, is_below: &impl Fn(&Path) -> bool) -> bool {
    let beginning = [name.as_bytes(), b"."].concat();
    all_inside(folder, is_below, |name| name.as_bytes().starts_with(&beginning))
}

/// Whether those entries of a folder lead inside that count.
fn all_inside(
    folder: &Path,
    is_below: &impl Fn(&Path) -> bool,
    counts: impl Fn(&OsStr) -> bool,
) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return true };
    entries.flatten().enumerate().all(|(at, entry)| {
        at < MOST_ENTRIES
            && (!counts(&entry.file_name())
                || real_path(&entry.path()).is_ok_and(|real| is_below(&real)))
    })
}

/// How many of the given words each of the expected ones stands for. `None` if they do not fit.
fn counts(words: &[Argument], given: &[Vec<u8>]) -> Option<Vec<usize>> {
    // Those at both ends that stand for one word each need no search.
    let is_one = |word: &&Argument| numbers(word) == (1, 1);
    let head = words.iter().take_while(is_one).count();
    let tail = words[head..].iter().rev().take_while(is_one).count();
    let searched = given.len().checked_sub(head + tail)?;
    let (first, rest) = words.split_at(head);
    let (inner, last) = rest.split_at(rest.len() - tail);
    let (given_first, rest) = given.split_at(head);
    let (given_inner, given_last) = rest.split_at(searched);
    let fit = |words: &[Argument], given: &[Vec<u8>]| {
        words.iter().zip(given).all(|(word, given)| is(word, given))
    };
    let is_short = inner.len().saturating_mul(searched) <= MOST_PAIRS;
    if !is_short || !fit(first, given_first) || !fit(last, given_last) {
        return None;
    }
    let found = search(inner, given_inner)?;
    Some([vec![1; head], found, vec![1; tail]].concat())
}

/// The same, where any word may stand for several.
fn search(words: &[Argument], given: &[Vec<u8>]) -> Option<Vec<usize>> {
    // For each word, how many of the given ones those before it may stand for.
    let mut all = vec![vec![false; given.len() + 1]];
    all[0][0] = true;
    for word in words {
        let (reached, (least, most)) = (all.last()?, numbers(word));
        let mut next = if least == 0 { reached.clone() } else { vec![false; reached.len()] };
        for (at, given) in given.iter().enumerate() {
            let before = reached[at] || most > 1 && next[at];
            next[at + 1] |= before && is(word, given);
        }
        all.push(next);
    }
    let mut end = given.len();
    all.last()?.get(end).filter(|fits| **fits)?;
    let mut counts = vec![0; words.len()];
    for (at, word) in words.iter().enumerate().rev() {
        let (least, most) = numbers(word);
        let before = given[..end].iter().rev();
        let longest = before.take(most).take_while(|given| is(word, given)).count();
        let count = (least..=longest).find(|count| all[at][end - count])?;
        counts[at] = count;
        end -= count;
    }
    Some(counts)
}

/// The least and the largest number of words that one may stand for.
fn numbers(word: &Argument) -> (usize, usize) {
    match word {
        Argument::Many | Argument::Operands => (0, usize::MAX),
        Argument::AllBegin(_) => (1, usize::MAX),
        Argument::Known(_) | Argument::Begins(_) | Argument::Any | Argument::Operand => (1, 1),
    }
}

/// Whether a word may be this one.
fn is(word: &Argument, given: &[u8]) -> bool {
    let climbs = |path: &[u8]| path.split(|byte| *byte == b'/').filter(|it| it == b"..").count();
    match word {
        Argument::Known(known) => known.as_bytes() == given,
        Argument::Begins(start) => given.starts_with(start.as_bytes()),
        Argument::AllBegin(start) => {
            given.starts_with(start.as_bytes()) && climbs(given) == climbs(start.as_bytes())
        }
        Argument::Any | Argument::Many => true,
        Argument::Operand | Argument::Operands => !given.starts_with(b"-"),
    }
}

#[cfg(test)]
mod tests {
    use mcpz_policy::AddedPlaces;

    use super::*;

    fn bytes(words: &[&str]) -> Vec<Vec<u8>> {
        words.iter().map(|word| word.as_bytes().to_vec()).collect()
    }

    #[test]
    fn a_path_leads_inside_or_to_a_new_name_there() {
        let [inside, outside] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let real = fs::canonicalize(inside.path()).unwrap();
        let leads = |path: &str| is_inside(&real.join(path), &|it| it.starts_with(&real));
        std::os::unix::fs::symlink(outside.path(), real.join("out")).unwrap();
        std::os::unix::fs::symlink("nowhere", real.join("dangling")).unwrap();
        assert!(leads(".") && leads("new") && leads("new/newer"));
        for path in ["out", "out/new", "dangling", "..", "new/../../x", "/etc"] {
            assert!(!leads(path), "{path}");
        }
    }

    #[test]
    fn a_pattern_became_words_that_begin_like_it() {
        let words = [Argument::AllBegin("scripts/".to_owned()), Argument::Many];
        assert_eq!(counts(&words, &bytes(&["scripts/a.py"])), Some(vec![1, 0]));
        for given in [&["e.py"][..], &["scripts/../e.py"], &["-m", "scripts/a.py"], &[]] {
            assert_eq!(counts(&words, &bytes(given)), None, "{given:?}");
        }
    }

    /// Enough for a search that tries every beginning with every end to take minutes.
    const MANY: usize = 20_000;

    #[test]
    fn what_a_pattern_became_is_compared_once() {
        let all = |folder| (0..MANY).map(move |at| format!("{folder}/{at}").into_bytes());
        let begins = |text: &str| Argument::AllBegin(text.to_owned());
        let known = |text: &str| Argument::Known(text.to_owned());
        let words = [known("-l"), begins("a/"), Argument::Operands, begins("b/"), known("-d")];
        let given = [b"-l".to_vec()].into_iter().chain(all("a")).chain(all("b"));
        let given: Vec<_> = given.chain([b"-d".to_vec()]).collect();
        assert_eq!(counts(&words, &given), Some(vec![1, MANY, MANY - 1, 1, 1]));
        let same: Vec<_> = (0..MANY).map(|_| known("x")).collect();
        assert!(counts(&same, &vec![b"x".to_vec(); MANY]).is_some());
        assert_eq!(counts(&vec![Argument::Many; MANY], &vec![b"x".to_vec(); MANY]), None);
    }

    #[test]
    fn each_file_that_is_added_is_looked_up_once() {
        let folder = tempfile::tempdir().unwrap();
        let directory = fs::canonicalize(folder.path()).unwrap();
        let limit = CallLimit { rule: String::from("pytest"), directory: directory.clone() };
        let place = |files: Vec<String>, folders: &[&str]| {
            let folders = folders.iter().map(ToString::to_string).collect();
            mcpz_policy::Place {
                reach: Reach::Below,
                added: AddedPlaces { folders, files, ..AddedPlaces::default() },
            }
        };
        let files = || (0..MANY).map(|at| format!("tests/test_{at}.py")).collect();
        assert!(is_within(&place(files(), &["a", "b"]), &limit, &directory));
        assert!(!is_within(&place(files(), &["a", "../.."]), &limit, &directory));
        assert!(!is_within(&place(vec!["a/".repeat(1 << 20)], &[]), &limit, &directory));
    }

    #[test]
    fn a_rule_counts_what_a_pattern_became_as_one_word() {
        let words = [Argument::AllBegin("t/".to_owned()), Argument::Known("-v".to_owned())];
        let given = ["t/a", "t/b", "-v"];
        let counts = counts(&words, &bytes(&given)).expect("they fit");
        assert_eq!(counts, [2, 1]);
        assert_eq!(reading(&given, &counts, 1), ["t/b", "-v"]);
    }
}
