//! What an interpreter opens as a program: `python3 -m pip install x` is `pip install x`, and so is
//! `python3 /usr/bin/pip install x`. A shell opens a script in the same way.
//!
//! The judge reads with it what a command says, and the keeper what a process really executes.

use std::borrow::Cow;

use crate::identity;
use crate::names::Names;
use crate::paths::base_name;
use crate::script::Word;

/// How an interpreter takes its options.
struct Syntax {
    programs: Names,
    /// Letters whose value is the rest of the word, or the next one.
    valued: &'static str,
    /// Letters whose value, if they have one, is the rest of the word.
    glued: &'static str,
    /// Letters with the text of a program, which is then not in a file.
    inline: &'static str,
    /// Letters with the name of the file that it runs.
    file: &'static str,
    /// Long options whose value may be the next word.
    long: Names,
    /// Long options with the text of a program.
    long_inline: Names,
}

const SYNTAX: &[Syntax] = &[
    Syntax {
        programs: Names("python pypy"),
        valued: "WXQ",
        glued: "",
        inline: "c",
        file: "",
        long: Names("--check-hash-based-pycs"),
        long_inline: Names(""),
    },
    Syntax {
        programs: Names("node"),
        valued: "rC",
        glued: "",
        inline: "ep",
        file: "",
        long: Names(
            "--allow-fs-read --allow-fs-write --build-snapshot-config --conditions --cpu-prof-dir --cpu-prof-interval \
             --cpu-prof-name --debug-port --diagnostic-dir --disable-proto --disable-warning --dns-result-order \
             --env-file --env-file-if-exists --es-module-specifier-resolution --experimental-config-file \
             --experimental-default-type --experimental-loader --experimental-policy --experimental-sea-config \
             --heap-prof-dir --heap-prof-interval --heap-prof-name --heapsnapshot-near-heap-limit \
             --heapsnapshot-signal --icu-data-dir --import --input-type --inspect-port --inspect-publish-uid --loader \
             --localstorage-file --max-http-header-size --network-family-autoselection-attempt-timeout \
             --openssl-config --policy-integrity --redirect-warnings --report-dir --report-directory \
             --report-filename --report-signal --require --secure-heap --secure-heap-min --snapshot-blob \
             --test-concurrency --test-coverage-exclude --test-coverage-include --test-global-setup --test-isolation \
             --test-name-pattern --test-reporter --test-reporter-destination --test-shard --test-skip-pattern \
             --test-timeout --title --tls-cipher-list --tls-keylog --trace-event-categories \
             --trace-event-file-pattern --trace-require-module --unhandled-rejections --use-largepages \
             --v8-pool-size --watch-kill-signal --watch-path",
        ),
        long_inline: Names("--eval --print"),
    },
    Syntax {
        programs: Names("ruby jruby truffleruby"),
        valued: "CEIXr",
        glued: "FKTWix0",
        inline: "e",
        file: "",
        long: Names(
            "--backtrace-limit --disable --dump --enable --encoding --external-encoding --internal-encoding --parser",
        ),
        long_inline: Names(""),
    },
    Syntax {
        programs: Names("perl"),
        valued: "I",
        glued: "CDFMVilmx0",
        inline: "eE",
        file: "",
        long: Names(""),
        long_inline: Names(""),
    },
    Syntax {
        programs: Names("php php-cgi phpdbg"),
        valued: "cdgptSTz",
        glued: "",
        inline: "rBRE",
        file: "fF",
        long: Names(
            "--bindpath --define --docroot --php-ini --rclass --re --rextension --rextinfo --rf --rfunction --ri --rz \
             --rzendextension --server --zend-extension",
        ),
        long_inline: Names("--process-begin --process-code --process-end --run"),
    },
    Syntax {
        programs: SHELLS,
        valued: "oO",
        glued: "",
        inline: "c",
        file: "",
        long: Names("--init-file --rcfile"),
        long_inline: Names(""),
    },
];

/// Shells of which it is known how they take their options, and so which script they open.
pub const SHELLS: Names = Names("sh bash rbash dash ash ksh mksh zsh");

/// The same for all others.
const VALUED: Names = Names("-W -X -Q -r -I -E --require --import");

/// Modules of Python that run another module, or a script, with the arguments after it.
const RUNNERS: Names = Names(
    "IPython cProfile coverage debugpy hunter ipdb kernprof line_profiler memory_profiler memray pdb profile pudb \
     pyinstrument runpy scalene trace viztracer",
);

/// Interpreters that open `x.js` for `x`.
const WITHOUT_ENDING: Names = Names("node bun");

/// How many files and modules are looked at, of which only the run will know which one is opened.
const MOST: usize = 32;

/// What an option of an interpreter does to the word after it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    Nothing,
    Value,
    /// The text of a program.
    Text,
    /// The file of a program.
    File,
}

/// What an interpreter opens, with the arguments that it gets.
pub struct Opened<'a> {
    first: Word,
    rest: &'a [Word],
    pub kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A file or module by its name.
    Named,
    /// The program whose script it is, by its plain name.
    Installed,
    /// A file that only the run will know.
    Unknown,
}

impl Opened<'_> {
    pub fn words(&self) -> Vec<Word> {
        [std::slice::from_ref(&self.first), self.rest].concat()
    }
}

/// Lists the paths that a word may mean. `None` if only the run will know.
pub type Resolve<'a> = dyn Fn(&Word) -> Option<Vec<String>> + 'a;

/// Whether it is known how the interpreter takes its options.
pub fn knows(program: &str) -> bool {
    SYNTAX.iter().any(|syntax| syntax.programs.has(program))
}

/// Everything that an interpreter may open with these arguments. `None` if that is too much.
pub fn opened<'a>(
    program: &str,
    words: &'a [Word],
    resolve: &Resolve<'_>,
) -> Option<Vec<Opened<'a>>> {
    let mut found = Vec::new();
    match module(program, words) {
        Some((first, rest)) => {
            add_module(&mut found, first.clone(), rest);
            if text(&first) == "runpy" && !rest.is_empty() {
                add_module(&mut found, rest[0].clone(), &rest[1..]);
            }
            if RUNNERS.has(&text(&first)) {
                add_run_by(&mut found, rest, resolve);
            }
        }
        None => {
            let at = file(program, words);
            if let Some(at) = at.filter(|at| !SHELLS.has(program) || words[*at].literal().is_some())
            {
                add_script(&mut found, program, (&words[at], &words[at + 1..]), resolve);
            }
        }
    }
    (found.len() <= MOST).then_some(found)
}

/// The place of the file that an interpreter runs.
pub fn file(program: &str, words: &[Word]) -> Option<usize> {
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let text = text(word);
        match text.strip_prefix('-') {
            // `bash +x script`
            None if text.starts_with('+') && SHELLS.has(program) => {
                at += 1 + usize::from(text.ends_with(['o', 'O']));
            }
            _ if text == "--" => return Some(at + 1).filter(|at| *at < words.len()),
            Some(_) => match takes(program, &text) {
                Takes::Text => return None,
                Takes::File => return Some(at + 1).filter(|at| *at < words.len()),
                Takes::Value => at += 2,
                Takes::Nothing => at += 1,
            },
            None => return Some(at),
        }
    }
    None
}

/// The module that Python runs, and the arguments after it: `pip`, `install x` for `python3 -m pip install x`.
pub fn module<'a>(program: &str, words: &'a [Word]) -> Option<(Word, &'a [Word])> {
    let is_python = Names("python pypy").has(program);
    let mut at = 0;
    while let Some(word) = words.get(at).filter(|_| is_python) {
        let prefix = word.prefix();
        if !prefix.starts_with('-') || ["-", "--"].contains(&&*prefix) {
            return None;
        }
        match in_letters(program, &prefix) {
            Some(('m', name)) if name.is_empty() => {
                return Some(match &words[at + 1..] {
                    [first, rest @ ..] => (first.clone(), rest),
                    [] => (Word::known("", word.span.clone()), &[]),
                });
            }
            Some(('m', name)) => {
                return Some((Word::known(name, word.span.clone()), &words[at + 1..]));
            }
            Some(_) => return None,
            None => at += 1 + usize::from(takes(program, &prefix) == Takes::Value),
        }
    }
    None
}

/// The letter of an option that takes a program or a module, and what follows it in the same word: `-Bm`, `-lne`.
pub fn in_letters(program: &str, option: &str) -> Option<(char, String)> {
    let (flags, wanted) = match program {
        "python" | "pypy" => ("bBdEhiIOqRsStuvVx?P", "cm"),
        "perl" => ("acdfhlnpsStTuUvwWX0123456789", "eE"),
        _ => return None,
    };
    let letters = option.strip_prefix('-').filter(|letters| !letters.starts_with('-'))?;
    let at = letters.find(|letter| !flags.contains(letter))?;
    let letter = letters[at..].chars().next().filter(|letter| wanted.contains(*letter))?;
    Some((letter, letters[at + letter.len_utf8()..].to_owned()))
}

fn takes(program: &str, option: &str) -> Takes {
    let Some(syntax) = SYNTAX.iter().find(|syntax| syntax.programs.has(program)) else {
        return if VALUED.has(option) { Takes::Value } else { Takes::Nothing };
    };
    if option.starts_with("--") {
        // Node takes both signs.
        let option = option.replace('_', "-");
        return match () {
            () if syntax.long_inline.has(&option) => Takes::Text,
            () if syntax.file.contains('f') && option == "--file" => Takes::File,
            () if syntax.long.has(&option) => Takes::Value,
            () => Takes::Nothing,
        };
    }
    let letters = &option[1..];
    let [valued, glued, inline, file] = [syntax.valued, syntax.glued, syntax.inline, syntax.file]
        .map(|all| move |letter| all.contains(letter));
    let decides = |letter: char| valued(letter) || glued(letter) || inline(letter) || file(letter);
    let Some((at, letter)) = letters.char_indices().find(|(_, letter)| decides(*letter)) else {
        return Takes::Nothing;
    };
    let is_last = at + letter.len_utf8() == letters.len();
    match () {
        () if inline(letter) => Takes::Text,
        () if valued(letter) && is_last => Takes::Value,
        () if file(letter) && is_last => Takes::File,
        () => Takes::Nothing,
    }
}

/// A module, and the package that it is a part of: `pip` for `pip.__main__`.
fn add_module<'a>(found: &mut Vec<Opened<'a>>, first: Word, rest: &'a [Word]) {
    if let Some((package, _)) =
        text(&first).split_once('.').filter(|(package, _)| !package.is_empty())
    {
        let first = Word::known(package, first.span.clone());
        found.push(Opened { first, rest, kind: Kind::Named });
    }
    found.push(Opened { first, rest, kind: Kind::Named });
}

/// A file that an interpreter opens with some arguments, and the program whose script it is.
fn add_script<'a>(
    found: &mut Vec<Opened<'a>>,
    interpreter: &str,
    (first, rest): (&Word, &'a [Word]),
    resolve: &Resolve<'_>,
) {
    let resolved = resolve(first);
    // Perhaps it is there only with the ending that may be left out.
    let with_ending = WITHOUT_ENDING.has(interpreter).then(|| format!("{}.js", text(first)));
    let elsewhere = with_ending.iter().flat_map(|path| {
        let found = resolve(&Word::known(path, first.span.clone()));
        found.unwrap_or_default()
    });
    let elsewhere: Vec<_> = elsewhere.collect();
    let is_elsewhere = || identity::is_named_by_folder(&text(first));
    let name = base_name(&text(first)).to_owned();
    let all = || resolved.iter().flatten().chain(&elsewhere);
    for path in all().filter(|path| base_name(path) != name) {
        let first = Word::known(path, first.span.clone());
        found.push(Opened { first, rest, kind: Kind::Named });
    }
    if first.literal().is_none() || (resolved.is_none() && is_elsewhere()) {
        let first = Word::unknown(!first.is_single(), first.span.clone());
        return found.push(Opened { first, rest, kind: Kind::Unknown });
    }
    found.push(Opened { first: first.clone(), rest, kind: Kind::Named });
    let given = text(first);
    let paths = all().chain(&with_ending).map(String::as_str).chain([&*given]);
    let mut programs: Vec<_> = paths.filter_map(identity::of_script).collect();
    programs.sort_unstable();
    programs.dedup();
    found.extend(programs.into_iter().map(|program| {
        let first = Word::known(program, first.span.clone());
        Opened { first, rest, kind: Kind::Installed }
    }));
}

/// What a module runs that runs others: the first operand, or any before which there is an option that may take it.
fn add_run_by<'a>(found: &mut Vec<Opened<'a>>, words: &'a [Word], resolve: &Resolve<'_>) {
    let (mut may_be_value, mut is_module) = (false, false);
    for (at, word) in words.iter().enumerate() {
        let (text, rest) = (text(word), &words[at + 1..]);
        if text.starts_with('-') {
            let named = text.split_once('=').filter(|(name, _)| name.starts_with("--m"));
            let glued = named.map(|(_, name)| name).or_else(|| text.strip_prefix("-m"));
            if let Some(name) = glued.filter(|name| !name.is_empty()) {
                add_module(found, Word::known(name, word.span.clone()), rest);
            }
            is_module = text == "-m" || text.len() > 2 && "--module".starts_with(&*text);
            may_be_value = !is_module;
            continue;
        }
        add_module(found, word.clone(), rest);
        if !is_module {
            add_script(found, "python", (word, rest), resolve);
        }
        // `coverage run -m pip`, `cProfile -m trace -t --module pip`
        let goes_on = may_be_value || text == "run" || RUNNERS.has(&text);
        if !goes_on || found.len() > MOST {
            return;
        }
        (may_be_value, is_module) = (false, false);
    }
}

fn text(word: &Word) -> Cow<'_, str> {
    word.text().unwrap_or_default()
}
