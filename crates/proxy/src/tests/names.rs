//! Which texts are hosts, their normal form, and which hosts the rules allow.

use proptest::prelude::*;

use crate::host::{Host, HostError, Name};
use crate::report::Reason;
use crate::rules::Rules;

fn name(text: &str) -> Name {
    match Host::parse(text.as_bytes()) {
        Ok(Host::Name(name)) => name,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn a_name_has_one_normal_form() {
    let cases = [
        ("github.com", "github.com"),
        ("GitHub.COM", "github.com"),
        ("github.com.", "github.com"),
        ("xn--mnchen-3ya.de", "xn--mnchen-3ya.de"),
        ("XN--MNCHEN-3YA.de", "xn--mnchen-3ya.de"),
        ("_acme.example.org", "_acme.example.org"),
        ("r3---sn-x.example.org", "r3---sn-x.example.org"),
        ("1.2.3.4.example.org", "1.2.3.4.example.org"),
        ("127.0.0.1.nip.io", "127.0.0.1.nip.io"),
        ("0x7f.example", "0x7f.example"),
        ("registry", "registry"),
        ("localhost.example.org", "localhost.example.org"),
        ("notlocalhost", "notlocalhost"),
    ];
    for (text, form) in cases {
        assert_eq!(name(text).as_str(), form, "{text}");
    }
}

#[test]
fn invalid_hosts_are_errors() {
    use HostError::*;
    let long_label = format!("{}.org", "a".repeat(64));
    let long_name = vec!["a".repeat(63); 4].join(".");
    let cases: &[(&[u8], HostError)] = &[
        (b"", Empty),
        (b".", Empty),
        (b"github..com", Empty),
        (b".github.com", Empty),
        (b"github.com..", Empty),
        (long_label.as_bytes(), Long),
        (long_name.as_bytes(), Long),
        (b"github.com\0.evil.org", Character),
        (b"github.com\0", Character),
        (b"evil.org\0.github.com", Character),
        (b"git hub.com", Character),
        (b" github.com", Character),
        (b"github.com ", Character),
        (b"github.com\n", Character),
        (b"github.com\r\nHost: evil.org", Character),
        (b"user@github.com", Character),
        (b"github.com@evil.org", Character),
        (b"github.com/evil", Character),
        (b"github.com\\evil", Character),
        (b"github.com#evil", Character),
        (b"github%2ecom", Character),
        (b"*.github.com", Character),
        (b"github,com", Character),
        ("m\u{fc}nchen.de".as_bytes(), NotAscii),
        ("github\u{3002}com".as_bytes(), NotAscii),
        ("\u{ff11}\u{ff12}\u{ff17}.0.0.1".as_bytes(), NotAscii),
        ("gıthub.com".as_bytes(), NotAscii),
        (b"\xff\xfe", NotAscii),
        (b"2130706433", Disguised),
        (b"0177.0.0.1", Disguised),
        (b"0x7f.0.0.1", Disguised),
        (b"0x7f000001", Disguised),
        (b"0X7F.1", Disguised),
        (b"127.1", Disguised),
        (b"127.0.1", Disguised),
        (b"127.0.0.1.", Disguised),
        (b"127.0.0.01", Disguised),
        (b"127.0.0.256", Disguised),
        (b"1.2.3.4.5", Disguised),
        (b"127.0.0.0x1", Disguised),
        (b"0x", Disguised),
        (b"0", Disguised),
        (b"example.0", Disguised),
        (b"[fe80::1%eth0]", Zone),
        (b"fe80::1%25eth0", Zone),
        (b"[::1", Character),
        (b"::1]", Character),
        (b"[127.0.0.1]", Character),
        (b"[github.com]", Character),
        (b"[]", Character),
        (b"1::2::3", Character),
    ];
    for (text, error) in cases {
        assert_eq!(Host::parse(text), Err(*error), "{}", text.escape_ascii());
    }
}

#[test]
fn an_address_is_never_a_name() {
    let cases = [
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]", "::1"),
        ("::1", "::1"),
        ("[::ffff:127.0.0.1]", "127.0.0.1"),
        ("[::ffff:7f00:1]", "127.0.0.1"),
        ("[0:0:0:0:0:FFFF:7F00:0001]", "127.0.0.1"),
        ("[::127.0.0.1]", "::7f00:1"),
        ("localhost", "127.0.0.1"),
        ("LocalHost.", "127.0.0.1"),
        ("a.localhost", "127.0.0.1"),
    ];
    for (text, address) in cases {
        let address = address.parse().unwrap();
        assert_eq!(Host::parse(text.as_bytes()), Ok(Host::Address(address)), "{text}");
    }
}

#[test]
fn a_port_is_plain_digits() {
    let cases = [
        ("github.com", Ok(None)),
        ("github.com:22", Ok(Some(22))),
        ("[2606:4700::1]:443", Ok(Some(443))),
        ("[2606:4700::1]", Ok(None)),
        ("github.com:", Err(HostError::Port)),
        ("github.com:0", Err(HostError::Port)),
        ("github.com:+22", Err(HostError::Port)),
        ("github.com:65536", Err(HostError::Port)),
        ("github.com:22:23", Err(HostError::Port)),
        ("github.com: 22", Err(HostError::Port)),
        ("::1:443", Err(HostError::Port)),
        ("user:secret@github.com:80", Err(HostError::Port)),
        ("[::1]evil.org:80", Err(HostError::Character)),
    ];
    for (text, port) in cases {
        let read = Host::parse_with_port(text.as_bytes());
        assert_eq!(read.map(|(_, port)| port), port, "{text}");
    }
}

#[test]
fn a_list_allows_the_hosts_it_names() {
    let rules =
        "github.com, *.Example.org., ssh.org:22, [2606:4700::1]:53, 1.1.1.1, *.multi.org:8443";
    let rules = Rules::parse(rules).unwrap();
    let cases = [
        ("github.com", 443, Ok(())),
        ("github.com", 80, Ok(())),
        ("GITHUB.com.", 443, Ok(())),
        ("github.com", 22, Err(Reason::Port)),
        ("api.github.com", 443, Err(Reason::NotListed)),
        ("evilgithub.com", 443, Err(Reason::NotListed)),
        ("github.com.evil.org", 443, Err(Reason::NotListed)),
        ("github.co", 443, Err(Reason::NotListed)),
        ("a.example.org", 443, Ok(())),
        ("a.b.example.org", 443, Ok(())),
        ("example.org", 443, Err(Reason::NotListed)),
        ("badexample.org", 443, Err(Reason::NotListed)),
        ("ssh.org", 22, Ok(())),
        ("ssh.org", 443, Err(Reason::Port)),
        ("[2606:4700::1]", 53, Ok(())),
        ("[2606:4700:0::1]", 53, Ok(())),
        ("1.1.1.1", 443, Ok(())),
        ("[::ffff:1.1.1.1]", 443, Ok(())),
        ("1.1.1.2", 443, Err(Reason::NotListed)),
        ("a.multi.org", 8443, Ok(())),
        ("a.multi.org", 443, Err(Reason::Port)),
    ];
    for (host, port, verdict) in cases {
        let host = Host::parse(host.as_bytes()).unwrap();
        assert_eq!(rules.check(&host, port), verdict, "{host}:{port}");
    }
}

#[test]
fn off_allows_nothing_and_on_every_name() {
    let host = Host::Name(name("github.com"));
    assert_eq!(Rules::parse("off").unwrap().check(&host, 443), Err(Reason::Off));
    assert_eq!(Rules::parse(" on ").unwrap().check(&host, 22), Ok(()));
}

#[test]
fn invalid_rules_say_what_is_wrong() {
    let cases = [
        ("", "``: an entry is empty; `off` allows nothing"),
        ("github.com,,a.org", "``: an entry is empty; `off` allows nothing"),
        ("github.com,on", "`on`: use it alone, not in a list"),
        ("https://github.com", "`https://github.com`: use a host without scheme, user or path"),
        ("git@github.com", "`git@github.com`: use a host without scheme, user or path"),
        (
            "*",
            "`*`: use `*` only for all subdomains, as in `*.example.org`; `on` allows every host",
        ),
        (
            "a.*.org",
            "`a.*.org`: use `*` only for all subdomains, as in `*.example.org`; `on` allows every host",
        ),
        (
            "*.1.1.1.1",
            "`*.1.1.1.1`: use `*` only for all subdomains, as in `*.example.org`; `on` allows every host",
        ),
        ("10.0.0.1", "`10.0.0.1`: it is a private address, which no command can reach"),
        ("localhost:80", "`localhost:80`: it is a loopback address, which no command can reach"),
        (
            "[::ffff:169.254.169.254]",
            "`[::ffff:169.254.169.254]`: it is a link-local address, which no command can reach",
        ),
        ("127.1", "`127.1`: the address is not in its canonical form"),
        ("github.com:ssh", "`github.com:ssh`: the port is not a number from 1 to 65535"),
        ("münchen.de", "`münchen.de`: the name is not ASCII; use its xn-- form"),
        ("git hub.com", "`git hub.com`: the name contains a character that host names cannot have"),
        ("*.", "`*.`: the name or a part of it is empty"),
    ];
    for (text, message) in cases {
        assert_eq!(Rules::parse(text).unwrap_err().to_string(), message);
    }
}

#[test]
fn rules_are_displayed_as_they_are_written() {
    for text in ["on", "off", "github.com,*.example.org:22,[2606:4700::1]:53,1.1.1.1"] {
        assert_eq!(Rules::parse(text).unwrap().to_string(), text);
    }
}

proptest! {
    #[test]
    fn no_bytes_make_parsing_panic(text in prop::collection::vec(any::<u8>(), 0..80)) {
        Host::parse(&text).ok();
        Host::parse_with_port(&text).ok();
        Rules::parse(&String::from_utf8_lossy(&text)).ok();
    }

    #[test]
    fn a_displayed_host_parses_to_the_same_host(text in "[a-zA-Z0-9.:\\-_\\[\\]x]{1,30}") {
        if let Ok(host) = Host::parse(text.as_bytes()) {
            prop_assert_eq!(Host::parse(host.to_string().as_bytes()), Ok(host));
        }
    }

    #[test]
    fn case_and_a_last_dot_change_no_verdict(text in "[a-c.]{0,6}(example|other)\\.org", port in 1u16..500) {
        let rules = Rules::parse("*.example.org,b.other.org:22,example.org:80").unwrap();
        let verdict = |text: &str| Host::parse(text.as_bytes()).map(|host| rules.check(&host, port));
        prop_assert_eq!(verdict(&text), verdict(&format!("{}.", text.to_uppercase())));
    }

    #[test]
    fn only_names_that_end_like_the_domain_are_below_it(text in "[a-z.]{1,12}(example\\.org)?[a-z.]{0,3}") {
        let rules = Rules::parse("*.example.org").unwrap();
        if let Ok(host) = Host::parse(text.as_bytes()) && rules.check(&host, 443).is_ok() {
            prop_assert!(host.to_string().ends_with(".example.org"));
        }
    }

    /// Text that the system's own parser reads as an address is never a name.
    #[test]
    fn a_disguised_address_is_never_a_name(
        parts in prop::collection::vec((any::<u8>(), 0..3usize), 1..=4),
        dot in prop::bool::ANY,
    ) {
        let disguised = parts.iter().map(|&(part, base)| match base {
            0 => format!("{part}"),
            1 => format!("0{part:o}"),
            _ => format!("0x{part:x}"),
        });
        let text = disguised.collect::<Vec<_>>().join(".") + if dot { "." } else { "" };
        prop_assert!(!matches!(Host::parse(text.as_bytes()), Ok(Host::Name(_))), "{}", text);
    }
}
