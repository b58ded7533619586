//! Which SOCKS requests are granted and which are refused.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::network::{FakeNetwork, RunningProxy, echo, rest};
use crate::address::Kind;
use crate::host::HostError;
use crate::report::Reason;

/// Sends a request without authentication and returns the code of the reply.
async fn code(proxy: &RunningProxy, request: &[u8]) -> u8 {
    let mut stream = proxy.connect().await;
    stream.write_all(&[&[5, 1, 0], request].concat()).await.unwrap();
    let mut reply = [0; 12];
    stream.read_exact(&mut reply).await.unwrap();
    assert_eq!((&reply[..3], &reply[4..]), (&[5, 0, 5][..], &[0, 1, 0, 0, 0, 0, 0, 0][..]));
    reply[3]
}

fn named(name: &[u8], port: u16) -> Vec<u8> {
    [&[5, 1, 0, 3, name.len() as u8], name, &port.to_be_bytes()].concat()
}

#[tokio::test]
async fn the_proxy_looks_up_a_name_and_tunnels_to_it() {
    let network = FakeNetwork::default();
    network.site("site.org", echo().await);
    let mut proxy = network.proxy("site.org");
    let mut stream = proxy.connect().await;
    let bytes = [&[5, 2, 0, 1][..], &named(b"Site.org", 443), b"hello"].concat();
    stream.write_all(&bytes).await.unwrap();
    stream.shutdown().await.unwrap();
    assert_eq!(rest(&mut stream).await, "\x05\0\x05\0\0\x01\0\0\0\0\0\0hello");
    let reached = proxy.reports.reached().await;
    assert_eq!((reached.host.as_str(), reached.sent, reached.received), ("site.org", 5, 5));
}

#[tokio::test]
async fn a_refusal_has_code_2_and_is_reported() {
    let network = FakeNetwork::default();
    network.site("site.org", echo().await).name("inside.org", &[&["10.0.0.1"]]);
    let mut proxy = network.proxy("site.org,inside.org");
    let private = Reason::Address("10.0.0.1".parse().unwrap(), Kind::Private);
    let loopback = |text: &str| Reason::Address(text.parse().unwrap(), Kind::Loopback);
    let mapped: &[u8] =
        &[5, 1, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1, 0, 80];
    let cases = [
        (named(b"evil.org", 443), "evil.org", Reason::NotListed),
        (named(b"site.org", 22), "site.org", Reason::Port),
        (named(b"inside.org", 443), "inside.org", private),
        (
            named(b"site.org\0.evil.org", 443),
            "site.org\\x00.evil.org",
            Reason::Host(HostError::Character),
        ),
        (named(b"", 443), "", Reason::Host(HostError::Empty)),
        (named(b"0x7f.1", 443), "0x7f.1", Reason::Host(HostError::Disguised)),
        (named(b"127.0.0.1", 443), "127.0.0.1", loopback("127.0.0.1")),
        (named(b"::1", 443), "[::1]", loopback("::1")),
        (named(b"site.org:443", 443), "site.org:443", Reason::Host(HostError::Character)),
        (named(b"site.org", 0), "site.org", Reason::Host(HostError::Port)),
        (vec![5, 1, 0, 1, 127, 0, 0, 1, 0, 80], "127.0.0.1", loopback("127.0.0.1")),
        (vec![5, 1, 0, 1, 1, 1, 1, 1, 1, 187], "1.1.1.1", Reason::NotListed),
        (mapped.to_vec(), "127.0.0.1", loopback("127.0.0.1")),
    ];
    for (request, host, reason) in cases {
        assert_eq!(code(&proxy, &request).await, 2, "{host}");
        let refusal = proxy.reports.refusal().await;
        assert_eq!((refusal.host.as_str(), refusal.reason), (host, reason));
    }
    assert!(network.tried().is_empty());
}

#[tokio::test]
async fn a_public_address_is_decided_as_an_address() {
    let network = FakeNetwork::default();
    network.server("1.1.1.1", echo().await);
    assert_eq!(code(&network.proxy("1.1.1.1"), &[5, 1, 0, 1, 1, 1, 1, 1, 1, 187]).await, 0);
    assert_eq!(code(&network.proxy("on"), &[5, 1, 0, 1, 1, 1, 1, 1, 0, 22]).await, 0);
}

#[tokio::test]
async fn other_failures_have_their_own_codes() {
    let network = FakeNetwork::default();
    network.name("down.org", &[&["1.1.1.1"]]);
    let proxy = network.proxy("on");
    assert_eq!(code(&proxy, &named(b"nowhere.org", 80)).await, 4);
    assert_eq!(code(&proxy, &named(b"down.org", 80)).await, 5);
    assert_eq!(code(&proxy, &[5, 2, 0, 1, 1, 1, 1, 1, 0, 80]).await, 7, "bind");
    assert_eq!(code(&proxy, &[5, 3, 0, 1, 1, 1, 1, 1, 0, 80]).await, 7, "UDP");
    assert_eq!(code(&proxy, &[5, 1, 0, 9]).await, 8);
    assert_eq!(proxy.ask([5, 1, 1]).await.as_bytes(), "\x05\u{fffd}".as_bytes(), "no such method");
}

#[tokio::test]
async fn the_user_name_is_the_label() {
    let mut proxy = FakeNetwork::default().proxy("off");
    let bytes = [&[5, 2, 0, 2, 1, 5][..], b"run-7", &[1, b'x'], &named(b"evil.org", 443)].concat();
    assert_eq!(proxy.ask(bytes).await, "\x05\x02\x01\0\x05\x02\0\x01\0\0\0\0\0\0");
    let refusal = proxy.reports.refusal().await;
    assert_eq!((refusal.label.as_deref(), refusal.reason), (Some("run-7"), Reason::Off));
}
