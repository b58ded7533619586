//! Which addresses are public.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use crate::address::{Kind, special};

#[test]
fn special_addresses_are_known() {
    use Kind::*;
    let cases = [
        ("0.0.0.0", Reserved),
        ("0.1.2.3", Reserved),
        ("10.0.0.0", Private),
        ("10.255.255.255", Private),
        ("100.64.0.0", Private),
        ("100.100.100.200", Private),
        ("100.127.255.255", Private),
        ("127.0.0.1", Loopback),
        ("127.255.255.255", Loopback),
        ("168.63.129.16", LinkLocal),
        ("169.254.0.1", LinkLocal),
        ("169.254.169.254", LinkLocal),
        ("172.16.0.0", Private),
        ("172.31.255.255", Private),
        ("192.0.0.192", Reserved),
        ("192.0.2.1", Reserved),
        ("192.88.99.1", Reserved),
        ("192.168.0.1", Private),
        ("198.18.0.0", Reserved),
        ("198.19.255.255", Reserved),
        ("198.51.100.1", Reserved),
        ("203.0.113.1", Reserved),
        ("224.0.0.1", Multicast),
        ("239.255.255.255", Multicast),
        ("240.0.0.1", Reserved),
        ("255.255.255.255", Reserved),
        ("::", Reserved),
        ("::1", Loopback),
        ("::2", Reserved),
        ("::127.0.0.1", Reserved),
        ("::8.8.8.8", Reserved),
        ("::ffff:127.0.0.1", Loopback),
        ("::ffff:10.0.0.1", Private),
        ("::ffff:0:127.0.0.1", Reserved),
        ("64:ff9b::127.0.0.1", Loopback),
        ("64:ff9b::169.254.169.254", LinkLocal),
        ("64:ff9b:1::8.8.8.8", Reserved),
        ("64:ff9b::1:0:0", Reserved),
        ("100::1", Reserved),
        ("2001::1", Reserved),
        ("2001:0:4136:e378:8000:63bf:f5ff:fffe", Reserved),
        ("2001:2::1", Reserved),
        ("2001:20::1", Reserved),
        ("2001:1ff:ffff::1", Reserved),
        ("2001:db8::1", Reserved),
        ("2002:7f00:1::1", Loopback),
        ("2002:a9fe:a9fe::1", LinkLocal),
        ("2002:c0a8:1::1", Private),
        ("3fff::1", Reserved),
        ("4000::1", Reserved),
        ("5f00::1", Reserved),
        ("fc00::1", Private),
        ("fd00:ec2::254", Private),
        ("fe80::1", LinkLocal),
        ("fec0::1", Private),
        ("ff02::1", Multicast),
    ];
    for (address, kind) in cases {
        assert_eq!(special(address.parse().unwrap()), Some(kind), "{address}");
    }
}

#[test]
fn neighbours_of_special_ranges_are_public() {
    let cases = [
        "1.0.0.0",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "168.63.129.15",
        "168.63.129.17",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.0",
        "192.0.3.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "203.0.112.255",
        "203.0.114.0",
        "223.255.255.255",
        "::ffff:8.8.8.8",
        "64:ff9b::8.8.8.8",
        "2001:200::1",
        "2001:4860:4860::8888",
        "2002:808:808::1",
        "2606:4700::1111",
        "2a00:1450:4001::1",
        "3ffe::1",
    ];
    for address in cases {
        assert_eq!(special(address.parse().unwrap()), None, "{address}");
    }
}

fn v4() -> impl Strategy<Value = Ipv4Addr> {
    any::<u32>().prop_map(Ipv4Addr::from_bits)
}

proptest! {
    /// The standard library knows some of the special ranges.
    #[test]
    fn v4_addresses_that_the_standard_library_knows_as_special_are_special(bits in any::<u32>()) {
        let near = [bits, bits & 0x00ff_ffff | 0x0a00_0000, bits & 0x000f_ffff | 0xac10_0000,
            bits & 0xffff | 0xc0a8_0000, bits & 0xffff | 0xa9fe_0000, bits & 0x0fff_ffff | 0xe000_0000];
        for address in near.map(Ipv4Addr::from_bits) {
            let known = address.is_private() || address.is_loopback() || address.is_link_local()
                || address.is_broadcast() || address.is_documentation() || address.is_multicast()
                || address.is_unspecified();
            prop_assert!(!known || special(address.into()).is_some(), "{}", address);
        }
    }

    #[test]
    fn v6_addresses_that_the_standard_library_knows_as_special_are_special(bits in any::<u128>(), prefix in any::<u16>()) {
        let address = Ipv6Addr::from_bits(bits & (u128::MAX >> 16) | u128::from(prefix) << 112);
        let known = address.is_loopback() || address.is_multicast() || address.is_unique_local()
            || address.is_unicast_link_local() || address.is_unspecified();
        prop_assert!(!known || special(address.into()).is_some(), "{}", address);
        let global = prefix >> 13 == 1;
        prop_assert!(global || special(address.into()).is_some(), "{}", address);
    }

    #[test]
    fn an_embedded_v4_address_keeps_its_kind(inner in v4()) {
        let [a, b, c, d] = inner.octets();
        let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let alone = special(inner.into());
        for outer in [
            inner.to_ipv6_mapped(),
            Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
            Ipv6Addr::new(0x2002, high, low, 7, 0, 0, 0, 1),
        ] {
            prop_assert_eq!(special(IpAddr::V6(outer)), alone, "{}", outer);
        }
    }
}
