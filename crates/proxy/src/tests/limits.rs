//! The limits of a connection, and the end of all connections with the proxy.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::network::{FakeNetwork, echo, rest, server, until};
use crate::limits::Limits;

/// A limit short enough to wait for.
const SHORT: Duration = Duration::from_millis(100);

#[tokio::test]
async fn the_size_and_the_fields_of_a_head_are_limited() {
    let network = FakeNetwork::default();
    let limits = Limits { head_bytes: 500, fields: 5, ..Limits::default() };
    let proxy = network.proxy_with("on", limits);
    let large = format!("GET http://site.org/{} HTTP/1.1\r\n\r\n", "a".repeat(500));
    assert!(proxy.ask(large).await.starts_with("HTTP/1.1 431 "));
    let endless = "GET http://site.org/".to_owned() + &"a".repeat(100_000);
    assert!(proxy.ask(endless).await.starts_with("HTTP/1.1 431 "));
    let many = format!("GET http://site.org/ HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(6));
    assert!(proxy.ask(many).await.starts_with("HTTP/1.1 431 "));
}

#[tokio::test]
async fn the_time_for_a_head_is_limited() {
    let limits = Limits { head_time: SHORT, ..Limits::default() };
    let proxy = FakeNetwork::default().proxy_with("on", limits);
    let mut slow = proxy.connect().await;
    slow.write_all(b"GET http://site.org/ HT").await.unwrap();
    assert!(rest(&mut slow).await.starts_with("HTTP/1.1 408 "));
    for beginning in [&[][..], &[5], &[5, 1, 0, 5, 1]] {
        let mut silent = proxy.connect().await;
        silent.write_all(beginning).await.unwrap();
        assert!(rest(&mut silent).await.len() <= 2, "the connection closes without an answer");
    }
}

#[tokio::test]
async fn an_idle_tunnel_ends() {
    let network = FakeNetwork::default();
    network.site("site.org", echo().await);
    let mut proxy = network.proxy_with("on", Limits { idle: SHORT, ..Limits::default() });
    let mut stream = proxy.connect().await;
    stream.write_all(b"CONNECT site.org:443 HTTP/1.1\r\n\r\n").await.unwrap();
    assert!(rest(&mut stream).await.starts_with("HTTP/1.1 200 "));
    proxy.reports.reached().await;
}

#[tokio::test]
async fn a_busy_tunnel_stays_open() {
    let network = FakeNetwork::default();
    network.site("site.org", echo().await);
    let idle = 10 * SHORT;
    let proxy = network.proxy_with("on", Limits { idle, ..Limits::default() });
    let mut stream = proxy.connect().await;
    stream.write_all(b"CONNECT site.org:443 HTTP/1.1\r\n\r\n").await.unwrap();
    until(&mut stream, "\r\n\r\n").await;
    let begun = tokio::time::Instant::now();
    while begun.elapsed() < 2 * idle {
        stream.write_all(b"!").await.unwrap();
        until(&mut stream, "!").await;
        tokio::time::sleep(SHORT / 2).await;
    }
}

#[tokio::test]
async fn a_silent_server_times_out() {
    let network = FakeNetwork::default();
    let origin = server(|mut stream| async move {
        rest(&mut stream).await;
    });
    network.site("site.org", origin.await);
    let proxy = network.proxy_with("on", Limits { idle: SHORT, ..Limits::default() });
    let mut stream = proxy.connect().await;
    stream.write_all(b"GET http://site.org/ HTTP/1.1\r\n\r\n").await.unwrap();
    let answer = rest(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 504 "), "{answer}");
}

#[tokio::test]
async fn a_connection_above_the_limit_waits() {
    let network = FakeNetwork::default();
    network.site("site.org", echo().await);
    let proxy = network.proxy_with("on", Limits { connections: 1, ..Limits::default() });
    let mut first = proxy.connect().await;
    first.write_all(b"CONNECT site.org:443 HTTP/1.1\r\n\r\n").await.unwrap();
    until(&mut first, "\r\n\r\n").await;
    let mut second = proxy.connect().await;
    second.write_all(b"CONNECT site.org:443 HTTP/1.1\r\n\r\n").await.unwrap();
    assert!(
        tokio::time::timeout(SHORT, second.read_u8()).await.is_err(),
        "the second connection waits"
    );
    drop(first);
    until(&mut second, "\r\n\r\n").await;
}

#[tokio::test]
async fn connections_end_with_the_proxy_and_are_reported() {
    let network = FakeNetwork::default();
    network.site("site.org", echo().await);
    let mut proxy = network.proxy("on");
    let mut stream = proxy.connect().await;
    stream.write_all(b"CONNECT site.org:443 HTTP/1.1\r\n\r\n").await.unwrap();
    until(&mut stream, "\r\n\r\n").await;
    drop(proxy.proxy);
    assert_eq!(rest(&mut stream).await, "");
    assert_eq!(proxy.reports.reached().await.host, "site.org");
    let later = tokio::net::TcpStream::connect(proxy.address).await;
    assert!(later.is_err(), "the listener is closed");
}
