//! What a command line says about its own exit code and output: whose exit code it is, and whether a filter was
//! in between. Whatever this does not understand is not trusted.

/// How far the exit code and the output can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Trust {
    /// The output may lack lines.
    Filtered,
    /// The output is whole, but the exit code may be of something else.
    OutputOnly,
    Whole,
}

/// What is told of a command that is [`Trust::Filtered`].
pub(crate) const FILTERED: &str = "the command filters its output, so lines may be missing";

/// Programs whose exit code nobody waits for.
const SETUP: &[&str] = &[
    "cd", "export", "set", "source", ".", "echo", "printf", "mkdir", "rm", "unset", "ulimit",
    "umask", "true", ":", "sleep", "date", "pwd", "ls", "touch", "cp", "mv", "git", "shopt",
    "alias", "trap", "local", "pushd", "popd",
];
/// Programs that only feed others.
const FEEDERS: &[&str] = &["echo", "printf", "yes", "true", ":"];
/// Programs that print a part of what they read.
const FILTERS: &[&str] = &[
    "tail", "head", "grep", "egrep", "fgrep", "rg", "sed", "awk", "gawk", "sort", "uniq", "cut",
    "tr", "jq", "less",
];
/// Programs that run a script given in a word.
const SHELLS: &[&str] =
    &["sh", "bash", "dash", "zsh", "ksh", "fish", "eval", "ssh", "docker", "podman", "kubectl"];
/// Words that begin something this does not follow.
const CONTROL: &[&str] =
    &["for", "while", "until", "if", "case", "select", "function", "{", "(", "!", "[["];

pub(crate) fn trust(command: &str) -> Trust {
    let Some(lists) = split(command) else { return Trust::OutputOnly };
    let mut trust = Trust::Whole;
    let mut pipefail = false;
    for (at, list) in lists.iter().enumerate() {
        let last = at + 1 == lists.len();
        let Some(program) = list.stages.first().and_then(|stage| program(stage)) else { continue };
        let words = &list.stages[0];
        pipefail |= program == "set" && words.iter().any(|word| word == "pipefail");
        if CONTROL.contains(&program) || list.background || list.alternative {
            trust = trust.min(Trust::OutputOnly);
        }
        // `cargo test; echo done` has the exit code of `echo`, and `cat log` says nothing of what wrote the log.
        // An editor of files prints nothing.
        let edits = program == "sed" && words.iter().any(|word| word.starts_with("-i"));
        let prepares = SETUP.contains(&program) || edits;
        if !last && !list.and && !prepares || program == "cat" {
            trust = trust.min(Trust::OutputOnly);
        }
        trust = trust.min(pipeline(&list.stages, pipefail, last));
        for stage in &list.stages {
            trust = trust.min(nested(stage));
        }
    }
    trust
}

fn pipeline(stages: &[Vec<String>], pipefail: bool, last: bool) -> Trust {
    let feeding = stages
        .iter()
        .take_while(|stage| program(stage).is_some_and(|name| FEEDERS.contains(&name)))
        .count();
    // What comes after the programs that feed is what was asked for, and the rest are filters.
    let filters = stages.get(feeding + 1..).unwrap_or_default();
    let passes = |stage: &Vec<String>| match program(stage) {
        Some("cat") => stage.len() == 1 || stage.iter().skip(1).all(|word| word.starts_with("2>")),
        Some("tee") => !stage.iter().any(|word| word.contains('>')),
        _ => false,
    };
    let is_filter =
        |stage: &Vec<String>| program(stage).is_some_and(|name| FILTERS.contains(&name));
    // `grep -q x y && cargo test` filters nothing of the tests.
    if last && stages.get(feeding).is_some_and(is_filter) {
        return Trust::Filtered;
    }
    match filters {
        [] => Trust::Whole,
        filters if !filters.iter().all(passes) => Trust::Filtered,
        _ if pipefail => Trust::Whole,
        _ => Trust::OutputOnly,
    }
}

/// Scripts in words, as in `sh -c 'cargo test | tail'`.
fn nested(stage: &[String]) -> Trust {
    if !program(stage).is_some_and(|name| SHELLS.contains(&name)) {
        return Trust::Whole;
    }
    let scripts = stage.iter().filter(|word| word.contains(char::is_whitespace));
    scripts.map(|script| trust(script)).min().unwrap_or(Trust::Whole)
}

/// The program a stage runs, without its folder, and without what only wraps it.
fn program(stage: &[String]) -> Option<&str> {
    let wrappers = ["time", "env", "nohup", "exec", "command", "sudo", "nice"];
    let mut words = stage.iter().map(|word| word.as_str());
    let mut name = words.find(|word| {
        let assigns = word
            .split_once('=')
            .is_some_and(|(name, _)| name.chars().all(|c| c == '_' || c.is_alphanumeric()));
        !assigns && !wrappers.contains(word)
    })?;
    if name == "timeout" {
        name = words.find(|word| {
            !word.starts_with('-') && !word.starts_with(|first: char| first.is_ascii_digit())
        })?;
    }
    Some(name.rsplit('/').next().unwrap_or(name))
}

/// One pipeline, and what follows it.
#[derive(Default)]
struct List {
    stages: Vec<Vec<String>>,
    and: bool,
    alternative: bool,
    background: bool,
}

/// The pipelines of a command. None if it has parts that this cannot follow, such as substitutions.
fn split(command: &str) -> Option<Vec<List>> {
    let mut lists: Vec<List> = Vec::new();
    let mut list = List::default();
    let mut stage: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut chars = command.chars().peekable();
    fn end_word(word: &mut String, stage: &mut Vec<String>) {
        if !word.is_empty() {
            stage.push(std::mem::take(word));
        }
    }
    while let Some(c) = chars.next() {
        match c {
            '\'' => loop {
                match chars.next()? {
                    '\'' => break,
                    c => word.push(c),
                }
            },
            '"' => loop {
                match chars.next()? {
                    '"' => break,
                    '\\' => word.push(chars.next()?),
                    '`' => return None,
                    '$' if chars.peek() == Some(&'(') => return None,
                    c => word.push(c),
                }
            },
            '\\' => match chars.next() {
                Some('\n') | None => {}
                Some(c) => word.push(c),
            },
            '`' => return None,
            '$' if chars.peek() == Some(&'(') => return None,
            '<' if matches!(chars.peek(), Some('<' | '(')) => return None,
            '>' => {
                word.push('>');
                while let Some(c) = chars.next_if(|c| matches!(c, '>' | '&' | '|' | '(')) {
                    if c == '(' {
                        return None;
                    }
                    word.push(c);
                }
            }
            '#' if word.is_empty() => while chars.next_if(|&c| c != '\n').is_some() {},
            '&' if chars.peek() == Some(&'>') => word.push('&'),
            '|' | ';' | '\n' | '&' => {
                end_word(&mut word, &mut stage);
                let doubled = c != '\n' && chars.next_if_eq(&c).is_some();
                let piped = c == '|' && !doubled;
                if piped {
                    chars.next_if_eq(&'&');
                }
                list.stages.push(std::mem::take(&mut stage));
                if !piped {
                    list.and = c == '&' && doubled;
                    list.alternative = c == '|';
                    list.background = c == '&' && !doubled;
                    lists.push(std::mem::take(&mut list));
                }
            }
            c if c.is_whitespace() => end_word(&mut word, &mut stage),
            '(' if word.is_empty() && stage.is_empty() => stage.push("(".to_owned()),
            c => word.push(c),
        }
    }
    end_word(&mut word, &mut stage);
    list.stages.push(stage);
    lists.push(list);
    lists.retain(|list| list.stages.iter().any(|stage| !stage.is_empty()));
    Some(lists)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_program_decides_what_is_left_of_an_output() {
        let cases = [
            ("cargo test", Trust::Whole),
            ("cd x && FOO=1 timeout 60 cargo test -- 'a|b' 2>&1", Trust::Whole),
            ("export A=1; cd x; cargo test", Trust::Whole),
            ("echo y | npm test", Trust::Whole),
            ("set -o pipefail; cargo test 2>&1 | tee log", Trust::Whole),
            ("cargo test && cargo clippy", Trust::Whole),
            ("grep -q x y && cargo test", Trust::Whole),
            ("bash -c 'cargo test'", Trust::Whole),
            ("cargo test;", Trust::Whole),
            ("sed -i s/a/b/ x; cargo test", Trust::Whole),
            ("sed s/a/b/ x; cargo test", Trust::OutputOnly),
            ("cargo test 2>&1 | tee log", Trust::OutputOnly),
            ("cargo test | cat", Trust::OutputOnly),
            ("cargo test || true", Trust::OutputOnly),
            ("cargo test; echo done", Trust::OutputOnly),
            ("cargo test &", Trust::OutputOnly),
            ("for x in a b; do cargo test; done", Trust::OutputOnly),
            ("(cargo test)", Trust::OutputOnly),
            ("! cargo test", Trust::OutputOnly),
            ("echo $(cargo test)", Trust::OutputOnly),
            ("cargo test | tail -5", Trust::Filtered),
            ("cargo test 2>&1 | tee log | grep FAILED", Trust::Filtered),
            ("cargo test |& head", Trust::Filtered),
            ("bash -c 'cargo test | tail'", Trust::Filtered),
            ("cargo test | tee > log", Trust::Filtered),
            ("cargo test | tail; true", Trust::Filtered),
            ("cat log | tail -3", Trust::Filtered),
            ("grep ok log", Trust::Filtered),
            ("cat log", Trust::OutputOnly),
        ];
        for (command, wanted) in cases {
            assert_eq!(trust(command), wanted, "{command}");
        }
    }
}
