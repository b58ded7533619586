//! Input that arrives in odd pieces, broken, too large, or not as HTTP at all.

use proptest::prelude::*;
use tokio::io::AsyncWriteExt;

use super::network::{FakeNetwork, answers, echo, mirror, rest, until};
use crate::http::request::Request;

#[tokio::test]
async fn a_request_may_arrive_byte_by_byte() {
    let network = FakeNetwork::default();
    network.site("site.org", mirror("0\r\n\r\n").await);
    let proxy = network.proxy("site.org");
    let mut stream = proxy.connect().await;
    let request = "\r\nPOST http://site.org/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n\
                   2\r\nhi\r\n0\r\n\r\n";
    for byte in request.bytes() {
        stream.write_u8(byte).await.unwrap();
        tokio::task::yield_now().await;
    }
    let heard = until(&mut stream, "\r\n0\r\n\r\n").await;
    assert!(heard.contains("\r\n\r\nPOST / HTTP/1.1\r\n"), "{heard}");
}

#[tokio::test]
async fn a_broken_body_is_not_forwarded_as_complete() {
    let chunked = "Transfer-Encoding: chunked\r\n\r\n";
    for body in [
        format!("{chunked}2\r\nhiXX0\r\n\r\n"),
        format!("{chunked}2\r\nhi\n0\r\n\r\n"),
        format!("{chunked}2\nhi\r\n0\r\n\r\n"),
        format!("{chunked}+2\r\nhi\r\n0\r\n\r\n"),
        format!("{chunked}0x2\r\nhi\r\n0\r\n\r\n"),
        format!("{chunked}10000000000000002\r\nhi\r\n0\r\n\r\n"),
        format!("{chunked}\r\nhi\r\n0\r\n\r\n"),
        format!("{chunked}{}\r\nhi\r\n0\r\n\r\n", "0".repeat(5000)),
        format!("{chunked}0\r\n{}", "A: b\r\n".repeat(100)),
        format!("{chunked}2\r\nhi\r\n"),
        "Content-Length: 5\r\n\r\nhi".to_owned(),
    ] {
        let network = FakeNetwork::default();
        network.site("site.org", mirror("never").await);
        let request = format!("POST http://site.org/ HTTP/1.1\r\n{body}");
        let answer = network.proxy("site.org").ask(request).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{body:?}: {answer}");
    }
}

#[tokio::test]
async fn a_refused_client_may_finish_sending() {
    let proxy = FakeNetwork::default().proxy("off");
    for (url, status) in [("http://evil.org/", 403), ("/", 400)] {
        let mut stream = proxy.connect().await;
        let head = format!("PUT {url} HTTP/1.1\r\nContent-Length: 900000\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let answer = until(&mut stream, "\r\n\r\nmcpz: ").await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        for _ in 0..9 {
            stream.write_all(&[b'x'; 100_000]).await.unwrap();
            tokio::task::yield_now().await;
        }
        stream.shutdown().await.unwrap();
        until(&mut stream, "\n").await;
        assert_eq!(rest(&mut stream).await, "");
    }
}

#[tokio::test]
async fn a_response_may_have_any_size() {
    let network = FakeNetwork::default();
    let body = "0123456789".repeat(200_000);
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    network.site("site.org", answers(answer).await);
    let mut proxy = network.proxy("site.org");
    let heard = proxy.ask("GET http://site.org/ HTTP/1.1\r\n\r\n").await;
    assert!(heard.ends_with(&format!("\r\n\r\n{body}")));
    assert!(proxy.reports.reached().await.received > 2_000_000);
}

/// Bytes that resemble requests.
fn requests() -> impl Strategy<Value = Vec<u8>> {
    let words = [
        "GET ",
        "CONNECT ",
        "http://",
        "site.org",
        ":80",
        "/",
        " HTTP/1.1",
        "\r\n",
        "\n",
        "Host: ",
        "Content-Length: 3",
        "Transfer-Encoding: chunked",
        "Connection: ",
        "close",
        "\0",
        "\r\n\r\n",
        "\x05\x01\0",
        "\x05\x01\0\x03\x08site.org\0\x50",
        "3\r\nabc\r\n",
        "0\r\n\r\n",
        "[::1]",
        "@",
        "#",
    ];
    let word = prop_oneof![
        prop::sample::select(words.to_vec()).prop_map(|word| word.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..4),
    ];
    prop::collection::vec(word, 0..20).prop_map(|words| words.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_input_leads_to_a_host_that_is_not_allowed(bytes in requests()) {
        Request::parse(&bytes, 16).ok();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let network = FakeNetwork::default();
            network.site("site.org", echo().await).name("evil.org", &[&["1.1.1.1"]]);
            network.proxy("site.org").ask(&bytes).await;
            for address in network.tried() {
                assert!(["93.184.216.34:80", "93.184.216.34:443"].contains(&address.as_str()), "{address}");
            }
        });
    }
}
