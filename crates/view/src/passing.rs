//! What is different every time a program runs, and means nothing: times, durations and addresses in a line.

/// What stands in their place. No text has it.
const MARK: u8 = 0;

const DATES: &[&str] = &["dddd-dd-dd", "dddd/dd/dd", "dd/aaa/dddd", "d/aaa/dddd"];
const CLOCKS: &[&str] = &["dd:dd:dd", "d:dd:dd"];
const ZONES: &[&str] = &["Z", "+dd:dd", "-dd:dd", "+dddd", "-dddd"];
const MONTHS: &[u8] = b"JanFebMarAprMayJunJulAugSepOctNovDec";
const WEEKDAYS: &[u8] = b"MonTueWedThuFriSatSun";

/// Units a number can be joined to.
const UNITS: &[&str] = &["ns", "us", "µs", "ms", "s", "sec", "secs"];

/// Units that can also follow a space.
const UNITS_APART: &[&str] =
    &["ns", "us", "µs", "ms", "s", "sec", "secs", "second", "seconds", "min", "minutes", "hours"];

/// The fewest digits of an address.
const SHORTEST_ADDRESS: usize = 4;

/// Writes a line without what passes.
pub fn write_lasting(line: &[u8], lasting: &mut Vec<u8>) {
    let mut rest = line;
    let mut before = None;
    while let Some((first, after)) = rest.split_first() {
        let begins = !before
            .is_some_and(|byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'));
        let passing = if begins { passing(rest) } else { None };
        let (kept, len) = passing.map_or((*first, 1), |len| (MARK, len));
        lasting.push(kept);
        before = rest.get(len - 1).copied();
        rest = rest.get(len..).unwrap_or(after);
    }
}

/// The length of the time, duration or address that a text begins with.
fn passing(text: &[u8]) -> Option<usize> {
    let found = match text.first()? {
        b'[' => return since_start(text),
        b'0'..=b'9' => {
            date(text).or_else(|| clock(text)).or_else(|| address(text)).or_else(|| duration(text))
        }
        b'A'..=b'Z' => day(text),
        _ => None,
    };
    found.filter(|len| *len > 0 && !text.get(*len).is_some_and(u8::is_ascii_alphanumeric))
}

/// A date, and the time after it.
fn date(text: &[u8]) -> Option<usize> {
    let date = any_form(text, DATES)?;
    let rest = text.get(date..)?;
    let time = match rest {
        [b'T' | b' ' | b':' | b'_', time @ ..] => clock(time),
        _ => None,
    };
    Some(time.map_or(date, |time| date + 1 + time))
}

fn clock(text: &[u8]) -> Option<usize> {
    let mut len = any_form(text, CLOCKS)?;
    if let [b'.' | b',', fraction @ ..] = text.get(len..)? {
        let digits = digits(fraction);
        len += if digits > 0 { 1 + digits } else { 0 };
    }
    Some(len + any_form(text.get(len..)?, ZONES).unwrap_or(0))
}

fn address(text: &[u8]) -> Option<usize> {
    let digits =
        text.strip_prefix(b"0x")?.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    (digits >= SHORTEST_ADDRESS).then_some(2 + digits)
}

/// A duration such as `1.5s`, `20 ms` or `1m30.2s`.
fn duration(text: &[u8]) -> Option<usize> {
    let number = decimal(text);
    let rest = text.get(number..)?;
    if let [b'm' | b'h', more @ ..] = rest
        && more.first().is_some_and(u8::is_ascii_digit)
    {
        return Some(number + 1 + duration(more)?);
    }
    let (units, space) = match rest {
        [b' ', ..] => (UNITS_APART, 1),
        _ => (UNITS, 0),
    };
    let letters = rest.get(space..)?;
    let end = letters.iter().position(|byte| byte.is_ascii() && !byte.is_ascii_alphabetic());
    let unit = letters.get(..end.unwrap_or(letters.len()))?;
    let is_unit = units.iter().any(|it| it.as_bytes() == unit);
    is_unit.then_some(number + space + unit.len())
}

/// The seconds since the start that a kernel writes: `[   12.345678]`.
fn since_start(text: &[u8]) -> Option<usize> {
    let spaces = text.get(1..)?.iter().take_while(|byte| **byte == b' ').count();
    let number = text.get(1 + spaces..)?;
    let len = any_form(
        number,
        &["d.dddddd]", "dd.dddddd]", "ddd.dddddd]", "dddd.dddddd]", "ddddd.dddddd]"],
    )?;
    Some(1 + spaces + len)
}

/// A day such as `Nov 18`, or the name of one before it.
fn day(text: &[u8]) -> Option<usize> {
    let (name, rest) = text.split_at_checked(3)?;
    let gap = rest.iter().take_while(|byte| matches!(byte, b' ' | b',')).count();
    let rest = rest.get(gap..)?;
    let is_one_of = |names: &[u8]| names.chunks(3).any(|it| it == name);
    if gap == 0 {
        None
    } else if is_one_of(WEEKDAYS) {
        let is_date = rest.get(..3).is_some_and(|month| MONTHS.chunks(3).any(|it| it == month));
        (is_date || digits(rest) > 0).then_some(3)
    } else {
        let day = digits(rest);
        (is_one_of(MONTHS) && (1..=2).contains(&day)).then_some(3 + gap + day)
    }
}

fn digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

fn decimal(text: &[u8]) -> usize {
    let whole = digits(text);
    match text.get(whole..) {
        Some([b'.', fraction @ ..]) if digits(fraction) > 0 => whole + 1 + digits(fraction),
        _ => whole,
    }
}

/// The length of the first form that a text begins with; `d` is a digit and `a` a letter.
fn any_form(text: &[u8], forms: &[&str]) -> Option<usize> {
    let begins = |form: &&&str| {
        let has_form = form.bytes().zip(text).all(|(form, byte)| match form {
            b'd' => byte.is_ascii_digit(),
            b'a' => byte.is_ascii_alphabetic(),
            _ => form == *byte,
        });
        has_form && form.len() <= text.len()
    };
    forms.iter().find(begins).map(|form| form.len())
}
