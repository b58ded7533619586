//! What a connection may cost, and that everything ends with the proxy.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::world::{World, echo, rest, server, until};
use crate::limits::Limits;

/// Soon, where a test waits for it.
const SOON: Duration = Duration::from_millis(100);

#[tokio::test]
async fn heads_have_a_size_and_a_number_of_fields() {
    let world = World::default();
    let limits = Limits { head_bytes: 500, fields: 5, ..Limits::default() };
    let proxy = world.proxy_with("on", limits);
    let large = format!("GET http://site.org/{} HTTP/1.1\r\n\r\n", "a".repeat(500));
    assert!(proxy.ask(large).await.starts_with("HTTP/1.1 431 "));
    let endless = "GET http://site.org/".to_owned() + &"a".repeat(100_000);
    assert!(proxy.ask(endless).await.starts_with("HTTP/1.1 431 "));
    let many = format!("GET http://site.org/ HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(6));
    assert!(proxy.ask(many).await.starts_with("HTTP/1.1 431 "));
}

#[tokio::test]
async fn heads_have_a_time() {
    let limits = Limits { head_time: SOON, ..Limits::default() };
    let proxy = World::default().proxy_with("on", limits);
    let mut slow = proxy.connect().await;
    slow.write_all(b"GET http://site.org/ HT").await.unwrap();
    assert!(rest(&mut slow).await.starts_with("HTTP/1.1 408 "));
    for beginning in [&[][..], &[5], &[5, 1, 0, 5, 1]] {
        let mut silent = proxy.connect().await;
        silent.write_all(beginning).await.unwrap();
        assert!(rest(&mut silent).await.len() <= 2, "it is just closed");
    }
}

#[tokio::test]
async fn a_tunnel_in_which_nothing_moves_ends() {
    let world = World::default();
    world.site("site.org", echo().await);
    let mut proxy = world.proxy_with("on", Limits { idle: SOON, ..Limits::default() });
    let mut stream = proxy.connect().await;
    stream.write_all(b"CONNECT site.org:443 HTTP/1.1\r\n\r\n").await.unwrap();
    assert!(rest(&mut stream).await.starts_with("HTTP/1.1 200 "));
    proxy.reports.reached().await;
}

#[tokio::test]
async fn a_tunnel_in_which_something_moves_goes_on() {
    let world = World::default();
    world.site("site.org", echo().await);
    let idle = 10 * SOON;
    let proxy = world.proxy_with("on", Limits { idle, ..Limits::default() });
    let mut stream = proxy.connect().await;
    stream.write_all(b"CONNECT site.org:443 HTTP/1.1\r\n\r\n").await.unwrap();
    until(&mut stream, "\r\n\r\n").await;
    let begun = tokio::time::Instant::now();
    while begun.elapsed() < 2 * idle {
        stream.write_all(b"!").await.unwrap();
        until(&mut stream, "!").await;
        tokio::time::sleep(SOON / 2).await;
    }
}

#[tokio::test]
async fn a_server_that_says_nothing_is_given_up() {
    let world = World::default();
    let place = server(|mut stream| async move {
        rest(&mut stream).await;
    });
    world.site("site.org", place.await);
    let proxy = world.proxy_with("on", Limits { idle: SOON, ..Limits::default() });
    let mut stream = proxy.connect().await;
    stream.write_all(b"GET http://site.org/ HTTP/1.1\r\n\r\n").await.unwrap();
    let answer = rest(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 504 "), "{answer}");
}

#[tokio::test]
async fn one_connection_too_many_waits_for_its_turn() {
    let world = World::default();
    world.site("site.org", echo().await);
    let proxy = world.proxy_with("on", Limits { connections: 1, ..Limits::default() });
    let mut first = proxy.connect().await;
    first.write_all(b"CONNECT site.org:443 HTTP/1.1\r\n\r\n").await.unwrap();
    until(&mut first, "\r\n\r\n").await;
    let mut second = proxy.connect().await;
    second.write_all(b"CONNECT site.org:443 HTTP/1.1\r\n\r\n").await.unwrap();
    assert!(tokio::time::timeout(SOON, second.read_u8()).await.is_err(), "it waits");
    drop(first);
    until(&mut second, "\r\n\r\n").await;
}

#[tokio::test]
async fn everything_ends_with_the_proxy_and_is_reported() {
    let world = World::default();
    world.site("site.org", echo().await);
    let mut proxy = world.proxy("on");
    let mut stream = proxy.connect().await;
    stream.write_all(b"CONNECT site.org:443 HTTP/1.1\r\n\r\n").await.unwrap();
    until(&mut stream, "\r\n\r\n").await;
    drop(proxy.proxy);
    assert_eq!(rest(&mut stream).await, "");
    assert_eq!(proxy.reports.reached().await.host, "site.org");
    let later = tokio::net::TcpStream::connect(proxy.place).await;
    assert!(later.is_err(), "nobody listens any more");
}
