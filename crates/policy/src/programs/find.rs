//! Programs that run a command for each of many things.

use std::borrow::Cow;

use super::arguments::{Argument, OptionSyntax, parse};
use super::wrappers;
use crate::judge::{Call, Judge, Ruling};
use crate::names::Names;
use crate::rule::{CommandName, Rule};
use crate::script::{Origin, Piece, Shell, Word};

/// Tests of find that take a value.
const VALUED: Names = Names(
    "-amin -anewer -atime -cmin -cnewer -ctime -fstype -gid -group -ilname -iname -inum -ipath \
     -iregex -iwholename -links -lname -maxdepth -mindepth -mmin -mtime -name -newer -path -perm \
     -printf -regex -regextype -samefile -size -type -uid -used -user -wholename -xtype",
);

/// `find`: commands behind `-exec` and its kin, files behind `-fprint`.
pub fn find(judge: &mut Judge<'_>, call: &Call<'_>) -> Ruling {
    let words = call.arguments();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        let Some(text) = word.text() else {
            let before = words[..at - 1].last().and_then(Word::text);
            let is_value = before.is_some_and(|option| VALUED.has(&option)) && word.is_single();
            // It can be `-exec` only if a command follows, and its end.
            let next = words.get(at).and_then(Word::text);
            let ends = |word: &Word| word.text().is_none_or(|text| text == ";" || text == "+");
            let runs = next.is_some_and(|next| !next.starts_with(['-', '(', '!']))
                && words[at..].iter().any(ends);
            if is_value || !judge.may_be_option(word) || (word.is_single() && !runs) {
                continue;
            }
            return judge.unresolved(word.span.clone(), "an argument of find");
        };
        match &*text {
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                let is = |at: usize, text: &str| {
                    words.get(at).and_then(Word::text).is_some_and(|word| word == text)
                };
                // A plus is the end only behind the place for the names.
                let ends = |at: &usize| is(*at, ";") || (is(*at, "+") && is(at - 1, "{}"));
                let length = (at..words.len()).find(ends).unwrap_or(words.len()) - at;
                if text.ends_with("dir") {
                    judge.directories.forget();
                }
                let inner: Vec<_> = words[at..at + length]
                    .iter()
                    .map(|word| replaced(word, "{}", &Origin::Listed))
                    .collect();
                at += length + 1;
                if !inner.is_empty() {
                    let words = &inner;
                    judge.call(&Call { words, wrappers: call.wrappers + 1, ..call.clone() })?;
                }
            }
            "-fprint" | "-fprint0" | "-fls" | "-fprintf" => {
                if let Some(file) = words.get(at) {
                    judge.side_file(file)?;
                }
                at += 1;
            }
            "-delete" if !judge.policy.allow.is_empty() && !names_delete(judge, call) => {
                return judge
                    .opaque(word.span.clone(), "it deletes; a rule `find -delete` would allow it");
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether a rule speaks of deleting.
fn names_delete(judge: &Judge<'_>, call: &Call<'_>) -> bool {
    let mut words = vec![call.words[0].clone()];
    words.push(Word::known("-delete", call.span()));
    let bare = [call.words[0].clone()];
    let name = CommandName::of(&bare);
    let speaks = |rule: &Rule| rule.allows(&name, &words) && !rule.allows(&name, &bare);
    judge.policy.allow.iter().any(speaks)
}

/// `fd`: a command behind `-x` or `-X`.
pub fn fd(judge: &mut Judge<'_>, call: &Call<'_>) -> Ruling {
    let words = call.arguments();
    let at = words.iter().position(|word| {
        let Some(text) = word.text() else { return judge.may_be_option(word) };
        let short = text.starts_with('-') && !text.starts_with("--") && text.contains(['x', 'X']);
        short || text.starts_with("--exec")
    });
    let Some(at) = at else { return Ok(()) };
    if words[at].text().is_none_or(|text| !["-x", "-X", "--exec", "--exec-batch"].contains(&&*text))
    {
        return judge.unresolved(words[at].span.clone(), "an argument that may start a command");
    }
    let mut inner: Vec<_> =
        words[at + 1..].iter().map(|word| replaced(word, "{", &Origin::Listed)).collect();
    inner.push(Word::unknown(true, words[at].span.clone()));
    judge.call(&Call { words: &inner, wrappers: call.wrappers + 1, ..call.clone() })
}

/// `xargs`: the command behind the options, with words nobody knows at its end or in its midst.
pub fn xargs(judge: &mut Judge<'_>, call: &Call<'_>) -> Ruling {
    let syntax = OptionSyntax {
        valued: "adEILnPs",
        attached: "eil",
        flags: "0rtpxo",
        long_valued: Names("arg-file delimiter max-args max-procs max-chars process-slot-var"),
        long_flags: Names(
            "null no-run-if-empty verbose interactive exit open-tty replace help version \
             show-limits eof max-lines",
        ),
        exact: Names(""),
        stops_at_operand: true,
    };
    let (options, rest) = match parse(&syntax, call.arguments()) {
        Ok(parts) => parts,
        Err(span) => return judge.opaque(span, "an option that is not known"),
    };
    let mut place = None;
    for option in options {
        match option {
            Argument::Option { name, value, .. } => match (name.as_str(), value) {
                ("I" | "replace", Some(value)) => match value.text() {
                    Some(text) => place = Some(text.into_owned()),
                    None => return judge.unresolved(value.span, "an option of xargs"),
                },
                ("replace" | "i", None) => place = Some("{}".to_owned()),
                ("i", Some(value)) => place = value.text().map(Cow::into_owned),
                _ => {}
            },
            Argument::Operand(word) | Argument::Unknown(word) => {
                return judge.unresolved(word.span, "a word that may be an option or the command");
            }
        }
    }
    // Names that were listed are no options.
    let origin = if call.listed { Origin::Listed } else { Origin::Other };
    let mut words: Vec<_> = match &place {
        Some(place) => rest.iter().map(|word| replaced(word, place, &origin)).collect(),
        None => rest,
    };
    if words.is_empty() {
        words.push(Word::known("echo", call.span()));
    }
    if place.is_none() {
        let pieces = vec![Piece::Unknown { splits: true, origin }];
        words.push(Word { pieces, span: call.span() });
    }
    judge.call(&Call { words: &words, wrappers: call.wrappers + 1, ..call.clone() })
}

/// GNU parallel: a text for a shell, with what it is run for put into it.
pub fn parallel(judge: &mut Judge<'_>, call: &Call<'_>) -> Ruling {
    let words = call.arguments();
    let end = words.iter().position(|word| word.text().is_some_and(|text| text.starts_with(":::")));
    let template = &words[..end.unwrap_or(words.len())];
    let plain =
        |word: &Word| word.text().is_some_and(|text| !text.starts_with('-') && !text.contains('{'));
    match template {
        [first, ..] if plain(first) && template.iter().all(|word| word.text().is_some()) => {
            wrappers::joined(judge, template, Shell::Sh)?;
            let mut inner = template.to_vec();
            inner.push(Word::unknown(true, call.span()));
            judge.call(&Call { words: &inner, wrappers: call.wrappers + 1, ..call.clone() })
        }
        _ => judge.opaque(call.span(), "commands that it reads"),
    }
}

/// The word with something nobody knows where the mark stands.
fn replaced(word: &Word, mark: &str, origin: &Origin) -> Word {
    let has = |piece: &Piece| matches!(piece, Piece::Text { text, .. } if text.contains(mark));
    match !mark.is_empty() && word.pieces.iter().any(has) {
        true => {
            let end = word.suffix();
            let tail = end.rsplit(mark).next().unwrap_or_default();
            let head = word.prefix();
            let head = head.split(mark).next().unwrap_or_default();
            let text = |text: &str| Piece::Text { text: text.to_owned(), quoted: true };
            let unknown = Piece::Unknown { splits: false, origin: origin.clone() };
            let mut pieces = vec![text(head), unknown, text(tail)];
            pieces.retain(|piece| !matches!(piece, Piece::Text { text, .. } if text.is_empty()));
            Word { pieces, span: word.span.clone() }
        }
        false => word.clone(),
    }
}
