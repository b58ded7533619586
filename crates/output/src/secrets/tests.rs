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

fn tokens() -> Secrets {
    Secrets::default().with_tokens()
}

/// Letters and digits that look random.
fn random(length: usize) -> String {
    "aB3dE6gH9jK2mN5pQ8sT1vW4xY7z".chars().cycle().take(length).collect()
}

#[test]
fn tokens_are_masked_by_their_form_wherever_they_stand() {
    let jwt = format!("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.{}", random(43));
    for (token, name) in [
        (format!("ghp_{}", random(36)), "[GitHub token]"),
        (format!("gho_{}", random(36)), "[GitHub token]"),
        (format!("github_pat_{}_{}", random(22), random(59)), "[GitHub token]"),
        (format!("glpat-{}", random(20)), "[GitLab token]"),
        (format!("npm_{}", random(36)), "[npm token]"),
        (format!("sk-{}", random(48)), "[API key]"),
        (format!("sk-proj-{}_{}-{}", random(30), random(40), random(300)), "[API key]"),
        ("sk-0123456789abcdef0123456789abcdef".into(), "[API key]"),
        (format!("sk-ant-api03-{}-AA", random(93)), "[Anthropic API key]"),
        ("AKIAIOSFODNN7EXAMPLE".into(), "[AWS access key]"),
        (format!("AIza{}", random(35)), "[Google API key]"),
        ("xoxb-123456789012-1234567890123-abcdefABCDEF".into(), "[Slack token]"),
        (jwt, "[JSON Web Token]"),
    ] {
        for (before, after) in [
            ("", ""),
            ("token=", "\n"),
            ("\"", "\","),
            ("\r\n", "\r\n"),
            ("\\n", "\\n"),
            ("\x1b[32m", "\x1b[0m"),
            ("\\u001b[1;32m", "\\u001b[0m"),
            ("token%3D", "%26"),
            ("https://x:", "@github.com/"),
            ("(", ")"),
            ("'", "' b"),
        ] {
            let text = format!("{before}{token}{after}");
            assert_eq!(tokens().mask(&text), format!("{before}{name}{after}"), "{text}");
            let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
            assert_eq!(masked(&tokens(), &bytes).concat(), format!("{before}{name}{after}"));
        }
    }
}

#[test]
fn ordinary_text_has_no_tokens() {
    let blob = random(3000);
    for text in [
        "the task-force on disk-usage, a risk-based desk-job and sk-learn",
        "task-550e8400-e29b-41d4-a716-446655440000 task-0123456789abcdef0123456789abcdef",
        "sk-SK sk-en-translation-dictionary-for-beginners sk-circle-fade-dot sk-folding-cube-2",
        "550e8400-e29b-41d4-a716-446655440000",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "commit 4b2a8efc0ffee4b2a8efc0ffee4b2a8efc0ffee1 (HEAD -> ghp_branch)",
        "npm_config_registry npm_lifecycle_event npm_package_dependencies_something_or_other_long",
        "const ghp_very_long_identifier_that_somebody_chose_for_a_variable = 1;",
        "AKIA ASIA AKIAN AIza ASIAPACIFICREGIONALSALESTEAM",
        "eyJ2ZXJzaW9uIjozLCJzb3VyY2VzIjpbXX0= eyJ.eyJ. eyJhbGciOiJIUzI1NiJ9.txt",
        &format!("//# sourceMappingURL=data:application/json;base64,eyJ{blob}"),
        "!function(e,t){var n=t.sk-e.sk,r=n.eyJ;e.exports={ghp_:r,npm_:t}}(this,window);",
        "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQG\n",
        "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAu1SU1LfVLPHCozMx\n",
        "if line == '-----BEGIN RSA PRIVATE KEY-----':\n    raise ValueError('a private key in the log')\n",
        "grep -r 'BEGIN OPENSSH PRIVATE KEY-----' ~/.ssh | wc -l\n",
        "----------------------------------------------------------------\n",
    ] {
        assert_eq!(tokens().mask(text), text);
        assert_eq!(masked(&tokens(), &[text.as_bytes()]).concat(), text);
    }
}

#[test]
fn the_body_of_a_private_key_is_masked_in_all_its_forms() {
    let line = random(64);
    let key = |label: &str, body: &str| {
        format!("a\n-----BEGIN {label}-----\n{body}\n-----END {label}-----\nb\n")
    };
    let body = format!("{line}\n{line}\n{line}\nab==");
    for label in ["PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"]
    {
        let (text, expected) = (key(label, &body), key(label, "[private key]"));
        assert_eq!(tokens().mask(&text), expected);
        let crlf = |text: &str| text.replace('\n', "\r\n");
        assert_eq!(tokens().mask(&crlf(&text)), crlf(&expected));
        let json = |text: &str| text.replace('\n', "\\n");
        assert_eq!(tokens().mask(&json(&text)), json(&expected));
        for size in [1, 7, 64, 100] {
            let pieces: Vec<_> = text.as_bytes().chunks(size).collect();
            assert_eq!(masked(&tokens(), &pieces).concat(), expected, "in pieces of {size}");
        }
        let indented = |text: &str| text.replace('\n', "\n    ");
        assert_eq!(tokens().mask(&indented(&text)), indented(&expected));
    }
    let header = "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,";
    let encrypted = format!("{header}{}\n\n{body}", "0123456789ABCDEF".repeat(2));
    let expected = format!("{header}[private key]");
    let label = "RSA PRIVATE KEY";
    assert_eq!(tokens().mask(&key(label, &encrypted)), key(label, &expected));
    let numbered = format!("     2\t{line}\n     3\t{line}\n     4\tab==");
    assert!(!tokens().mask(&key(label, &numbered)).contains(&line));
    // Without its last line, it ends where something else begins.
    let cut = format!("-----BEGIN {label}-----\n{line}\n{line}\nThat was a key, or most of it.\n");
    let expected =
        format!("-----BEGIN {label}-----\n[private key]\nThat was a key, or most of it.\n");
    assert_eq!(tokens().mask(&cut), expected);
    let with_certificate = format!("{}-----BEGIN CERTIFICATE-----\n{line}\n", key(label, &body));
    assert!(tokens().mask(&with_certificate).ends_with(&format!("CERTIFICATE-----\n{line}\n")));
}

#[test]
fn however_long_a_token_is_little_is_held_back() {
    let mut masker = tokens().masker();
    let begin = format!("-----BEGIN PRIVATE KEY-----\n{}", random(64));
    let mut shown = 0;
    for text in ["sk-", &begin, "\n\n\neyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx"] {
        masker.take(text.as_bytes());
        shown += masker.shown(text.as_bytes()).len();
        for _ in 0..1000 {
            let piece = random(1000);
            masker.take(piece.as_bytes());
            shown += masker.shown(piece.as_bytes()).len();
            assert!(masker.tokens.as_ref().unwrap().held().len() < 4096);
        }
    }
    assert!(shown < 200, "{shown} bytes are shown of three tokens");
}

#[test]
fn the_end_of_a_word_is_not_held_back() {
    // Most prompts and words end with a letter that a token begins with.
    for text in ["done", "progress", "name", "Plan", "task", "GRAMMA", "the box"] {
        assert_eq!(masked(&tokens(), &[text.as_bytes()]), [text, ""]);
    }
    assert_eq!(masked(&tokens(), &[b"a gh", b"ost"]), ["a ", "ghost", ""]);
}

#[test]
fn a_value_with_a_name_of_its_own_keeps_that() {
    let token = format!("ghp_{}", random(36));
    let secrets = Secrets::new([("GITHUB_TOKEN", &token)]).with_tokens();
    assert_eq!(secrets.mask(&format!("{token} x{token}")), "[GITHUB_TOKEN] x[GITHUB_TOKEN]");
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

    #[test]
    fn tokens_in_pieces_are_masked_like_the_whole(
        parts in vec(prop_oneof![
            2 => "[a-zA-Z0-9_. \\\\\n-]{0,40}",
            2 => "[a-zA-Z0-9_-]{20,80}",
            1 => "\n[A-Za-z0-9+/]{30,70}",
            3 => prop::sample::select(vec![
                "ghp_", "github_pat_", "sk-", "sk-ant-", "AKIA", "AKIAIOSFODNN7EXAMPLE", "eyJ",
                "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.", ".eyJ", "npm_", "AIza", "-----",
                "-----BEGIN RSA PRIVATE KEY-----", "\r\n", "-----END RSA PRIVATE KEY-----",
                "-----BEGIN PGP PRIVATE KEY BLOCK-----", "-----BEGIN CERTIFICATE-----", "\x1b[31m",
            ]).prop_map(str::to_owned),
        ], 0..12),
        cuts in vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let (secrets, text) = (Secrets::default().with_tokens(), parts.concat());
        prop_assert_eq!(in_pieces(&secrets, text.as_bytes(), &cuts), secrets.mask(&text));
    }
}
