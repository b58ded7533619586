//! Common programs that find the proxy through their environment variables alone.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::network::{FakeNetwork, RunningProxy, echo, mirror, server, until};
use crate::environment::environment_for;
use crate::report::Reason;

async fn run(proxy: &RunningProxy, program: &str, args: &[&str]) -> Output {
    let path = std::env::var("PATH").unwrap();
    let mut command = Command::new(program);
    command.args(args).env_clear().env("PATH", path).kill_on_drop(true);
    command.envs(environment_for(proxy.address.port(), "run-7"));
    command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_TERMINAL_PROMPT", "0");
    command.output().await.unwrap()
}

async fn stdout(proxy: &RunningProxy, program: &str, args: &[&str]) -> String {
    let output = run(proxy, program, args).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A server for the files of a folder.
async fn files(root: &Path) -> SocketAddr {
    let root: Arc<PathBuf> = Arc::new(root.to_owned());
    server(move |mut stream| {
        let root = root.clone();
        async move {
            let head = until(&mut stream, "\r\n\r\n").await;
            let path = head.split(' ').nth(1).unwrap().split('?').next().unwrap();
            let (status, body) = match std::fs::read(root.join(&path[1..])) {
                Ok(body) => ("200 OK", body),
                Err(_) => ("404 Not Found", Vec::new()),
            };
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", body.len());
            stream.write_all(&[head.as_bytes(), &body].concat()).await.unwrap();
        }
    })
    .await
}

#[tokio::test]
async fn curl_reaches_allowed_hosts_and_shows_refusals() {
    let network = FakeNetwork::default();
    network.site("site.org", mirror("\r\n\r\n").await);
    let mut proxy = network.proxy("site.org");
    let heard = stdout(&proxy, "curl", &["-sS", "http://site.org/a", "http://site.org/b"]).await;
    assert!(heard.contains("GET /a HTTP/1.1") && heard.contains("GET /b HTTP/1.1"), "{heard}");
    assert!(!heard.to_lowercase().contains("proxy"), "{heard}");
    assert_eq!(proxy.reports.reached().await.label.as_deref(), Some("run-7"));
    proxy.reports.reached().await;

    let refused = stdout(&proxy, "curl", &["-sS", "http://evil.org/"]).await;
    let text = "no connection to evil.org port 80: the host is not in the list; `--net evil.org` would allow it";
    assert_eq!(refused, format!("mcpz: {text}\n"));
    let refusal = proxy.reports.refusal().await;
    assert_eq!((refusal.to_string().as_str(), refusal.label.as_deref()), (text, Some("run-7")));

    let refused = run(&proxy, "curl", &["-sS", "https://evil.org/"]).await;
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("403"), "{refused:?}");
    assert_eq!(proxy.reports.refusal().await.port, 443);
}

#[tokio::test]
async fn curl_posts_a_large_body_and_gets_it_back() {
    let network = FakeNetwork::default();
    let origin = server(|mut stream| async move {
        until(&mut stream, "\r\n\r\n").await;
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n";
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await.unwrap();
        stream.write_all(head).await.unwrap();
        let (mut reader, mut writer) = stream.split();
        tokio::io::copy(&mut reader, &mut writer).await.ok();
    });
    network.site("site.org", origin.await);
    let proxy = network.proxy("site.org");
    let folder = tempfile::tempdir().unwrap();
    let (sent, got) = (folder.path().join("sent"), folder.path().join("got"));
    std::fs::write(&sent, (0..3_000_000u32).map(|n| n as u8).collect::<Vec<_>>()).unwrap();
    let body = format!("@{}", sent.display());
    let got_path = got.display().to_string();
    stdout(&proxy, "curl", &["-sS", "--data-binary", &body, "-o", &got_path, "http://site.org/"])
        .await;
    assert!(std::fs::read(sent).unwrap() == std::fs::read(got).unwrap());
}

#[tokio::test]
async fn curl_tunnels_by_connect_and_by_socks() {
    let network = FakeNetwork::default();
    network.site("site.org", mirror("\r\n\r\n").await);
    let mut proxy = network.proxy("site.org");
    let address = proxy.address.to_string();
    let socks = format!("socks5h://run-8:x@{address}");
    for args in [
        &["-sS", "--proxytunnel", "http://site.org/"][..],
        &["-sS", "--socks5-hostname", &address, "http://site.org/"],
        &["-sS", "--proxy", &socks, "http://site.org/"],
    ] {
        assert!(stdout(&proxy, "curl", args).await.starts_with("GET / HTTP/1.1"));
        assert_eq!(proxy.reports.reached().await.port, 80);
    }
    for (host, reason) in [("evil.org", Reason::NotListed), ("1.1.1.1", Reason::NotListed)] {
        let url = format!("http://{host}/");
        let refused = run(&proxy, "curl", &["-sS", "--socks5-hostname", &address, &url]).await;
        assert_eq!(refused.status.code(), Some(97), "{refused:?}");
        assert_eq!(proxy.reports.refusal().await.reason, reason);
    }
}

#[tokio::test]
async fn python_reaches_allowed_hosts_and_shows_refusals() {
    let network = FakeNetwork::default();
    network.site("site.org", mirror("\r\n\r\n").await);
    let mut proxy = network.proxy("site.org");
    let fetch = |url: &str| format!("import urllib.request as u; print(u.urlopen('{url}').read())");
    let heard = stdout(&proxy, "python3", &["-c", &fetch("http://site.org/a")]).await;
    assert!(heard.starts_with("b'GET /a HTTP/1.1"), "{heard}");
    assert_eq!(proxy.reports.reached().await.label.as_deref(), Some("run-7"));
    let refused = run(&proxy, "python3", &["-c", &fetch("https://evil.org/")]).await;
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        text.contains(
            "Tunnel connection failed: 403 Forbidden: no connection to evil.org port 443"
        ),
        "{text}"
    );
    assert!(text.contains("`--net evil.org` would allow it"), "{text}");
}

#[tokio::test]
async fn python_keeps_a_connection_for_several_requests() {
    let network = FakeNetwork::default();
    network.site("site.org", mirror("\r\n\r\n").await);
    let proxy = network.proxy("site.org");
    let script = format!(
        "import http.client as h\nc = h.HTTPConnection('127.0.0.1', {})\nc.connect()\ns = c.sock\n\
         for n in range(5):\n c.request('GET', f'http://site.org/{{n}}')\n c.getresponse().read()\n\
         print(c.sock is s)",
        proxy.address.port()
    );
    assert_eq!(stdout(&proxy, "python3", &["-c", &script]).await, "True\n");
}

#[tokio::test]
async fn git_clones_through_the_proxy() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    let script = "git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m hello \
                  && git update-server-info";
    std::fs::create_dir(&source).unwrap();
    let made = Command::new("sh").args(["-c", script]).current_dir(&source).output().await.unwrap();
    assert!(made.status.success(), "{made:?}");
    let network = FakeNetwork::default();
    network.site("site.org", files(&source).await);
    let mut proxy = network.proxy("site.org");
    let clone = folder.path().join("clone").display().to_string();
    stdout(&proxy, "git", &["clone", "-q", "http://site.org/.git", &clone]).await;
    assert_eq!(stdout(&proxy, "git", &["-C", &clone, "log", "--format=%s"]).await, "hello\n");
    assert_eq!(proxy.reports.reached().await.label.as_deref(), Some("run-7"));

    let refused = run(&proxy, "git", &["ls-remote", "https://evil.org/x.git"]).await;
    assert!(String::from_utf8_lossy(&refused.stderr).contains("403"), "{refused:?}");
}

#[tokio::test]
async fn many_tunnels_at_once_do_not_disturb_each_other() {
    let network = FakeNetwork::default();
    network.site("site.org", echo().await);
    let proxy = Arc::new(network.proxy("site.org"));
    let one = |n: usize| {
        let proxy = proxy.clone();
        tokio::spawn(async move {
            let bytes = format!("{n} ").repeat(20_000);
            let answer = proxy.ask(format!("CONNECT site.org:443 HTTP/1.1\r\n\r\n{bytes}")).await;
            assert!(answer.ends_with(&format!("\r\n\r\n{bytes}")), "{n}");
        })
    };
    for task in (0..100).map(one).collect::<Vec<_>>() {
        task.await.unwrap();
    }
}
