//! An invented internet: what names mean, which addresses are whose, and what was connected to.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::door::Door;
use crate::host::Name;
use crate::limits::Limits;
use crate::network::{Network, Public};
use crate::report::{Reached, Refusal, Report};
use crate::rules::Rules;
use crate::serve::Proxy;

#[derive(Clone, Default)]
pub struct World(Arc<Mutex<Facts>>);

#[derive(Default)]
struct Facts {
    /// The answers to come for each name; the last one stays.
    names: HashMap<String, Vec<Vec<IpAddr>>>,
    own: Vec<IpAddr>,
    /// Who really answers for an address.
    servers: HashMap<IpAddr, SocketAddr>,
    tried: Vec<SocketAddr>,
    lookups: Vec<String>,
}

impl World {
    pub fn name(&self, name: &str, answers: &[&[&str]]) -> &Self {
        let read = |answer: &&[&str]| answer.iter().map(|text| text.parse().unwrap()).collect();
        let answers = answers.iter().map(read).collect();
        self.0.lock().unwrap().names.insert(name.to_owned(), answers);
        self
    }

    pub fn own(&self, address: &str) -> &Self {
        self.0.lock().unwrap().own.push(address.parse().unwrap());
        self
    }

    pub fn server(&self, address: &str, place: SocketAddr) -> &Self {
        self.0.lock().unwrap().servers.insert(address.parse().unwrap(), place);
        self
    }

    /// A name with one public address, where a server answers.
    pub fn site(&self, name: &str, place: SocketAddr) -> &Self {
        self.name(name, &[&["93.184.216.34"]]).server("93.184.216.34", place)
    }

    /// What was connected to.
    pub fn tried(&self) -> Vec<String> {
        self.0.lock().unwrap().tried.iter().map(ToString::to_string).collect()
    }

    pub fn lookups(&self) -> Vec<String> {
        self.0.lock().unwrap().lookups.clone()
    }

    pub fn door(&self, rules: &str) -> (Door<Self>, Reports) {
        let (sender, receiver) = unbounded_channel();
        let reporter = Arc::new(move |report| sender.send(report).unwrap_or_default());
        let (rules, limits) = (Rules::parse(rules).unwrap(), Limits::default());
        (Door { network: self.clone(), rules, limits, reporter }, Reports(receiver))
    }

    pub fn proxy(&self, rules: &str) -> Running {
        self.proxy_with(rules, Limits::default())
    }

    pub fn proxy_with(&self, rules: &str, limits: Limits) -> Running {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let place = listener.local_addr().unwrap();
        let (door, reports) = self.door(rules);
        let proxy = Proxy::start(listener, Door { limits, ..door }).unwrap();
        Running { proxy, place, reports }
    }
}

impl Network for World {
    async fn resolve(&self, name: &Name) -> io::Result<Vec<IpAddr>> {
        let mut facts = self.0.lock().unwrap();
        facts.lookups.push(name.to_string());
        let answers = facts.names.get_mut(name.as_str()).ok_or(io::ErrorKind::NotFound)?;
        Ok(if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() })
    }

    fn is_own(&self, address: IpAddr) -> bool {
        self.0.lock().unwrap().own.contains(&address)
    }

    async fn connect(&self, address: Public) -> io::Result<TcpStream> {
        let address = address.get();
        let place = {
            let mut facts = self.0.lock().unwrap();
            facts.tried.push(address);
            facts.servers.get(&address.ip()).copied()
        };
        TcpStream::connect(place.ok_or(io::ErrorKind::ConnectionRefused)?).await
    }
}

/// What the caller is told.
pub struct Reports(UnboundedReceiver<Report>);

impl Reports {
    pub async fn next(&mut self) -> Report {
        let next = tokio::time::timeout(Duration::from_secs(20), self.0.recv());
        next.await.expect("a report is due").expect("the proxy lives")
    }

    pub async fn refusal(&mut self) -> Refusal {
        match self.next().await {
            Report::Refused(refusal) => refusal,
            other => panic!("{other:?}"),
        }
    }

    pub async fn reached(&mut self) -> Reached {
        match self.next().await {
            Report::Reached(reached) => reached,
            other => panic!("{other:?}"),
        }
    }
}

pub struct Running {
    pub proxy: Proxy,
    pub place: SocketAddr,
    pub reports: Reports,
}

impl Running {
    pub async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.place).await.unwrap()
    }

    /// Sends bytes, says that there are no more, and reads all that is answered.
    pub async fn ask(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut stream = self.connect().await;
        stream.write_all(bytes.as_ref()).await.unwrap();
        stream.shutdown().await.unwrap();
        rest(&mut stream).await
    }
}

/// Everything until the end.
pub async fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let all = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut bytes));
    all.await.expect("the connection ends").unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads until a text has come.
pub async fn until(stream: &mut TcpStream, end: &str) -> String {
    let mut bytes = Vec::new();
    while !bytes.ends_with(end.as_bytes()) {
        let byte = tokio::time::timeout(Duration::from_secs(20), stream.read_u8()).await;
        let byte = byte.unwrap_or_else(|_| panic!("{end:?} does not come"));
        bytes.push(byte.unwrap_or_else(|_| panic!("{}", bytes.escape_ascii())));
    }
    String::from_utf8(bytes).unwrap()
}

/// A server that does the same with every connection.
pub async fn server<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> SocketAddr
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let place = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    place
}

/// A server that sends back what it gets, and ends when the other side has.
pub async fn echo() -> SocketAddr {
    server(|mut stream| async move {
        let (mut reader, mut writer) = stream.split();
        tokio::io::copy(&mut reader, &mut writer).await.ok();
        writer.shutdown().await.ok();
    })
    .await
}

/// A server that answers each request with a text, whatever it is.
pub async fn answers(text: impl Into<String>) -> SocketAddr {
    let text = text.into();
    server(move |mut stream| {
        let text = text.clone();
        async move {
            until(&mut stream, "\r\n\r\n").await;
            stream.write_all(text.as_bytes()).await.unwrap();
            stream.shutdown().await.ok();
        }
    })
    .await
}

/// A server that answers with what it was sent, which has a known end.
pub async fn mirror(end: &'static str) -> SocketAddr {
    server(move |mut stream| async move {
        let heard = until(&mut stream, end).await;
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", heard.len());
        stream.write_all((head + &heard).as_bytes()).await.unwrap();
    })
    .await
}
