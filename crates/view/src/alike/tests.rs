//! Which lines are alike.

use proptest::prelude::*;

use super::alike;
use crate::words::mentions_trouble;

/// Texts of what decides about forms.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        "[0-9a-cgxsm./ _\\-\\[,]{0,12}",
        "(/[ab1]{1,2}){1,3}[_.-]?[ab1]{0,3}( [a1]{1,2})?",
        "([0-9a-f]{8}|[a-f]{8}|1234)-([0-9a-f]{4}-){3}([0-9a-f]{12}|[0-9a-f]{11})",
        "(a  ?|fail |)([0-9]{1,3}[.]){0,3}[0-9]{1,2}(s|ms|m2s|x1f|)",
        "a {1,2}(9|cafe9|deadbeef|1.5s)(/[ab])?( b)?",
    ]
}

/// A line that has a good chance to be alike to another.
fn varied(line: &str, by: u8) -> String {
    let vary = |(at, c): (usize, char)| match (c, (at as u8).wrapping_mul(31).wrapping_add(by) % 7)
    {
        ('0'..='9', 0..=2) => "7".to_owned(),
        ('0'..='9', 3) => "12".to_owned(),
        ('a'..='c', 4) => "c".to_owned(),
        (' ', 5) => "  ".to_owned(),
        _ => c.to_string(),
    };
    line.chars().enumerate().map(vary).collect()
}

fn are_alike(a: &str, b: &str) -> bool {
    alike(a.as_bytes(), b.as_bytes(), || mentions_trouble(b.as_bytes()))
}

#[test]
fn numbers_hashes_times_and_names_of_files_do_not_matter() {
    let pairs = [
        ("12:00:01 x", "9:30:59 x"),
        ("a   9 b", "a 10 b"),
        ("[ 9] x", "[10] x"),
        ("a  9 b", "a cafe9 b"),
        ("took 1.5s", "took 350ms"),
        ("took 1m2s", "took 3s"),
        ("id a3f5c9d end", "id 1234567 end"),
        ("at 0x1f end", "at 0xffffe end"),
        ("in /srv/a/one.txt:12: ok", "in /srv/a/two:1: ok"),
        ("in /srv/a1_x", "in /srv/b22222_y"),
        ("trailing", "trailing  "),
        ("from 10.0.0.1", "from 10.20.3.144"),
        ("v1.2", "v1.2.3"),
    ];
    for (a, b) in pairs {
        assert!(are_alike(a, b), "{a} and {b}");
    }
}

#[test]
fn words_folders_and_short_names_matter() {
    let pairs = [
        ("one", "two"),
        ("one", "one two"),
        ("b2 x", "c3 x"),
        ("in /srv/a/one", "in /srv/b/one"),
        ("took 5s", "took 5"),
        ("a,b", "a;b"),
        ("a b", "ab"),
        ("fail in /srv/one", "fail in /srv/two"),
        ("in /srv/error", "in /srv/two"),
        ("in /srv/not found", "in /srv/was found"),
        ("in /srv/no such file", "in /srv/as such file"),
        ("cafe", "face"),
    ];
    for (a, b) in pairs {
        assert!(!are_alike(a, b), "{a} and {b}");
        assert!(!are_alike(b, a), "{b} and {a}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn alike_is_an_equivalence(a in line(), by in any::<[u8; 2]>(), other in line()) {
        let b = varied(&a, by[0]);
        for c in [varied(&b, by[1]), varied(&a, by[1]), other] {
            let [a, b, c] = [&a, &b, &c].map(String::as_str);
            prop_assert!(are_alike(a, a));
            prop_assert_eq!(are_alike(a, b), are_alike(b, a));
            let all = [are_alike(a, b), are_alike(b, c), are_alike(a, c)];
            prop_assert!(all.iter().filter(|alike| **alike).count() != 2, "{:?}", all);
        }
    }
}
