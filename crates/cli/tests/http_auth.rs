//! Who gets in over HTTP: with a token of the settings, one that was made, one of an authorization
//! server; and over TLS.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::io::{BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};
use support::http::{HttpServer, Request, Response, call, initialize};
use support::{MCPZ, PATIENCE};
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

fn with_token(token: &str) -> Request {
    Request::post(&initialize("2025-11-25")).by(token)
}

#[test]
fn without_a_token_one_is_made_and_shown_once_with_a_configuration() {
    let server = HttpServer::start_command(&mut Command::new(MCPZ), &[], "");
    let said = server.said.lock().unwrap();
    let mut text = String::new();
    while serde_json::from_str::<Value>(&text).is_err() {
        let line = said.recv_timeout(PATIENCE).unwrap();
        if line.starts_with('{') || !text.is_empty() {
            text.push_str(&line);
        }
    }
    let client = &serde_json::from_str::<Value>(&text).unwrap()["mcpServers"]["mcpz"];
    assert_eq!(client["url"], format!("http://{}/mcp", server.address));
    let header = client["headers"]["Authorization"].as_str().unwrap();
    let token = header.strip_prefix("Bearer ").unwrap();
    assert_eq!(token.len(), 64);
    assert_eq!(server.send(&with_token(token)).status, 200);
    assert_eq!(server.send(&with_token(&"0".repeat(64))).status, 401);
}

#[test]
fn everybody_gets_in_only_where_that_was_said() {
    let server = HttpServer::start_command(&mut Command::new(MCPZ), &["--auth", "none"], "");
    let warning = server.said.lock().unwrap().recv_timeout(PATIENCE).unwrap();
    assert!(warning.contains("anyone who can reach this address can run commands"), "{warning}");
    let request = Request::post(&initialize("2025-11-25")).without("authorization");
    assert_eq!(server.send(&request).status, 200);
    let both = Command::new(MCPZ)
        .args(["server", "shell", "--http", "--auth", "none"])
        .env("MCP_HTTP_TOKEN", "0123456789abcdef")
        .output()
        .unwrap();
    assert!(!both.status.success());
    assert!(String::from_utf8_lossy(&both.stderr).contains("keep only one of the two"));
}

#[test]
fn settings_that_cannot_be_meant_are_refused() {
    for (flags, token, complaint) in [
        (&["--bind", "nonsense"][..], "0123456789abcdef", "not an address to listen on"),
        (&["--path", "mcp"], "0123456789abcdef", "must begin with a slash"),
        (&[], "short", "at least 16 characters"),
        (&["--tls-cert", "x.pem"], "0123456789abcdef", "both a certificate and a key"),
        (
            &["--tls-cert", "/no", "--tls-key", "/no"],
            "0123456789abcdef",
            "cannot use the certificate",
        ),
    ] {
        let output = Command::new(MCPZ)
            .args(["server", "shell", "--http"])
            .args(flags)
            .env("MCP_HTTP_TOKEN", token)
            .env("XDG_CONFIG_HOME", "/nonexistent")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(complaint), "{flags:?}: {said}");
    }
}

#[test]
fn the_token_reaches_no_command() {
    let server = HttpServer::start(&[]);
    let command = "env; cat /proc/$PPID/environ | tr '\\0' '\\n'";
    let request = Request::alone(call(1, "execute_command", json!({"command": command})));
    let answer = server.send(&request).messages().pop().unwrap();
    let output = answer["result"]["structuredContent"]["output"].as_str().unwrap();
    assert!(output.contains("PATH="), "{output}");
    assert!(!output.contains(support::http::TOKEN), "{output}");
}

#[test]
fn address_and_path_can_be_set_in_the_environment() {
    let mut child = Command::new(MCPZ)
        .args(["server", "shell", "--http"])
        .env("MCP_HTTP_BIND", "127.0.0.1:0")
        .env("MCP_HTTP_PATH", "/elsewhere")
        .env("MCP_HTTP_TOKEN", "0123456789abcdef")
        .env("XDG_CONFIG_HOME", "/nonexistent")
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    std::io::BufRead::read_line(&mut stderr, &mut line).unwrap();
    support::kill("TERM", child.id());
    assert!(child.wait().unwrap().success(), "it ends when it is asked to");
    assert!(
        line.starts_with("mcpz: listening on 127.0.0.1:") && line.ends_with("/elsewhere\n"),
        "{line}"
    );
}

/// An authorization server's key: its private half, and the set of public ones that tells it.
struct Authority {
    private: EncodingKey,
    keys: Value,
}

impl Authority {
    fn new(id: &str) -> Self {
        let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
        let point = pair.public_key_raw();
        let (x, y) = (&point[1..33], &point[33..65]);
        let encode = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
        let keys = json!({"keys": [{
            "kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": id,
            "x": encode(x), "y": encode(y),
        }]});
        let private = EncodingKey::from_ec_der(&pair.serialize_der());
        Self { private, keys }
    }

    fn token(&self, id: &str, claims: &Value) -> String {
        let header = Header { kid: Some(id.into()), ..Header::new(Algorithm::ES256) };
        jsonwebtoken::encode(&header, claims, &self.private).unwrap()
    }
}

fn claims() -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    json!({
        "iss": "https://login.example", "aud": "https://mcp.example/mcp", "sub": "ada",
        "exp": now + 600, "scope": "openid shell",
    })
}

fn config(jwks: &str) -> String {
    format!(
        "[http.oauth]\nissuer = \"https://login.example\"\naudience = \"https://mcp.example/mcp\"\n\
         jwks = \"{jwks}\"\nscopes = [\"shell\"]\n"
    )
}

#[test]
fn a_token_of_the_authorization_server_opens_the_door_if_all_of_it_is_right() {
    let authority = Authority::new("one");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), authority.keys.to_string()).unwrap();
    let place = config(file.path().to_str().unwrap());
    let server = HttpServer::start_command(&mut Command::new(MCPZ), &[], &place);
    let status = |token: &str| server.send(&with_token(token)).status;
    assert_eq!(status(&authority.token("one", &claims())), 200);

    let changed = |change: fn(&mut Value)| {
        let mut claims = claims();
        change(&mut claims);
        authority.token("one", &claims)
    };
    let wrong: [fn(&mut Value); 11] = [
        |claims| claims["iss"] = json!("https://evil.example"),
        |claims| claims["iss"] = json!(["https://login.example"]),
        |claims| claims["iss"] = json!(["https://evil.example", "https://login.example"]),
        |claims| claims["sub"] = json!(""),
        |claims| claims["sub"] = json!(" "),
        |claims| claims["aud"] = json!("https://other.example"),
        |claims| claims["exp"] = json!(1_000_000_000),
        |claims| claims["nbf"] = json!(4_000_000_000_u64),
        |claims| drop(claims.as_object_mut().unwrap().remove("exp")),
        |claims| drop(claims.as_object_mut().unwrap().remove("aud")),
        |claims| drop(claims.as_object_mut().unwrap().remove("sub")),
    ];
    for (number, change) in wrong.into_iter().enumerate() {
        assert_eq!(status(&changed(change)), 401, "case {number}");
    }
    let poor = server.send(&with_token(&changed(|claims| claims["scope"] = json!("openid"))));
    assert_eq!(poor.status, 403);
    let challenge = poor.header("www-authenticate").unwrap();
    assert!(
        challenge.contains("error=\"insufficient_scope\"") && challenge.contains("scope=\"shell\"")
    );

    // Signed by somebody else, under a name that is not known, not at all, or with what is public.
    assert_eq!(status(&Authority::new("one").token("one", &claims())), 401);
    assert_eq!(status(&authority.token("two", &claims())), 401);
    let encode = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let unsigned =
        format!("{}.{}.", encode(&json!({"alg": "none", "kid": "one"})), encode(&claims()));
    assert_eq!(status(&unsigned), 401);
    let header = Header { kid: Some("one".into()), ..Header::new(Algorithm::HS256) };
    let public = EncodingKey::from_secret(authority.keys.to_string().as_bytes());
    assert_eq!(status(&jsonwebtoken::encode(&header, &claims(), &public).unwrap()), 401);
    let token = authority.token("one", &claims());
    assert_eq!(status(&token[..token.len() - 2]), 401);
}

#[test]
fn clients_can_find_out_where_to_get_a_token() {
    let authority = Authority::new("one");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), authority.keys.to_string()).unwrap();
    let place = config(file.path().to_str().unwrap());
    let server = HttpServer::start_command(&mut Command::new(MCPZ), &[], &place);
    let refused = server.send(&Request::post(&initialize("2025-11-25")).without("authorization"));
    assert_eq!(refused.status, 401);
    let expected = "resource_metadata=\"https://mcp.example/.well-known/oauth-protected-resource\"";
    assert!(refused.header("www-authenticate").unwrap().contains(expected));
    for path in ["", "/mcp"] {
        let path = format!("/.well-known/oauth-protected-resource{path}");
        let told = server.send(&Request::new("GET", &path).without("authorization"));
        assert_eq!(told.status, 200);
        assert_eq!(told.json()["resource"], "https://mcp.example/mcp");
        assert_eq!(told.json()["authorization_servers"], json!(["https://login.example"]));
    }
    let plain = HttpServer::start(&[]);
    let path = "/.well-known/oauth-protected-resource";
    assert_eq!(plain.send(&Request::new("GET", path)).status, 404, "there is no such server");
}

#[test]
fn keys_are_fetched_from_their_address_when_they_are_needed() {
    let authority = Authority::new("one");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let keys = authority.keys.to_string();
    let asked = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut head = [0; 1000];
        let read = socket.read(&mut head).unwrap();
        let length = keys.len();
        write!(socket, "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{keys}").unwrap();
        String::from_utf8_lossy(&head[..read]).into_owned()
    });
    let place = config(&format!("http://{address}/keys"));
    let server = HttpServer::start_command(&mut Command::new(MCPZ), &[], &place);
    let token = authority.token("one", &claims());
    assert_eq!(server.send(&with_token(&token)).status, 200);
    assert_eq!(server.send(&with_token(&token)).status, 200, "and kept");
    assert!(asked.join().unwrap().starts_with("GET /keys HTTP/1.1\r\n"));
    let far = HttpServerError::start(&config("http://login.example/keys"));
    assert!(far.contains("must be a file or an https URL"), "{far}");
}

/// What a server says that does not start.
struct HttpServerError;

impl HttpServerError {
    fn start(config: &str) -> String {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), config).unwrap();
        let mut command = Command::new(MCPZ);
        command.args(["server", "shell", "--http", "--config"]).arg(file.path());
        let output = command.output().unwrap();
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    }
}

/// Writes a certificate for localhost and its key into a folder.
fn certificate(folder: &Path) -> rcgen::CertifiedKey<rcgen::KeyPair> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(folder.join("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(folder.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    made
}

#[test]
fn over_tls_the_same_is_served_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let made = certificate(folder.path());
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (cert, key) = (path("cert.pem"), path("key.pem"));
    let server = HttpServer::start(&["--tls-cert", &cert, "--tls-key", &key]);
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let config = Arc::new(config);
    let ask = || {
        let name = ServerName::try_from("localhost").unwrap();
        let connection = ClientConnection::new(config.clone(), name).unwrap();
        let mut stream = StreamOwned::new(connection, server.connect());
        stream.write_all(&Request::post(&initialize("2025-11-25")).bytes()).unwrap();
        let response = Response::read(&mut BufReader::new(stream));
        assert_eq!(response.json()["result"]["serverInfo"]["name"], "mcpz-shell");
    };
    ask();
    // A client that speaks plainly, or not at all, keeps nobody else out.
    let plain = server.raw(&Request::post(&initialize("2025-11-25")).bytes());
    assert_ne!(plain.status, 200);
    let _silent = server.connect();
    ask();
}
