//! A connection that speaks SOCKS 5 (RFC 1928).
//!
//! Clients should leave the lookup of names to the proxy (`socks5h`). If a client looks a name up itself, the
//! rules see only the address.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bytes::Bytes;
use thiserror::Error;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use crate::connector::{ConnectError, Connector};
use crate::host::{Host, HostError};
use crate::network::Network;
use crate::peer::Peer;
use crate::target::{Target, parse_label};
use crate::traffic::Traffic;

pub const VERSION: u8 = 5;

const NO_AUTHENTICATION: u8 = 0;
const USER_AND_PASSWORD: u8 = 2;
const NO_ACCEPTABLE_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;

#[derive(Debug)]
enum Reply {
    Granted = 0,
    NotAllowed = 2,
    HostUnreachable = 4,
    ConnectionRefused = 5,
    UnknownCommand = 7,
    UnknownAddressType = 8,
}

#[derive(Debug, Error)]
enum SocksError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("the client was refused: {0:?}")]
    Denied(Reply),
}

impl From<ConnectError> for SocksError {
    fn from(error: ConnectError) -> Self {
        Self::Denied(match error {
            ConnectError::Refused(_) => Reply::NotAllowed,
            ConnectError::Unreachable(_, error) if error.kind() == ErrorKind::ConnectionRefused => {
                Reply::ConnectionRefused
            }
            ConnectError::NotFound(_) | ConnectError::Unreachable(..) => Reply::HostUnreachable,
        })
    }
}

/// The host a client asks for, not checked yet.
enum Requested {
    Name(Bytes),
    Address(IpAddr),
}

pub async fn serve<N: Network>(connector: &Connector<N>, mut client: Peer) -> io::Result<()> {
    match connect(connector, &mut client).await {
        Ok((mut server, traffic)) => {
            send(&mut client, Reply::Granted).await?;
            traffic.tunnel(&mut client, &mut server, connector.limits.idle).await
        }
        Err(SocksError::Denied(reply)) => send(&mut client, reply).await,
        Err(SocksError::Io(error)) => Err(error),
    }
}

/// Reads the client's request and connects to its target.
async fn connect<N: Network>(
    connector: &Connector<N>,
    client: &mut Peer,
) -> Result<(Peer, Traffic), SocksError> {
    let read = async {
        let label = authenticate(client).await?;
        let (host, port) = read_request(client).await?;
        Ok::<_, SocksError>((host, port, label))
    };
    let read = timeout(connector.limits.head_time, read).await.map_err(io::Error::from)?;
    let (host, port, label) = read?;
    let target = parse_target(connector, &host, port, label)?;
    Ok(connector.connect(target).await?)
}

/// Agrees on a method of authentication and returns the label. Any user name is accepted: it is only a label.
async fn authenticate(client: &mut Peer) -> io::Result<Option<String>> {
    let head = client.reader.read_exact(2).await?;
    let methods = client.reader.read_exact(head[1].into()).await?;
    if methods.contains(&USER_AND_PASSWORD) {
        client.writer.write_all(&[VERSION, USER_AND_PASSWORD]).await?;
        client.reader.read_exact(1).await?;
        let user = read_prefixed(client).await?;
        let _password = read_prefixed(client).await?;
        client.writer.write_all(&[1, 0]).await?;
        return Ok(parse_label(&user));
    }
    match methods.contains(&NO_AUTHENTICATION) {
        true => client.writer.write_all(&[VERSION, NO_AUTHENTICATION]).await.map(|()| None),
        false => {
            client.writer.write_all(&[VERSION, NO_ACCEPTABLE_METHOD]).await?;
            Err(ErrorKind::InvalidData.into())
        }
    }
}

async fn read_request(client: &mut Peer) -> Result<(Requested, u16), SocksError> {
    let head = client.reader.read_exact(4).await?;
    let host = match head[3] {
        1 => Requested::Address(Ipv4Addr::from(read_array(client).await?).into()),
        3 => Requested::Name(read_prefixed(client).await?),
        4 => Requested::Address(Ipv6Addr::from(read_array::<16>(client).await?).into()),
        _ => return Err(SocksError::Denied(Reply::UnknownAddressType)),
    };
    let port = u16::from_be_bytes(read_array(client).await?);
    match head[0] == VERSION && head[1] == CONNECT {
        true => Ok((host, port)),
        false => Err(SocksError::Denied(Reply::UnknownCommand)),
    }
}

fn parse_target<N: Network>(
    connector: &Connector<N>,
    requested: &Requested,
    port: u16,
    label: Option<String>,
) -> Result<Target, ConnectError> {
    let host = match requested {
        Requested::Address(address) => Ok(Host::address(*address)),
        Requested::Name(name) => Host::parse(name),
    };
    let text = || match requested {
        Requested::Address(address) => address.to_string().into_bytes(),
        Requested::Name(name) => name.to_vec(),
    };
    match host {
        Ok(_) if port == 0 => Err(connector.refuse_invalid_host(&text(), HostError::Port, label)),
        Ok(host) => Ok(Target { host, port, label }),
        Err(error) => Err(connector.refuse_invalid_host(&text(), error, label)),
    }
}

/// Reads a byte that holds a length, and then as many bytes.
async fn read_prefixed(client: &mut Peer) -> io::Result<Bytes> {
    let size = client.reader.read_exact(1).await?[0];
    client.reader.read_exact(size.into()).await
}

async fn read_array<const N: usize>(client: &mut Peer) -> io::Result<[u8; N]> {
    let bytes = client.reader.read_exact(N).await?;
    Ok((*bytes).try_into().expect("that many were read"))
}

async fn send(client: &mut Peer, reply: Reply) -> io::Result<()> {
    // The zeros stand for the address the proxy connects from, which clients do not need.
    client.writer.write_all(&[VERSION, reply as u8, 0, 1, 0, 0, 0, 0, 0, 0]).await
}
