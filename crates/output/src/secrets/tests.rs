//! Each test masks a text as a whole, or in pieces as it would arrive.

use proptest::collection::{btree_set, vec};
use proptest::prelude::*;

use super::*;

fn secrets(values: &[&str]) -> Secrets {
    Secrets::new(values.iter().enumerate().map(|(number, value)| (number.to_string(), value)))
}

/// What is shown after each piece, and at the end.
fn masked(secrets: &Secrets, pieces: &[&[u8]]) -> Vec<String> {
    let mut masker = secrets.masker();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut shown: Vec<_> = pieces
        .iter()
        .map(|piece| {
            masker.take(piece);
            text(masker.shown(piece))
        })
        .collect();
    masker.finish();
    shown.push(text(masker.shown(&[])));
    shown
}

/// What is shown of a text that is cut at these places.
fn in_pieces(secrets: &Secrets, bytes: &[u8], cuts: &[prop::sample::Index]) -> String {
    let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    let pieces: Vec<_> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
    masked(secrets, &pieces).concat()
}

#[test]
fn a_value_is_replaced_by_its_name() {
    let secrets = Secrets::new([("FOO_TOKEN", "hunter22"), ("BAR_KEY", " swordfish\n")]);
    let text = "a hunter22, two hunter22hunter22 and a swordfish";
    let expected = "a [FOO_TOKEN], two [FOO_TOKEN][FOO_TOKEN] and a [BAR_KEY]";
    assert_eq!(secrets.mask(text), expected);
    assert!(matches!(secrets.mask("hunter2"), Cow::Borrowed("hunter2")));
    assert_eq!(format!("{secrets:?}"), r#"["FOO_TOKEN", "BAR_KEY"]"#);
}

#[test]
fn clones_get_values_that_are_set_later() {
    let secrets = Secrets::default();
    let clone = secrets.clone();
    secrets.replace(&Secrets::new([("FOO_TOKEN", "hunter22")]));
    assert_eq!(clone.mask("a hunter22"), "a [FOO_TOKEN]");
}

#[test]
fn short_values_are_not_masked_and_the_first_name_of_a_value_counts() {
    let secrets = Secrets::new([("PIN_KEY", "12345"), ("B", "123456"), ("A", "123456")]);
    assert_eq!(secrets.mask("12345 123456"), "12345 [B]");
    assert_eq!(format!("{:?}", Secrets::new([("PIN_KEY", "12345")])), "[]");
}

#[test]
fn the_longest_value_wins_even_if_it_arrives_in_pieces() {
    let secrets = secrets(&["ab0def12", "ab0def12ghi", "zab0def12ghij"]);
    assert_eq!(masked(&secrets, &[b"ab0def12", b"gh", b"i"]), ["", "", "[1]", ""]);
    assert_eq!(masked(&secrets, &[b"ab0def12", b"gh", b"!"]), ["", "", "[0]gh!", ""]);
    assert_eq!(masked(&secrets, &[b"ab0def12", b"gh"]), ["", "", "[0]gh"]);
    assert_eq!(masked(&secrets, &[b"zab0def12ghi", b"j"]), ["", "[2]", ""]);
    assert_eq!(masked(&secrets, &[b"zab0def12ghi", b"k"]), ["", "z[1]k", ""]);
}

#[test]
fn only_the_possible_start_of_a_value_is_held_back() {
    let secrets = secrets(&["hunter22"]);
    assert_eq!(masked(&secrets, &[b"Token: "]), ["Token: ", ""]);
    assert_eq!(masked(&secrets, &[b"bah", b"!"]), ["ba", "h!", ""]);
    assert_eq!(masked(&secrets, &[b"the hunter", b"2", b"2."]), ["the ", "", "[0].", ""]);
    assert_eq!(masked(&secrets, &[b"the hunter2"]), ["the ", "hunter2"]);
}

#[test]
fn values_need_not_be_text() {
    let secrets = Secrets::new([("RAW", b"\xff\xfe\n\r\x00\x80xy")]);
    let pieces: [&[u8]; 3] = [b"a\xff\xfe\n\r", b"\x00\x80xy", b"b"];
    assert_eq!(masked(&secrets, &pieces), ["a", "[RAW]", "b", ""]);
}

#[test]
fn ordinary_words_and_short_values_are_masked_only_where_they_are_whole_words() {
    let secrets = Secrets::new([("PW", "postgres"), ("PIN", "123456"), ("KEY", "ab-12_c")]);
    for same in
        ["/var/lib/postgresql", "postgres_data", "my_postgres", "1234567", "x123456", "aab-12_c"]
    {
        assert_eq!(secrets.mask(same), same);
    }
    assert_eq!(secrets.mask("postgres://postgres:postgres@db/x"), "[PW]://[PW]:[PW]@db/x");
    assert_eq!(secrets.mask("a postgres, 123456."), "a [PW], [PIN].");
    assert_eq!(secrets.mask("\u{201c}postgres\u{201d}"), "\u{201c}[PW]\u{201d}");
    // What is a letter there is part of an escape sequence.
    assert_eq!(secrets.mask("\x1b[01;31mpostgres\x1b[0m"), "\x1b[01;31m[PW]\x1b[0m");
    assert_eq!(secrets.mask("a\\npostgres\\nb"), "a\\n[PW]\\nb");
    assert_eq!(masked(&secrets, &[b"postgres", b"ql"]), ["", "postgresql", ""]);
    assert_eq!(masked(&secrets, &[b"postgres", b"\n"]), ["", "[PW]\n", ""]);
    assert_eq!(masked(&secrets, &[b"my", b"postgres"]), ["my", "", "postgres"]);
    assert_eq!(masked(&secrets, &[b"my ", b"postgres"]), ["my ", "", "[PW]"]);
    // One that does not count hides none that does.
    let secrets = Secrets::new([("PW", "postgres"), ("LONG", "gresql-99")]);
    assert_eq!(secrets.mask("postgresql-99"), "post[LONG]");
    let secrets = Secrets::new([("WORDS", "correcthorsebatterystaple")]);
    assert_eq!(secrets.mask("-pcorrecthorsebatterystaple"), "-p[WORDS]");
}

proptest! {
    #[test]
    fn a_stream_in_pieces_is_masked_like_the_whole(
        // With two letters, values overlap and contain each other.
        values in btree_set("a[a1]{6,10}1", 1..5),
        parts in vec(prop_oneof![
            3 => "[a1c\n]{0,9}".prop_map(Ok), 2 => any::<prop::sample::Index>().prop_map(Err),
        ], 0..12),
        cuts in vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let values: Vec<_> = values.iter().map(String::as_str).collect();
        let text: String = parts
            .iter()
            .map(|part| match part {
                Ok(text) => text,
                Err(index) => *index.get(&values),
            })
            .collect();
        let secrets = secrets(&values);
        let whole = secrets.mask(&text);
        for value in &values {
            prop_assert!(!whole.contains(value), "{value} is left in {whole}");
        }
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let bytes = text.as_bytes();
        let pieces: Vec<_> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
        let shown = masked(&secrets, &pieces);
        prop_assert_eq!(shown.concat(), whole.as_ref());
        // Only the possible start of a value is held back.
        let mut masker = secrets.masker();
        for piece in &pieces {
            masker.take(piece);
            let held = masker.values.as_ref().unwrap().held();
            let held = std::str::from_utf8(held).unwrap();
            let begins = |value: &&str| value.starts_with(held) && value.len() > held.len();
            prop_assert!(held.is_empty() || values.iter().any(begins), "{held} is held back");
        }
    }

    #[test]
    fn words_in_pieces_are_masked_like_the_whole(
        // With two letters and an underscore, words contain each other and stand in others.
        values in btree_set("[ab]{6,9}|[ab_-]{6,8}|a[b1]{8}1", 1..6),
        parts in vec(prop_oneof![
            3 => "[ab1_ \n-]{0,3}".prop_map(Ok), 3 => any::<prop::sample::Index>().prop_map(Err),
        ], 0..12),
        cuts in vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let values: Vec<_> = values.iter().map(String::as_str).collect();
        let text: String = parts
            .iter()
            .map(|part| match part {
                Ok(text) => text,
                Err(index) => *index.get(&values),
            })
            .collect();
        let secrets = secrets(&values);
        prop_assert_eq!(in_pieces(&secrets, text.as_bytes(), &cuts), secrets.mask(&text));
    }
}
