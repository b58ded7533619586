//! A connection that speaks SOCKS 5 (RFC 1928). Clients should let names be looked up here (`socks5h`);
//! an address they looked up themselves is decided as an address.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bytes::Bytes;
use thiserror::Error;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::door::{ConnectError, Door};
use crate::host::{Host, HostError};
use crate::network::Network;
use crate::target::{Target, label};
use crate::traffic::{End, Passage};

pub const VERSION: u8 = 5;

const NO_AUTHENTICATION: u8 = 0;
const USER_AND_PASSWORD: u8 = 2;
const CONNECT: u8 = 1;

#[derive(Debug)]
enum Reply {
    Granted = 0,
    NotAllowed = 2,
    Unreachable = 4,
    Refused = 5,
    NoSuchCommand = 7,
    NoSuchAddress = 8,
}

#[derive(Debug, Error)]
enum SocksError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("the client is refused: {0:?}")]
    Denied(Reply),
}

pub async fn converse<N: Network>(door: &Door<N>, mut client: End) -> io::Result<()> {
    match open(door, &mut client).await {
        Ok((stream, passage)) => {
            say(&mut client, Reply::Granted).await?;
            passage.tunnel(&mut client, &mut End::new(stream), door.limits.idle).await
        }
        Err(SocksError::Denied(reply)) => say(&mut client, reply).await,
        Err(SocksError::Io(error)) => Err(error),
    }
}

/// Reads what a client asks for, and connects to it.
async fn open<N: Network>(
    door: &Door<N>,
    client: &mut End,
) -> Result<(TcpStream, Passage), SocksError> {
    let asked = async {
        let label = greet(client).await?;
        Ok::<_, SocksError>((read_request(client).await?, label))
    };
    let asked = timeout(door.limits.head_time, asked).await.map_err(io::Error::from)?;
    let ((asked, port), label) = asked?;
    let target = read_target(door, &asked, port, label)?;
    Ok(door.open(target).await?)
}

/// Agrees on how the client says who it is. Whatever it says is believed: it is only a label.
async fn greet(client: &mut End) -> io::Result<Option<String>> {
    let head = client.intake.exactly(2).await?;
    let methods = client.intake.exactly(head[1].into()).await?;
    if methods.contains(&USER_AND_PASSWORD) {
        client.writer.write_all(&[VERSION, USER_AND_PASSWORD]).await?;
        client.intake.exactly(1).await?;
        let user = counted(client).await?;
        counted(client).await?;
        client.writer.write_all(&[1, 0]).await?;
        return Ok(label(&user));
    }
    match methods.contains(&NO_AUTHENTICATION) {
        true => client.writer.write_all(&[VERSION, NO_AUTHENTICATION]).await.map(|()| None),
        false => {
            client.writer.write_all(&[VERSION, 0xff]).await?;
            Err(ErrorKind::InvalidData.into())
        }
    }
}

/// What is asked for.
enum Asked {
    Name(Bytes),
    Address(IpAddr),
}

async fn read_request(client: &mut End) -> Result<(Asked, u16), SocksError> {
    let head = client.intake.exactly(4).await?;
    let asked = match head[3] {
        1 => Asked::Address(Ipv4Addr::from(array(client).await?).into()),
        3 => Asked::Name(counted(client).await?),
        4 => Asked::Address(Ipv6Addr::from(array::<16>(client).await?).into()),
        _ => return Err(SocksError::Denied(Reply::NoSuchAddress)),
    };
    let port = u16::from_be_bytes(array(client).await?);
    match head[0] == VERSION && head[1] == CONNECT {
        true => Ok((asked, port)),
        false => Err(SocksError::Denied(Reply::NoSuchCommand)),
    }
}

fn read_target<N: Network>(
    door: &Door<N>,
    asked: &Asked,
    port: u16,
    label: Option<String>,
) -> Result<Target, ConnectError> {
    let host = match asked {
        Asked::Address(address) => Ok(Host::address(*address)),
        Asked::Name(name) => Host::parse(name),
    };
    let shown = || match asked {
        Asked::Address(address) => address.to_string().into_bytes(),
        Asked::Name(name) => name.to_vec(),
    };
    match host {
        Ok(_) if port == 0 => Err(door.refuse_text(&shown(), HostError::Port, label)),
        Ok(host) => Ok(Target { host, port, label }),
        Err(error) => Err(door.refuse_text(&shown(), error, label)),
    }
}

/// Bytes with their number before them.
async fn counted(client: &mut End) -> io::Result<Bytes> {
    let size = client.intake.exactly(1).await?[0];
    client.intake.exactly(size.into()).await
}

async fn array<const N: usize>(client: &mut End) -> io::Result<[u8; N]> {
    let bytes = client.intake.exactly(N).await?;
    Ok((*bytes).try_into().expect("that many were read"))
}

async fn say(client: &mut End, reply: Reply) -> io::Result<()> {
    // The address we speak from, which nobody needs to know.
    client.writer.write_all(&[VERSION, reply as u8, 0, 1, 0, 0, 0, 0, 0, 0]).await
}

impl From<ConnectError> for SocksError {
    fn from(error: ConnectError) -> Self {
        Self::Denied(match error {
            ConnectError::Refused(_) => Reply::NotAllowed,
            ConnectError::Unreachable(_, error) if error.kind() == ErrorKind::ConnectionRefused => {
                Reply::Refused
            }
            ConnectError::NotFound(_) | ConnectError::Unreachable(..) => Reply::Unreachable,
        })
    }
}
