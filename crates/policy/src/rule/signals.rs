//! Whether arguments of `kill` and the like name the signal that a deny rule does, in any spelling.

use super::Match;
use crate::names::Names;
use crate::script::Word;

/// Programs with a signal as an option.
const KILLERS: Names = Names("kill killall killall5 pkill skill snice");

/// Signals by their numbers, which begin with 1.
const SIGNALS: Names = Names(
    "HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP TSTP TTIN TTOU \
     URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS",
);

/// Other names of signals.
const OTHERS: [(&str, usize); 5] =
    [("IOT", 6), ("CLD", 17), ("POLL", 29), ("UNUSED", 31), ("EXIT", 0)];

/// The signal that a rule's words name for such a program, and the words without it.
pub fn wanted(program: &str, rest: &[String]) -> Option<(usize, Vec<String>)> {
    if !KILLERS.has(program) {
        return None;
    }
    for (at, word) in rest.iter().enumerate() {
        let next = rest.get(at + 1).map(String::as_str);
        if let Some((signal, length)) = named(word, next.map(Some)) {
            let signal = signal?;
            return Some((signal, [&rest[..at], &rest[(at + length).min(rest.len())..]].concat()));
        }
    }
    None
}

/// Whether the words name this signal.
pub fn has_signal(wanted: usize, words: &[Word]) -> Match {
    let (mut best, mut at) = (Match::No, 0);
    while let Some(word) = words.get(at) {
        let Some(text) = word.text() else {
            let beginning = word.prefix();
            if beginning.is_empty() || beginning.starts_with('-') {
                best = Match::Maybe;
            }
            at += 1;
            continue;
        };
        if text == "--" {
            break;
        }
        let next = words.get(at + 1).map(Word::text);
        let next = next.as_ref().map(|next| next.as_deref());
        match named(&text, next) {
            Some((Some(signal), _)) if signal == wanted => return Match::Yes,
            Some((None, _)) => best = Match::Maybe,
            _ => {}
        }
        // The next word may be a signal or an operand.
        at += 1;
    }
    best
}

/// The signal that an option names, and how many words that takes. The signal is `None` if only the run will know.
fn named(word: &str, next: Option<Option<&str>>) -> Option<(Option<usize>, usize)> {
    let option = word.strip_prefix('-')?;
    if let Some(found) = signal(option) {
        return Some((Some(found), 1));
    }
    if let Some(long) = option.strip_prefix('-') {
        let (name, value) =
            long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
        if name.len() < 2 || !"signal".starts_with(name) {
            return None;
        }
        return match value {
            Some(value) => Some((Some(signal(value)?), 1)),
            None => with_next(next),
        };
    }
    let at = option.find(['s', 'n'])?;
    match &option[at + 1..] {
        "" => with_next(next),
        value => Some((Some(signal(value)?), 1)),
    }
}

fn with_next(next: Option<Option<&str>>) -> Option<(Option<usize>, usize)> {
    match next? {
        Some(value) => Some((Some(signal(value)?), 2)),
        None => Some((None, 2)),
    }
}

/// The number of a signal: `9`, `KILL`, `SIGKILL`, `kill`.
fn signal(text: &str) -> Option<usize> {
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let name = text.to_uppercase();
    let name = name.strip_prefix("SIG").unwrap_or(&name);
    let known = SIGNALS.iter().position(|known| known == name).map(|at| at + 1);
    known.or_else(|| OTHERS.iter().find(|(other, _)| *other == name).map(|(_, number)| *number))
}
