//! Programs that run a command for each of many things.

use std::borrow::Cow;

use super::arguments::{Argument, Form, split};
use super::wrappers;
use crate::judge::{Call, Judge, Ruling};
use crate::rule::{Name, Rule};
use crate::script::{Origin, Piece, Shell, Word};
use crate::words::Words;

/// Tests of find that take a value.
const VALUED: Words = Words(
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
        let Some(text) = word.data() else {
            let before = words[..at - 1].last().and_then(Word::data);
            let is_value = before.is_some_and(|option| VALUED.has(&option)) && word.is_one();
            // It can be `-exec` only if a command follows, and its end.
            let next = words.get(at).and_then(Word::data);
            let ends = |word: &Word| word.data().is_none_or(|text| text == ";" || text == "+");
            let runs = next.is_some_and(|next| !next.starts_with(['-', '(', '!']))
                && words[at..].iter().any(ends);
            if is_value || !judge.may_be_option(word) || (word.is_one() && !runs) {
                continue;
            }
            return judge.unresolved(word.span.clone(), "an argument of find");
        };
        match &*text {
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                let is = |at: usize, text: &str| {
                    words.get(at).and_then(Word::data).is_some_and(|word| word == text)
                };
                // A plus is the end only behind the place for the names.
                let ends = |at: &usize| is(*at, ";") || (is(*at, "+") && is(at - 1, "{}"));
                let length = (at..words.len()).find(ends).unwrap_or(words.len()) - at;
                if text.ends_with("dir") {
                    judge.places.forget();
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
                    .hides(word.span.clone(), "it deletes; a rule `find -delete` would allow it");
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
    let name = Name::of(&bare);
    let speaks = |rule: &Rule| rule.allows(&name, &words) && !rule.allows(&name, &bare);
    judge.policy.allow.iter().any(speaks)
}

/// `fd`: a command behind `-x` or `-X`.
pub fn fd(judge: &mut Judge<'_>, call: &Call<'_>) -> Ruling {
    let words = call.arguments();
    let at = words.iter().position(|word| {
        let Some(text) = word.data() else { return judge.may_be_option(word) };
        let short = text.starts_with('-') && !text.starts_with("--") && text.contains(['x', 'X']);
        short || text.starts_with("--exec")
    });
    let Some(at) = at else { return Ok(()) };
    if words[at].data().is_none_or(|text| !["-x", "-X", "--exec", "--exec-batch"].contains(&&*text))
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
    let form = Form {
        valued: "adEILnPs",
        attached: "eil",
        flags: "0rtpxo",
        long_valued: Words("arg-file delimiter max-args max-procs max-chars process-slot-var"),
        long_flags: Words(
            "null no-run-if-empty verbose interactive exit open-tty replace help version \
             show-limits eof max-lines",
        ),
        whole: Words(""),
        stops: true,
    };
    let (options, rest) = match split(&form, call.arguments()) {
        Ok(parts) => parts,
        Err(span) => return judge.hides(span, "an option that is not known"),
    };
    let mut place = None;
    for option in options {
        match option {
            Argument::Option { name, value, .. } => match (name.as_str(), value) {
                ("I" | "replace", Some(value)) => match value.data() {
                    Some(text) => place = Some(text.into_owned()),
                    None => return judge.unresolved(value.span, "an option of xargs"),
                },
                ("replace" | "i", None) => place = Some("{}".to_owned()),
                ("i", Some(value)) => place = value.data().map(Cow::into_owned),
                _ => {}
            },
            Argument::Other(word) | Argument::Unknown(word) => {
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
    let end = words.iter().position(|word| word.data().is_some_and(|text| text.starts_with(":::")));
    let template = &words[..end.unwrap_or(words.len())];
    let plain =
        |word: &Word| word.data().is_some_and(|text| !text.starts_with('-') && !text.contains('{'));
    match template {
        [first, ..] if plain(first) && template.iter().all(|word| word.data().is_some()) => {
            wrappers::joined(judge, template, Shell::Sh)?;
            let mut inner = template.to_vec();
            inner.push(Word::unknown(true, call.span()));
            judge.call(&Call { words: &inner, wrappers: call.wrappers + 1, ..call.clone() })
        }
        _ => judge.hides(call.span(), "commands that it reads"),
    }
}

/// The word with something nobody knows where the mark stands.
fn replaced(word: &Word, mark: &str, origin: &Origin) -> Word {
    let has = |piece: &Piece| matches!(piece, Piece::Text { text, .. } if text.contains(mark));
    match !mark.is_empty() && word.pieces.iter().any(has) {
        true => {
            let end = word.end();
            let tail = end.rsplit(mark).next().unwrap_or_default();
            let head = word.beginning();
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
