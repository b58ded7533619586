//! Programs that write files and have options of several letters after a single dash: `zip`, `xxd`, `openssl`.

use super::{NOT_KNOWN, rest};
use crate::action::{Action, Actions};
use crate::call::Call;
use crate::names::Names;
use crate::script::Word;

/// Why `openssl ca` is refused: its settings name the files.
const CONFIGURED: &str = "files that are named in a configuration";

/// `openssl … -out file`, with one dash or two.
pub fn openssl(actions: &mut Actions<'_>, call: &Call<'_>) {
    const WRITES: Names = Names(
        "CAserial cacertsout certout certsout crlout extracertsout keylogfile keyout msgfile newkeyout out outdir \
         reqout respout rspout sess_out srpvfile srvcertout writerand",
    );
    let words = call.arguments();
    let is = |word: &Word, name: &str| word.prefix().trim_start_matches('-') == name;
    match words.first().and_then(Word::text).as_deref() {
        Some("rehash") => words[1..].iter().for_each(|it| actions.push(Action::Write(it.clone()))),
        Some("ca") => actions.push(Action::UnclearWrite { span: call.span(), what: CONFIGURED }),
        _ => {}
    }
    // The serial number is kept beside the certificate, unless another file is named.
    if words.iter().any(|it| is(it, "CAcreateserial")) && !words.iter().any(|it| is(it, "CAserial"))
    {
        let certificates = words.windows(2).filter(|pair| is(&pair[0], "CA"));
        certificates.for_each(|pair| actions.push(Action::Write(serial_of(&pair[1]))));
    }
    for (at, word) in words.iter().enumerate() {
        let prefix = word.prefix();
        let Some(option) = prefix.strip_prefix('-') else { continue };
        let option = option.strip_prefix('-').unwrap_or(option);
        let (name, glued) = match option.split_once('=') {
            Some((name, value)) => (name, Some(rest(word, value))),
            None => (option, None),
        };
        // What it verifies with is then written, and not read.
        let verifies = || words.iter().any(|it| ["-verify", "--verify"].contains(&&*it.prefix()));
        if (WRITES.has(name) || name == "signer" && verifies())
            && let Some(file) = glued.or_else(|| words.get(at + 1).cloned())
        {
            actions.push(Action::Write(file));
        }
    }
}

/// `ca.srl` for `ca.pem`: what follows the last dot is replaced, wherever that is.
fn serial_of(certificate: &Word) -> Word {
    match certificate.text() {
        Some(path) => {
            let beginning = path.rsplit_once('.').map_or(&*path, |(beginning, _)| beginning);
            Word::known(format!("{beginning}.srl"), certificate.span.clone())
        }
        None => certificate.clone(),
    }
}

/// `xxd -cols 5 in out`: the first letter decides, and a value follows it or the whole name.
pub fn xxd(actions: &mut Actions<'_>, call: &Call<'_>) {
    const VALUED: Names = Names("c cols g group l len n name o offset s seek skip R");
    let mut words = call.arguments().iter();
    let mut operands = Vec::new();
    while let Some(word) = words.next() {
        let prefix = word.prefix();
        match prefix.strip_prefix('-').filter(|option| !option.is_empty()) {
            Some("-") => operands.extend(words.by_ref()),
            Some(option) if VALUED.has(option.strip_prefix('-').unwrap_or(option)) => {
                words.next();
            }
            Some(_) => {}
            None => operands.push(word),
        }
    }
    operands.into_iter().skip(1).for_each(|file| actions.push(Action::Write(file.clone())));
}

/// Letters of `zip` that are one option together.
const PAIRS: Names = Names(
    "DF FF FI FS MM RE TT UN db dc dd dg ds du dv fd fz h2 ic la lf li ll mm nw sU sb sc sd sf so sp su sv tt ws",
);

/// Options of `zip` with a value.
const VALUED: Names = Names(
    "O P TT UN Z b ds lf n s t tt \
     before-date compression-method dot-size from-date logfile-path output-file password split-size suffixes \
     temp-path unicode unzip-command",
);

/// Options of `zip` with values up to the next option or `@`.
const LISTS: Names = Names("i x include exclude");

/// Long options of `zip` without a value.
const FLAGS: Names = Names(
    "DOS-names adjust-sfx archive-comment compress-1 compress-2 compress-3 compress-4 compress-5 compress-6 \
     compress-7 compress-8 compress-9 copy-entries delete difference-archive display-bytes display-counts \
     display-dots display-globaldots display-usize display-volume encrypt entry-comments fifo filesync fix fixfix \
     force-descriptors force-zip64 freshen from-crlf grow help junk-paths junk-sfx latest-time license log-append \
     log-info more-help move must-match names-stdin no-dir-entries no-wild paths quiet recurse-paths \
     recurse-patterns regex show-command show-debug show-files show-just-unicode show-options show-unicode \
     split-bell split-pause split-verbose store strip-extra symlinks test to-crlf update verbose version \
     wild-stop-dirs",
);

/// The archive that `zip` makes, which is its first operand, and what some options name.
pub fn zip(actions: &mut Actions<'_>, call: &Call<'_>) {
    const WRITES: Names = Names("O b lf logfile-path output-file temp-path");
    let mut words = call.arguments().iter();
    let mut has_archive = false;
    while let Some(word) = words.next() {
        let prefix = word.prefix();
        let Some(option) = prefix.strip_prefix('-').filter(|option| !option.is_empty()) else {
            if !has_archive {
                actions.push(Action::Write(word.clone()));
            }
            has_archive = true;
            continue;
        };
        let (name, value) = match option.strip_prefix('-') {
            Some("") => continue,
            Some(long) => match long.split_once('=') {
                Some((name, value)) => (full_name(name), Some(value)),
                None => (full_name(long), None),
            },
            None => letters(option),
        };
        let value = match value {
            Some(value) => Some(rest(word, value)),
            None if VALUED.has(name) => words.next().cloned(),
            None => None,
        };
        if name.is_empty() {
            actions.push(Action::UnclearWrite { span: word.span.clone(), what: NOT_KNOWN });
        } else if LISTS.has(name) && value.is_none() {
            let is_last = |word: &Word| word.prefix().starts_with('-') || word.prefix() == "@";
            let end = words.as_slice().iter().position(is_last);
            words = words.as_slice()[end.unwrap_or(words.len())..].iter();
            if words.as_slice().first().is_some_and(|word| word.prefix() == "@") {
                words.next();
            }
        } else if WRITES.has(name)
            && let Some(file) = value
        {
            actions.push(Action::Write(file));
        }
    }
}

/// The long option of `zip` that this is, or the only one that it begins. Empty if there is none.
fn full_name(given: &str) -> &'static str {
    let all = || [VALUED, LISTS, FLAGS].into_iter().flat_map(Names::iter);
    let mut meant = all().filter(|known| known.len() > 2 && known.starts_with(given));
    let (first, others) = (meant.next(), meant.count());
    let whole = all().find(|known| *known == given);
    whole.or(first.filter(|_| others == 0)).unwrap_or_default()
}

/// The first of these letters of `zip` that has a value or list, and that value if it follows in the same word.
fn letters(letters: &str) -> (&str, Option<&str>) {
    let mut left = letters;
    while let Some(letter) = left.chars().next() {
        let pair = left.get(..2).filter(|pair| PAIRS.has(pair));
        let (name, after) = left.split_at(pair.map_or(letter.len_utf8(), str::len));
        if VALUED.has(name) || LISTS.has(name) {
            let value = after.strip_prefix('=').unwrap_or(after);
            return (name, Some(value).filter(|value| !value.is_empty()));
        }
        left = after;
    }
    ("-", None)
}
