//! A collector of traces, on loopback, that does as it is told.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use serde_json::{Value, json};
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::PATIENCE;

/// What it answers to each batch, one after the other; the last one goes on.
#[derive(Debug, Clone, Copy)]
pub enum Manner {
    Takes,
    /// A status, and to come again at once.
    Fails(u16),
    /// Takes the connection, and never answers.
    Hangs,
}

/// A batch, as it came.
#[derive(Debug)]
pub struct Batch {
    pub path: String,
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

/// A span, as the collector reads it.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    pub name: String,
    pub kind: u64,
    pub trace: String,
    pub id: String,
    pub parent: String,
    pub state: String,
    pub nanoseconds: i64,
    pub attributes: BTreeMap<String, Value>,
    pub failed: bool,
    pub message: String,
    pub resource: BTreeMap<String, Value>,
}

pub struct Collector {
    pub address: SocketAddr,
    batches: Receiver<Batch>,
    /// What came while something else was waited for.
    pub seen: Vec<Seen>,
    pub raw: Vec<u8>,
}

impl Collector {
    pub fn start(manners: &[Manner]) -> Self {
        Self::start_with(manners, None)
    }

    pub fn start_with(manners: &[Manner], tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, batches) = channel();
        let mut manners = manners.to_vec();
        std::thread::spawn(move || {
            let mut kept = Vec::new();
            for socket in listener.incoming().flatten() {
                let manner = manners[0];
                if manners.len() > 1 {
                    manners.remove(0);
                }
                let Manner::Hangs = manner else {
                    match &tls {
                        None => answer(&mut &socket, manner, &sender),
                        Some(tls) => {
                            let connection = ServerConnection::new(tls.clone()).unwrap();
                            answer(&mut StreamOwned::new(connection, socket), manner, &sender);
                        }
                    }
                    continue;
                };
                let (path, headers) = (String::new(), BTreeMap::new());
                let _ = sender.send(Batch { path, headers, body: Vec::new() });
                kept.push(socket);
            }
        });
        Self { address, batches, seen: Vec::new(), raw: Vec::new() }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The next batch, whatever is answered to it.
    pub fn batch(&mut self) -> Batch {
        let batch = self.batches.recv_timeout(PATIENCE).expect("a batch comes");
        self.raw.extend(&batch.body);
        batch
    }

    /// The first span that fits, waiting for it if need be; it is not seen again.
    pub fn span(&mut self, fits: impl Fn(&Seen) -> bool) -> Seen {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.seen.iter().position(&fits) {
                return self.seen.remove(at);
            }
            assert!(Instant::now() < until, "it is not among {:#?}", self.seen);
            let batch = self.batch();
            self.seen.extend(spans(&batch));
        }
    }

    pub fn named(&mut self, name: &str) -> Seen {
        self.span(|span| span.name == name)
    }
}

fn answer(stream: &mut (impl Read + Write), manner: Manner, sender: &Sender<Batch>) {
    let mut reader = BufReader::new(&mut *stream);
    let mut line = String::new();
    let _ = reader.read_line(&mut line);
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        let _ = reader.read_line(&mut line);
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    let _ = reader.read_exact(&mut body);
    let status = match manner {
        Manner::Fails(status) => status,
        _ => 200,
    };
    let _ = write!(
        stream,
        "HTTP/1.1 {status} Thus\r\nretry-after: 0\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    );
    let _ = stream.flush();
    let _ = sender.send(Batch { path, headers, body });
}

fn spans(batch: &Batch) -> Vec<Seen> {
    assert_eq!(batch.headers["content-type"], "application/x-protobuf");
    from_protobuf(&batch.body)
}

/// What the fields of a message are: numbers, or bytes.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    fn variable(bytes: &mut &[u8]) -> u64 {
        let mut number = 0;
        for shift in (0..).step_by(7) {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        number
    }
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let tag = variable(&mut bytes);
        let field = match tag & 7 {
            0 => Field::Number(variable(&mut bytes)),
            1 => {
                let (fixed, rest) = bytes.split_at(8);
                bytes = rest;
                Field::Number(u64::from_le_bytes(fixed.try_into().unwrap()))
            }
            2 => {
                let length = variable(&mut bytes) as usize;
                let (inner, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(inner)
            }
            other => panic!("kind {other}"),
        };
        all.push((tag >> 3, field));
    }
    all
}

fn inner(bytes: &[u8], wanted: u64) -> Vec<&[u8]> {
    let all = fields(bytes).into_iter().filter(|(number, _)| *number == wanted);
    all.filter_map(|(_, field)| match field {
        Field::Bytes(bytes) => Some(bytes),
        Field::Number(_) => None,
    })
    .collect()
}

fn number(bytes: &[u8], wanted: u64) -> u64 {
    let found = fields(bytes).into_iter().find(|(number, _)| *number == wanted);
    match found {
        Some((_, Field::Number(number))) => number,
        _ => 0,
    }
}

fn from_protobuf(all: &[u8]) -> Vec<Seen> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let first = |bytes, field| inner(bytes, field).first().map(|bytes| text(bytes));
    let hexadecimal = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let id = |bytes, field| inner(bytes, field).first().map_or(String::new(), |id| hexadecimal(id));
    let attributes = |bytes, field| -> BTreeMap<String, Value> {
        let value = |bytes| match fields(bytes).pop().unwrap() {
            (1, Field::Bytes(bytes)) => json!(text(bytes)),
            (2, Field::Number(yes)) => json!(yes == 1),
            (3, Field::Number(number)) => json!(number as i64),
            (4, Field::Number(bits)) => json!(f64::from_bits(bits)),
            (other, _) => panic!("attribute of kind {other}"),
        };
        let pairs = inner(bytes, field).into_iter();
        pairs.map(|pair| (first(pair, 1).unwrap(), value(inner(pair, 2)[0]))).collect()
    };
    let mut seen = Vec::new();
    for group in inner(all, 1) {
        for scope in inner(group, 2) {
            assert_eq!(first(inner(scope, 1)[0], 1).as_deref(), Some("mcpz"));
            seen.extend(inner(scope, 2).into_iter().map(|span| {
                let status = inner(span, 15).first().copied().unwrap_or_default();
                Seen {
                    name: first(span, 5).unwrap(),
                    kind: number(span, 6),
                    trace: id(span, 1),
                    id: id(span, 2),
                    parent: id(span, 4),
                    state: first(span, 3).unwrap_or_default(),
                    nanoseconds: number(span, 8) as i64 - number(span, 7) as i64,
                    attributes: attributes(span, 9),
                    failed: number(status, 3) == 2,
                    message: first(status, 2).unwrap_or_default(),
                    resource: attributes(inner(group, 1)[0], 1),
                }
            }));
        }
    }
    seen
}
