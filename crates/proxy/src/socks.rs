//! A connection that speaks SOCKS 5 (RFC 1928). Clients should let names be looked up here (`socks5h`);
//! an address they looked up themselves is decided as an address.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bytes::Bytes;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use crate::door::{Closed, Door};
use crate::host::{Host, HostError};
use crate::network::Network;
use crate::target::{Target, label};
use crate::traffic::End;

pub const VERSION: u8 = 5;

const NO_AUTHENTICATION: u8 = 0;
const USER_AND_PASSWORD: u8 = 2;
const CONNECT: u8 = 1;

enum Reply {
    Granted = 0,
    NotAllowed = 2,
    Unreachable = 4,
    Refused = 5,
    NoSuchCommand = 7,
    NoSuchAddress = 8,
}

pub async fn converse<N: Network>(door: &Door<N>, mut client: End) -> io::Result<()> {
    let asked = async {
        let label = greet(&mut client).await?;
        Ok::<_, io::Error>((label, read_request(&mut client).await?))
    };
    let (label, asked) = timeout(door.limits.head_time, asked).await??;
    let target = match asked {
        Ok((host, port)) => read_target(door, &host, port, label),
        Err(reply) => return say(&mut client, reply).await,
    };
    let opened = match target {
        Ok(target) => door.open(target).await,
        Err(closed) => Err(closed),
    };
    match opened {
        Ok((stream, passage)) => {
            say(&mut client, Reply::Granted).await?;
            passage.tunnel(&mut client, &mut End::new(stream), door.limits.idle).await
        }
        Err(closed) => say(&mut client, closed.into()).await,
    }
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

async fn read_request(client: &mut End) -> io::Result<Result<(Asked, u16), Reply>> {
    let head = client.intake.exactly(4).await?;
    let asked = match head[3] {
        1 => Asked::Address(Ipv4Addr::from(array(client).await?).into()),
        3 => Asked::Name(counted(client).await?),
        4 => Asked::Address(Ipv6Addr::from(array::<16>(client).await?).into()),
        _ => return Ok(Err(Reply::NoSuchAddress)),
    };
    let port = u16::from_be_bytes(array(client).await?);
    Ok(match head[0] == VERSION && head[1] == CONNECT {
        true => Ok((asked, port)),
        false => Err(Reply::NoSuchCommand),
    })
}

fn read_target<N: Network>(
    door: &Door<N>,
    asked: &Asked,
    port: u16,
    label: Option<String>,
) -> Result<Target, Closed> {
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

impl From<Closed> for Reply {
    fn from(closed: Closed) -> Self {
        match closed {
            Closed::Refused(_) => Self::NotAllowed,
            Closed::Unreachable(_, error) if error.kind() == ErrorKind::ConnectionRefused => {
                Self::Refused
            }
            Closed::Unknown(_) | Closed::Unreachable(..) => Self::Unreachable,
        }
    }
}
