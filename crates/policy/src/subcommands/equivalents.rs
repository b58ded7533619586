//! The words of a deny rule in other words: `git branch --delete --force` for `git branch -D`.

use super::aliases::{is_name, names};
use super::long_forms;
use crate::names::Names;
use crate::pattern::glob;

/// Sub-commands with options, and others that do the same.
const SUBCOMMANDS: &[(Names, &[&str], &[&str])] = &[
    (Names("terraform tofu"), &["destroy"], &["apply", "-destroy"]),
    (Names("helm"), &["install"], &["upgrade", "--install"]),
    (Names("helm"), &["install"], &["upgrade", "-i"]),
    (Names("apt apt-get"), &["purge"], &["remove", "--purge"]),
    (Names("dotnet"), &["add", "package"], &["package", "add"]),
    (Names("dotnet"), &["remove", "package"], &["package", "remove"]),
];

/// Options of a sub-command, or of any if it is empty, and others that mean the same. `-d=rec*` is a letter with a
/// value in the same word or in the next, and `+*` any word that begins like this.
const OPTIONS: &[(Names, &str, &[&str], &[&str])] = &[
    (Names("git"), "branch", &["-D"], &["--delete", "--force"]),
    (Names("git"), "branch", &["--delete", "--force"], &["-D"]),
    (Names("git"), "branch", &["-M"], &["--move", "--force"]),
    (Names("git"), "branch", &["--move", "--force"], &["-M"]),
    (Names("git"), "branch", &["-C"], &["--copy", "--force"]),
    (Names("git"), "branch", &["--copy", "--force"], &["-C"]),
    (Names("git"), "branch", &["-m"], &["--move"]),
    (Names("git"), "branch", &["--move"], &["-m"]),
    (Names("git"), "branch", &["-c"], &["--copy"]),
    (Names("git"), "branch", &["--copy"], &["-c"]),
    (Names("git"), "add", &["-A"], &["--all"]),
    (Names("git"), "add", &["-A"], &["--no-ignore-removal"]),
    (Names("git"), "push", &["--force"], &["+*"]),
    (Names("git"), "push", &["--delete"], &[":*"]),
    (Names("npm"), "", &["--global"], &["--location=global"]),
    (Names("npm"), "", &["--location=global"], &["--global"]),
    (Names("grep egrep fgrep"), "", &["-r"], &["--dereference-recursive"]),
    (Names("grep egrep fgrep"), "", &["-r"], &["-d=rec*"]),
    (Names("grep egrep fgrep"), "", &["-R"], &["-d=rec*"]),
    (Names("grep egrep fgrep"), "", &["-d=recurse"], &["--recursive"]),
    (Names("grep egrep fgrep"), "", &["-d=recurse"], &["--dereference-recursive"]),
    (Names("curl"), "", &["-O"], &["--remote-name-all"]),
    (Names("curl"), "", &["-d"], &["--data-ascii"]),
    (Names("rsync"), "", &["--delete"], &["--delete-before"]),
    (Names("rsync"), "", &["--delete"], &["--delete-during"]),
    (Names("rsync"), "", &["--delete"], &["--delete-delay"]),
    (Names("rsync"), "", &["--delete"], &["--delete-after"]),
    (Names("rsync"), "", &["--delete"], &["--delete-excluded"]),
];

/// Scripts that package managers run without `run`.
const LIFECYCLE: Names = Names("test start stop restart");

/// The words of a rule in other words.
pub fn equivalents(program: &str, rule: &[String]) -> Vec<Vec<String>> {
    let rows = SUBCOMMANDS.iter().filter(|(programs, _, _)| programs.has(program));
    let other = |(_, words, others): &(Names, &[&str], &[&str])| {
        let begins = rule.len() >= words.len() && rule.iter().zip(*words).all(|(a, b)| a == b);
        let others = others.iter().map(ToString::to_string);
        begins.then(|| others.chain(rule[words.len()..].iter().cloned()).collect())
    };
    let mut all: Vec<Vec<String>> = rows.filter_map(other).collect();
    all.extend(scripts(program, rule));
    all.extend(joined(rule));
    for at in 0..=all.len() {
        let of = if at == 0 { rule.to_vec() } else { all[at - 1].clone() };
        all.extend(options(program, &of));
    }
    all
}

/// The same with other options.
fn options(program: &str, rule: &[String]) -> Vec<Vec<String>> {
    let sub = rule.iter().find(|word| !word.starts_with('-'));
    let is_of_sub = |name: &str| {
        name.is_empty()
            || sub.is_some_and(|sub| sub == name || names(program, sub).any(|it| it == name))
    };
    let rows = OPTIONS.iter().filter(|row| row.0.has(program) && is_of_sub(row.1));
    let other = |(_, _, wanted, others): &(Names, &str, &[&str], &[&str])| {
        let mut rest = rule.to_vec();
        for wanted in *wanted {
            without(program, wanted, &mut rest)?;
        }
        rest.extend(others.iter().map(ToString::to_string));
        Some(rest)
    };
    rows.filter_map(other).collect()
}

/// Takes an option out of the words of a rule, if they have it: the `r` of `-rf`, or the letter for a long one.
fn without(program: &str, wanted: &str, words: &mut Vec<String>) -> Option<()> {
    if let Some(at) = words.iter().position(|word| word == wanted) {
        words.remove(at);
        return Some(());
    }
    let letters = match wanted.strip_prefix("--") {
        Some(long) if long.contains('=') => return None,
        Some(long) => long_forms::letters(program, long),
        None => wanted.strip_prefix('-').filter(|it| it.len() == 1)?.to_owned(),
    };
    let at = words.iter().position(|word| {
        let given = word.strip_prefix('-').filter(|given| !given.starts_with('-'));
        given.is_some_and(|given| given.contains(|letter| letters.contains(letter)))
    })?;
    words[at].retain(|letter| !letters.contains(letter));
    if words[at] == "-" {
        words.remove(at);
    }
    Some(())
}

/// An option and its value as one word: `--mode=x` for `--mode x`, `-X=POST` for `-X POST`.
fn joined(rule: &[String]) -> Option<Vec<String>> {
    let takes_value = |word: &str| {
        let name = word.trim_start_matches('-');
        let is_letter = word.len() == 2 && word.starts_with('-');
        !name.is_empty() && (is_letter || word.starts_with("--")) && !word.contains('=')
    };
    let pair = |pair: &[String]| takes_value(&pair[0]) && !pair[1].starts_with('-');
    let at = rule.windows(2).position(pair)?;
    let joined = format!("{}={}", rule[at], rule[at + 1]);
    Some([&rule[..at], &[joined], &rule[at + 2..]].concat())
}

/// A script with `run` for one without, and the other way round: `npm run test` is `npm test`.
fn scripts(program: &str, rule: &[String]) -> Vec<Vec<String>> {
    if !Names("npm pnpm yarn").has(program) {
        return Vec::new();
    }
    // Others run every script that has no name of their own sub-commands.
    let runs_all = program != "npm";
    let is_run = |word: &String| names(program, word).any(|name| name == "run");
    let of = |word: &str| -> Vec<&str> {
        let is_meant = |name: &&str| glob(word, name) || names(program, word).any(|it| it == *name);
        LIFECYCLE.iter().filter(is_meant).collect()
    };
    match rule {
        [run, script, rest @ ..] if is_run(run) => {
            let mut found = of(script);
            if runs_all && !is_name(program, script) && !script.contains('*') {
                found.push(script);
            }
            found.into_iter().map(|name| [&[name.to_owned()], rest].concat()).collect()
        }
        [script, rest @ ..] => {
            let mut found = of(script);
            if runs_all && !is_name(program, script) && !script.starts_with('-') {
                found.push(script);
            }
            let run = |name: &str| [&["run".to_owned(), name.to_owned()], rest].concat();
            found.into_iter().map(run).collect()
        }
        [] => Vec::new(),
    }
}
