//! Which addresses are public.
//!
//! The lists follow IANA's registries of special-purpose addresses. In IPv6 only global unicast is public. An
//! IPv6 address that embeds an IPv4 address is as public as that one, because a translator would lead there.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why the proxy never connects to an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Loopback,
    /// Includes the metadata services of clouds.
    LinkLocal,
    Private,
    Multicast,
    /// Set aside for documentation, benchmarks, protocols or the future.
    Reserved,
    /// An address of this machine.
    Own,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Loopback => "a loopback address",
            Self::LinkLocal => "a link-local address",
            Self::Private => "a private address",
            Self::Multicast => "a multicast address",
            Self::Reserved => "a reserved address",
            Self::Own => "an address of this machine",
        })
    }
}

const V4: [([u8; 4], u32, Kind); 16] = [
    ([0, 0, 0, 0], 8, Kind::Reserved),
    ([10, 0, 0, 0], 8, Kind::Private),
    ([100, 64, 0, 0], 10, Kind::Private),
    ([127, 0, 0, 0], 8, Kind::Loopback),
    // Where Azure serves its virtual machines, although the address looks public.
    ([168, 63, 129, 16], 32, Kind::LinkLocal),
    ([169, 254, 0, 0], 16, Kind::LinkLocal),
    ([172, 16, 0, 0], 12, Kind::Private),
    ([192, 0, 0, 0], 24, Kind::Reserved),
    ([192, 0, 2, 0], 24, Kind::Reserved),
    ([192, 88, 99, 0], 24, Kind::Reserved),
    ([192, 168, 0, 0], 16, Kind::Private),
    ([198, 18, 0, 0], 15, Kind::Reserved),
    ([198, 51, 100, 0], 24, Kind::Reserved),
    ([203, 0, 113, 0], 24, Kind::Reserved),
    ([224, 0, 0, 0], 4, Kind::Multicast),
    ([240, 0, 0, 0], 4, Kind::Reserved),
];

const V6: [([u16; 4], u32, Kind); 7] = [
    // Protocol assignments. They include Teredo, which embeds two IPv4 addresses.
    ([0x2001, 0, 0, 0], 23, Kind::Reserved),
    ([0x2001, 0xdb8, 0, 0], 32, Kind::Reserved),
    ([0x3fff, 0, 0, 0], 20, Kind::Reserved),
    ([0xfc00, 0, 0, 0], 7, Kind::Private),
    ([0xfe80, 0, 0, 0], 10, Kind::LinkLocal),
    ([0xfec0, 0, 0, 0], 10, Kind::Private),
    ([0xff00, 0, 0, 0], 8, Kind::Multicast),
];

/// The kind of an address that is not public.
pub fn special(address: IpAddr) -> Option<Kind> {
    match address.to_canonical() {
        IpAddr::V4(address) => special_v4(address),
        IpAddr::V6(address) => special_v6(address),
    }
}

fn special_v4(address: Ipv4Addr) -> Option<Kind> {
    let bits = address.to_bits();
    let within = |net: [u8; 4], length| (bits ^ u32::from_be_bytes(net)) >> (32 - length) == 0;
    V4.into_iter().find(|&(net, length, _)| within(net, length)).map(|(.., kind)| kind)
}

fn special_v6(address: Ipv6Addr) -> Option<Kind> {
    if address.is_loopback() {
        return Some(Kind::Loopback);
    }
    if let Some(inner) = embedded_v4(address) {
        return special_v4(inner);
    }
    let [a, b, c, d, ..] = address.segments();
    let joined =
        |parts: [u16; 4]| parts.into_iter().fold(0, |all, part| all << 16 | u64::from(part));
    let bits = joined([a, b, c, d]);
    let within = |net, length| (bits ^ joined(net)) >> (64 - length) == 0;
    let found = V6.into_iter().find(|&(net, length, _)| within(net, length));
    match found {
        Some((.., kind)) => Some(kind),
        None if within([0x2000, 0, 0, 0], 3) => None,
        None => Some(Kind::Reserved),
    }
}

/// The IPv4 address that a NAT64 (`64:ff9b::/96`) or 6to4 (`2002::/16`) address leads to.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let joined = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(joined(high, low)),
        [0x2002, high, low, ..] => Some(joined(high, low)),
        _ => None,
    }
}
