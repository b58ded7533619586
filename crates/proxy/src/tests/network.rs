//! A fake internet: it resolves names, redirects addresses to servers of the test, and records connections.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::connector::Connector;
use crate::host::Name;
use crate::limits::Limits;
use crate::network::{Network, PublicAddress};
use crate::proxy::Proxy;
use crate::report::{Reached, Refusal, Report};
use crate::rules::Rules;

#[derive(Clone, Default)]
pub struct FakeNetwork(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// The answers that a name will get, in order; the last one is repeated.
    names: HashMap<String, Vec<Vec<IpAddr>>>,
    own: Vec<IpAddr>,
    /// The servers of the test that stand in for an address.
    servers: HashMap<IpAddr, SocketAddr>,
    tried: Vec<SocketAddr>,
    lookups: Vec<String>,
}

impl FakeNetwork {
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

    pub fn server(&self, address: &str, origin: SocketAddr) -> &Self {
        self.0.lock().unwrap().servers.insert(address.parse().unwrap(), origin);
        self
    }

    /// Adds a name with one public address, and the server behind it.
    pub fn site(&self, name: &str, origin: SocketAddr) -> &Self {
        self.name(name, &[&["93.184.216.34"]]).server("93.184.216.34", origin)
    }

    /// The addresses that the proxy tried to connect to.
    pub fn tried(&self) -> Vec<String> {
        self.0.lock().unwrap().tried.iter().map(ToString::to_string).collect()
    }

    pub fn lookups(&self) -> Vec<String> {
        self.0.lock().unwrap().lookups.clone()
    }

    pub fn connector(&self, rules: &str) -> (Connector<Self>, Reports) {
        let (sender, receiver) = unbounded_channel();
        let reporter = Arc::new(move |report| sender.send(report).unwrap_or_default());
        let (rules, limits) = (Rules::parse(rules).unwrap(), Limits::default());
        (Connector { network: self.clone(), rules, limits, reporter }, Reports(receiver))
    }

    pub fn proxy(&self, rules: &str) -> RunningProxy {
        self.proxy_with(rules, Limits::default())
    }

    pub fn proxy_with(&self, rules: &str, limits: Limits) -> RunningProxy {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (connector, reports) = self.connector(rules);
        let proxy = Proxy::start(listener, Connector { limits, ..connector }).unwrap();
        RunningProxy { proxy, address, reports }
    }
}

impl Network for FakeNetwork {
    async fn resolve(&self, name: &Name) -> io::Result<Vec<IpAddr>> {
        let mut state = self.0.lock().unwrap();
        state.lookups.push(name.to_string());
        let answers = state.names.get_mut(name.as_str()).ok_or(io::ErrorKind::NotFound)?;
        Ok(if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() })
    }

    fn is_own(&self, address: IpAddr) -> bool {
        self.0.lock().unwrap().own.contains(&address)
    }

    async fn connect(&self, address: PublicAddress) -> io::Result<TcpStream> {
        let address = address.get();
        let origin = {
            let mut state = self.0.lock().unwrap();
            state.tried.push(address);
            state.servers.get(&address.ip()).copied()
        };
        TcpStream::connect(origin.ok_or(io::ErrorKind::ConnectionRefused)?).await
    }
}

/// What the proxy reported.
pub struct Reports(UnboundedReceiver<Report>);

impl Reports {
    pub async fn next(&mut self) -> Report {
        let next = tokio::time::timeout(Duration::from_secs(20), self.0.recv());
        next.await.expect("a report arrives").expect("the proxy runs")
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

pub struct RunningProxy {
    pub proxy: Proxy,
    pub address: SocketAddr,
    pub reports: Reports,
}

impl RunningProxy {
    pub async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends bytes, closes that direction, and reads the whole answer.
    pub async fn ask(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut stream = self.connect().await;
        stream.write_all(bytes.as_ref()).await.unwrap();
        stream.shutdown().await.unwrap();
        rest(&mut stream).await
    }
}

/// Reads until the connection ends.
pub async fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let all = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut bytes));
    all.await.expect("the connection ends").unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads until the input ends with a text.
pub async fn until(stream: &mut TcpStream, end: &str) -> String {
    let mut bytes = Vec::new();
    while !bytes.ends_with(end.as_bytes()) {
        let byte = tokio::time::timeout(Duration::from_secs(20), stream.read_u8()).await;
        let byte = byte.unwrap_or_else(|_| panic!("{end:?} does not come"));
        bytes.push(byte.unwrap_or_else(|_| panic!("{}", bytes.escape_ascii())));
    }
    String::from_utf8(bytes).unwrap()
}

/// A server that handles every connection alike.
pub async fn server<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> SocketAddr
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    address
}

/// A server that sends back what it receives until the client stops sending.
pub async fn echo() -> SocketAddr {
    server(|mut stream| async move {
        let (mut reader, mut writer) = stream.split();
        tokio::io::copy(&mut reader, &mut writer).await.ok();
        writer.shutdown().await.ok();
    })
    .await
}

/// A server that answers any request with the same text.
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

/// A server whose response is the request it received, which ends with a known text.
pub async fn mirror(end: &'static str) -> SocketAddr {
    server(move |mut stream| async move {
        let heard = until(&mut stream, end).await;
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", heard.len());
        stream.write_all((head + &heard).as_bytes()).await.unwrap();
    })
    .await
}
