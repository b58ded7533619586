//! Which parts of HTTP messages are forwarded, which are not, and what the proxy answers itself.

use tokio::io::AsyncWriteExt;

use super::network::{FakeNetwork, answers, echo, mirror, rest, server, until};
use crate::report::Reason;

/// What the server receives when a client sends a request.
async fn forwarded(request: &str, end: &'static str) -> String {
    let network = FakeNetwork::default();
    network.site("site.org", mirror(end).await);
    let answer = network.proxy("site.org,site.org:8080").ask(request).await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    body.to_owned()
}

/// What the client receives when the server sends an answer.
async fn answered(request: &str, answer: &str) -> String {
    let network = FakeNetwork::default();
    network.site("site.org", answers(answer).await);
    network.proxy("site.org").ask(request).await
}

const GET: &str = "GET http://site.org/ HTTP/1.1\r\nHost: site.org\r\n\r\n";

#[tokio::test]
async fn a_request_is_forwarded_without_the_fields_for_the_proxy() {
    let request = "GET http://Site.org:8080/a?b=c HTTP/1.1\r\nHost: evil.org\r\nAccept: */*\r\n\
                   Proxy-Connection: keep-alive\r\nProxy-Authorization: Basic eDp5\r\n\
                   Connection: close, X-Mine\r\nX-Mine: 1\r\nTE: trailers\r\nUpgrade: h2c\r\n\
                   Keep-Alive: timeout=5\r\nX-Kept: yes\r\n\r\n";
    assert_eq!(
        forwarded(request, "\r\n\r\n").await,
        "GET /a?b=c HTTP/1.1\r\nHost: site.org:8080\r\nAccept: */*\r\nX-Kept: yes\r\n\
         Connection: close\r\n\r\n"
    );
}

#[tokio::test]
async fn a_missing_path_becomes_the_root() {
    let cases = [
        ("GET http://site.org HTTP/1.1", "GET / HTTP/1.1"),
        ("GET HTTP://SITE.ORG.?q=/ HTTP/1.1", "GET /?q=/ HTTP/1.1"),
        ("OPTIONS http://site.org HTTP/1.1", "OPTIONS * HTTP/1.1"),
        ("OPTIONS http://site.org/ HTTP/1.1", "OPTIONS / HTTP/1.1"),
        ("GET http://site.org/http://evil.org/ HTTP/1.0", "GET /http://evil.org/ HTTP/1.0"),
    ];
    for (line, sent) in cases {
        let request = format!("{line}\r\n\r\n");
        let heard = forwarded(&request, "\r\n\r\n").await;
        assert_eq!(heard, format!("{sent}\r\nHost: site.org\r\nConnection: close\r\n\r\n"));
    }
}

#[tokio::test]
async fn paths_and_fields_arrive_as_they_were_written() {
    let request = "GET http://site.org/<a>`{b}|c\\\"é HTTP/1.1\r\nx-lower: 1\r\nSOAPAction: \"x\"\r\n\
                   X-Twice: 1\r\nETag: e\r\nX-Twice: 2\r\n\r\n";
    assert_eq!(
        forwarded(request, "\r\n\r\n").await,
        "GET /<a>`{b}|c\\\"é HTTP/1.1\r\nHost: site.org\r\nx-lower: 1\r\nSOAPAction: \"x\"\r\n\
         X-Twice: 1\r\nETag: e\r\nX-Twice: 2\r\nConnection: close\r\n\r\n"
    );
}

#[tokio::test]
async fn bodies_are_decoded_and_framed_again() {
    let counted = "POST http://site.org/ HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello";
    let heard = forwarded(counted, "hello").await;
    assert!(heard.ends_with("Content-Length: 5\r\nConnection: close\r\n\r\nhello"), "{heard}");

    let chunked = "POST http://site.org/ HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n\
                   5;name=value\r\nhello\r\n00001  \r\n!\r\n0\r\nX-Trailer: 1\r\n\r\n";
    let heard = forwarded(chunked, "0\r\n\r\n").await;
    let body =
        "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n";
    assert!(heard.ends_with(body), "{heard}");
}

#[tokio::test]
async fn ambiguous_requests_are_refused() {
    let cases = [
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
        "Content-Length: 5\r\nContent-Length: 5",
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: 5, 5",
        "Content-Length: +5",
        "Content-Length: 0x5",
        "Content-Length: 99999999999999999999",
        "Content-Length:",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding: \x0bchunked",
        "Transfer-Encoding : chunked",
        "Content-Length : 5",
        " Content-Length: 5",
        "X: a\r\n folded: b",
        "X: a\nContent-Length: 5",
        "X: a\rContent-Length: 5",
        "X: a\0b",
        "Host: site.org\r\nHost: evil.org",
        "no colon",
    ];
    for fields in cases {
        let network = FakeNetwork::default();
        network.site("site.org", echo().await);
        let request = format!("POST http://site.org/ HTTP/1.1\r\n{fields}\r\n\r\nhello");
        let answer = network.proxy("site.org").ask(request).await;
        assert!(answer.starts_with("HTTP/1.1 400 Bad Request: "), "{fields:?}: {answer}");
        assert!(network.tried().is_empty(), "{fields:?}");
    }
}

#[tokio::test]
async fn requests_a_proxy_cannot_serve_are_explained() {
    let cases = [
        ("GET / HTTP/1.1", "mcpz: this is a proxy; a request needs a full URL\n"),
        (
            "GET /?u=http://site.org/ HTTP/1.1",
            "mcpz: this is a proxy; a request needs a full URL\n",
        ),
        (
            "GET https://site.org/ HTTP/1.1",
            "mcpz: the proxy forwards only http URLs; use CONNECT for others\n",
        ),
        ("GET http://site.org/#a HTTP/1.1", "mcpz: the URL must not have a fragment\n"),
        (
            "POST http://site.org/ HTTP/1.0\r\nTransfer-Encoding: chunked",
            "mcpz: the request has an unknown transfer encoding\n",
        ),
        ("PRI * HTTP/2.0", "mcpz: this is not an HTTP request\n"),
        ("\x16\x03\x01", "mcpz: this is not an HTTP request\n"),
    ];
    for (line, text) in cases {
        let answer = FakeNetwork::default().proxy("on").ask(format!("{line}\r\n\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 400 ") && answer.ends_with(text), "{line}: {answer}");
    }
}

#[tokio::test]
async fn each_request_on_a_connection_gets_its_own_decision() {
    let network = FakeNetwork::default();
    network.site("site.org", mirror("\r\n\r\n").await);
    let mut proxy = network.proxy("site.org");
    let mut stream = proxy.connect().await;
    for _ in 0..2 {
        stream.write_all(GET.as_bytes()).await.unwrap();
        let answer = until(&mut stream, "Connection: close\r\n\r\n").await;
        assert!(answer.contains("Connection: keep-alive\r\n\r\nGET / HTTP/1.1\r\n"), "{answer}");
        assert_eq!(proxy.reports.reached().await.host, "site.org");
    }
    let evil = "GET http://evil.org/ HTTP/1.1\r\nHost: site.org\r\n\r\n";
    // Both at once: the allowed request does not carry the one behind it along.
    stream.write_all([GET, evil].concat().as_bytes()).await.unwrap();
    let answer = rest(&mut stream).await;
    let refused = "HTTP/1.1 403 Forbidden: no connection to evil.org port 80: the host is not in the \
                   list; `--net evil.org` would allow it\r\n";
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains(refused), "{answer}");
    assert_eq!(proxy.reports.reached().await.host, "site.org");
    let refusal = proxy.reports.refusal().await;
    assert_eq!(
        (refusal.host.as_str(), refusal.port, refusal.reason),
        ("evil.org", 80, Reason::NotListed)
    );
    assert_eq!(network.tried().len(), 3, "each request has its own connection");
}

#[tokio::test]
async fn a_body_does_not_hide_another_request() {
    let network = FakeNetwork::default();
    network.site("site.org", mirror("evil.org/ HTTP/1.1\r\n\r\n").await);
    let inner = "GET http://evil.org/ HTTP/1.1\r\n\r\n";
    let outer = format!(
        "POST http://site.org/ HTTP/1.1\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{inner}",
        inner.len()
    );
    let answer = network.proxy("site.org").ask(outer).await;
    assert!(answer.ends_with(inner), "{answer}");
    assert_eq!(network.tried(), ["93.184.216.34:80"]);
}

#[tokio::test]
async fn responses_get_the_framing_that_the_client_understands() {
    let old = "GET http://site.org/ HTTP/1.0\r\n\r\n";
    let head = "HEAD http://site.org/ HTTP/1.1\r\nConnection: close\r\n\r\n";
    let cases = [
        (
            GET,
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi!!",
            "Content-Length: 2\r\nConnection: keep-alive\r\n\r\nhi",
        ),
        (
            GET,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 9\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
            "Transfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
        ),
        (
            GET,
            "HTTP/1.0 200 OK\n\nhi",
            "Transfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
        ),
        (
            old,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
            "Connection: close\r\n\r\nhi",
        ),
        (
            head,
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n",
            "Content-Length: 2\r\nConnection: close\r\n\r\n",
        ),
    ];
    for (request, answer, expected) in cases {
        let heard = answered(request, answer).await;
        assert_eq!(heard, format!("HTTP/1.1 200 OK\r\n{expected}"), "{answer}");
    }
    let heard =
        answered(GET, "HTTP/1.1 204 No Content\r\nSet-Cookie: a\r\nUpgrade: x\r\n\r\n").await;
    assert_eq!(heard, "HTTP/1.1 204 No Content\r\nSet-Cookie: a\r\nConnection: keep-alive\r\n\r\n");
}

#[tokio::test]
async fn a_broken_response_becomes_an_error_or_ends_early() {
    for answer in [
        "",
        "garbage\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nhi",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nhi",
    ] {
        let heard = answered(GET, answer).await;
        assert!(heard.starts_with("HTTP/1.1 502 Bad Gateway: "), "{answer:?}: {heard}");
    }
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhiXX",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n-1\r\n",
    ] {
        let heard = answered(GET, answer).await;
        assert!(heard.starts_with("HTTP/1.1 200 OK") && !heard.contains("502"), "{heard}");
        assert!(heard.ends_with("hi") || heard.ends_with("hi\r\n"), "{heard}");
    }
}

#[tokio::test]
async fn a_server_may_ask_for_the_body_or_respond_before_it() {
    let network = FakeNetwork::default();
    let origin = server(|mut stream| async move {
        until(&mut stream, "\r\n\r\n").await;
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await.unwrap();
        until(&mut stream, "hello").await;
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await.unwrap();
    });
    network.site("site.org", origin.await);
    let proxy = network.proxy("site.org");
    let head =
        "POST http://site.org/ HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
    let mut stream = proxy.connect().await;
    stream.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(until(&mut stream, "\r\n\r\n").await, "HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"hello").await.unwrap();
    assert!(until(&mut stream, "\r\n\r\n").await.contains("Connection: keep-alive"));

    network.site("site.org", answers("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n").await);
    stream.write_all(head.as_bytes()).await.unwrap();
    let answer = rest(&mut stream).await;
    assert_eq!(answer, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
}

#[tokio::test]
async fn interim_responses_reach_the_clients_that_know_them() {
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    let last = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n";
    let answer = format!("{hints}{hints}{last}\r\n");
    let heard = answered(GET, &answer).await;
    assert_eq!(heard, format!("{hints}{hints}{last}Connection: keep-alive\r\n\r\n"));
    let heard = answered("GET http://site.org/ HTTP/1.0\r\n\r\n", &answer).await;
    assert_eq!(heard, format!("{last}Connection: close\r\n\r\n"));
}

#[tokio::test]
async fn a_tunnel_passes_all_bytes_and_its_directions_end_separately() {
    let network = FakeNetwork::default();
    network.site("site.org", echo().await);
    let mut proxy = network.proxy("site.org");
    let connect = "CONNECT site.org:443 HTTP/1.1\r\nHost: whatever\r\n\r\n";
    // Bytes right behind the head belong to the tunnel, and the client's end closes one direction only.
    let answer = proxy.ask(format!("{connect}early\0bytes")).await;
    assert_eq!(answer, "HTTP/1.1 200 Connection established\r\n\r\nearly\0bytes");
    let reached = proxy.reports.reached().await;
    assert_eq!(
        (reached.host.as_str(), reached.port, reached.sent, reached.received),
        ("site.org", 443, 11, 11)
    );
}

#[tokio::test]
async fn a_server_that_stops_sending_can_still_receive() {
    let network = FakeNetwork::default();
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let origin = server(move |mut stream| {
        let told = told.clone();
        async move {
            stream.write_all(b"bye").await.unwrap();
            stream.shutdown().await.unwrap();
            told.send(rest(&mut stream).await).unwrap();
        }
    });
    network.site("site.org", origin.await);
    let proxy = network.proxy("site.org");
    let mut stream = proxy.connect().await;
    stream.write_all(b"CONNECT site.org:443 HTTP/1.1\r\n\r\n").await.unwrap();
    assert!(rest(&mut stream).await.ends_with("\r\n\r\nbye"));
    stream.write_all(b"still here").await.unwrap();
    drop(stream);
    assert_eq!(heard.recv().await.unwrap(), "still here");
}

#[tokio::test]
async fn odd_hosts_are_refused_and_reported() {
    let cases = [
        ("GET http://2130706433/", "2130706433"),
        ("GET http://0177.0.0.1/", "0177.0.0.1"),
        ("GET http://127.1/", "127.1"),
        ("GET http://[::ffff:127.0.0.1]/", "127.0.0.1"),
        ("GET http://[fe80::1%25eth0]/", "[fe80::1%25eth0]"),
        ("GET http://site.org@evil.org/", "site.org@evil.org"),
        ("GET http://site.org:80@evil.org/", "site.org:80@evil.org"),
        ("GET http://site.org\\@evil.org/", "site.org\\\\@evil.org"),
        ("GET http://site..org/", "site..org"),
        ("GET http:///", ""),
        ("GET http://site.org:/", "site.org:"),
        ("GET http://s\u{ef}te.org/", "s\\xc3\\xafte.org"),
        ("GET http://site%2eorg/", "site%2eorg"),
        ("CONNECT site.org", "site.org"),
        ("CONNECT http://site.org/", "http://site.org/"),
        ("CONNECT 127.0.0.1:443", "127.0.0.1"),
        ("CONNECT LOCALHOST.:443", "127.0.0.1"),
        ("CONNECT [::1]:443", "[::1]"),
        ("CONNECT ::1:443", "::1:443"),
        ("CONNECT 169.254.169.254:80", "169.254.169.254"),
    ];
    for (line, host) in cases {
        let network = FakeNetwork::default();
        network.site("site.org", echo().await);
        let mut proxy = network.proxy("on");
        let answer = proxy.ask(format!("{line} HTTP/1.1\r\n\r\n")).await;
        assert!(
            answer.starts_with("HTTP/1.1 403 Forbidden: no connection to "),
            "{line}: {answer}"
        );
        assert!(answer.ends_with("; no `--net` allows it\n"), "{line}: {answer}");
        assert_eq!(proxy.reports.refusal().await.host, host);
        assert!(network.tried().is_empty() && network.lookups().is_empty(), "{line}");
    }
}

#[tokio::test]
async fn reports_repeat_the_label() {
    let network = FakeNetwork::default();
    network.site("site.org", echo().await);
    let mut proxy = network.proxy("site.org");
    // run-7:x
    let field = "Proxy-Authorization: Basic cnVuLTc6eA==\r\n\r\n";
    proxy.ask(format!("CONNECT evil.org:443 HTTP/1.1\r\n{field}")).await;
    assert_eq!(proxy.reports.refusal().await.label.as_deref(), Some("run-7"));
    proxy.ask(format!("CONNECT site.org:443 HTTP/1.1\r\n{field}")).await;
    assert_eq!(proxy.reports.reached().await.label.as_deref(), Some("run-7"));
}
