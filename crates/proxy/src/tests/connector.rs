//! Which addresses the connector connects to, even when the answers for a name change.

use std::net::IpAddr;

use proptest::prelude::*;

use super::network::{FakeNetwork, echo};
use crate::address::{Kind, special};
use crate::connector::ConnectError;
use crate::host::Host;
use crate::report::Reason;
use crate::target::Target;

fn target(host: &str, port: u16) -> Target {
    Target { host: Host::parse(host.as_bytes()).unwrap(), port, label: None }
}

fn reason(opened: Result<impl Sized, ConnectError>) -> Reason {
    match opened.map(|_| ()) {
        Err(ConnectError::Refused(refusal)) => refusal.reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_name_that_resolves_to_a_private_address_later_is_refused_then() {
    let network = FakeNetwork::default();
    network.site("rebind.org", echo().await);
    network.name("rebind.org", &[&["93.184.216.34"], &["127.0.0.1"]]);
    let (connector, _reports) = network.connector("rebind.org");
    connector.connect(target("rebind.org", 80)).await.unwrap();
    assert_eq!(network.lookups().len(), 1, "the connection uses the addresses that were checked");
    let second = reason(connector.connect(target("rebind.org", 80)).await);
    assert_eq!(second, Reason::Address("127.0.0.1".parse().unwrap(), Kind::Loopback));
    assert_eq!(network.tried(), ["93.184.216.34:80"]);
}

#[tokio::test]
async fn only_the_public_addresses_of_a_name_are_tried_in_order() {
    let network = FakeNetwork::default();
    network.name("mixed.org", &[&["10.0.0.1", "1.1.1.1", "::1", "93.184.216.34", "fe80::1"]]);
    network.server("93.184.216.34", echo().await).server("10.0.0.1", echo().await);
    let (connector, mut reports) = network.connector("mixed.org");
    drop(connector.connect(target("mixed.org", 443)).await.unwrap());
    assert_eq!(network.tried(), ["1.1.1.1:443", "93.184.216.34:443"]);
    assert_eq!(reports.reached().await.address, "93.184.216.34".parse::<IpAddr>().unwrap());
}

#[tokio::test]
async fn a_public_address_of_this_machine_is_refused() {
    let network = FakeNetwork::default();
    network.site("home.org", echo().await).own("93.184.216.34");
    let (connector, _reports) = network.connector("on");
    for host in ["home.org", "93.184.216.34", "[::ffff:93.184.216.34]"] {
        let reason = reason(connector.connect(target(host, 80)).await);
        assert_eq!(reason, Reason::Address("93.184.216.34".parse().unwrap(), Kind::Own));
    }
    assert!(network.tried().is_empty());
}

#[tokio::test]
async fn a_name_that_the_rules_refuse_is_not_looked_up() {
    let network = FakeNetwork::default();
    let (connector, mut reports) = network.connector("github.com");
    assert_eq!(reason(connector.connect(target("secret.evil.org", 443)).await), Reason::NotListed);
    assert!(network.lookups().is_empty());
    let refusal = reports.refusal().await;
    assert_eq!(
        refusal.to_string(),
        "no connection to secret.evil.org port 443: the host is not in the list; \
         `--net secret.evil.org` would allow it"
    );
}

#[tokio::test]
async fn a_refusal_names_a_remedy_only_if_there_is_one() {
    let network = FakeNetwork::default();
    network.name("inside.org", &[&["192.168.1.1"]]);
    let (connector, mut reports) = network.connector("github.com,inside.org");
    let cases = [
        (target("github.com", 22), Some("github.com:22")),
        (target("1.1.1.1", 443), Some("1.1.1.1")),
        (target("[2606:4700::1]", 53), Some("[2606:4700::1]:53")),
        (target("inside.org", 443), None),
        (target("10.0.0.1", 443), None),
    ];
    for (target, remedy) in cases {
        connector.connect(target).await.map(|_| ()).unwrap_err();
        assert_eq!(reports.refusal().await.remedy().as_deref(), remedy);
    }
}

#[tokio::test]
async fn an_unknown_name_is_not_found_rather_than_refused() {
    let (connector, _reports) = FakeNetwork::default().connector("on");
    let closed = connector.connect(target("nowhere.org", 443)).await.map(|_| ()).unwrap_err();
    assert_eq!(closed.to_string(), "the host nowhere.org was not found");
}

fn address() -> impl Strategy<Value = IpAddr> {
    let v4 = prop_oneof![any::<[u8; 4]>(), Just([127, 0, 0, 1]), Just([169, 254, 169, 254])];
    let near = (0..6usize, any::<[u8; 3]>()).prop_map(|(kind, [a, b, c])| match kind {
        0 => [10, a, b, c],
        1 => [192, 168, a, b],
        2 => [172, 16 | a & 15, b, c],
        3 => [100, 64 | a & 63, b, c],
        4 => [127, a, b, c],
        _ => [93, 184, 216, a],
    });
    let v4 = prop_oneof![v4, near].prop_map(IpAddr::from);
    let within = (v4.clone(), 0..3usize).prop_map(|(address, kind)| {
        let IpAddr::V4(address) = address else { unreachable!("it is made of four bytes") };
        let bits = u128::from(address.to_bits());
        IpAddr::from(match kind {
            0 => (0xffff_u128 << 32 | bits).to_be_bytes(),
            1 => (0x64_ff9b_u128 << 96 | bits).to_be_bytes(),
            _ => (0x2002_u128 << 112 | bits << 80 | 1).to_be_bytes(),
        })
    });
    prop_oneof![v4, within, any::<[u8; 16]>().prop_map(IpAddr::from)]
}

proptest! {
    #[test]
    fn only_public_addresses_are_connected_to(
        answers in prop::collection::vec(prop::collection::vec(address(), 0..5), 1..4),
        literal in address(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let network = FakeNetwork::default();
            let texts: Vec<Vec<String>> =
                answers.iter().map(|all| all.iter().map(ToString::to_string).collect()).collect();
            let texts: Vec<Vec<&str>> =
                texts.iter().map(|all| all.iter().map(String::as_str).collect()).collect();
            let texts: Vec<&[&str]> = texts.iter().map(Vec::as_slice).collect();
            network.name("any.org", &texts);
            let (connector, _reports) = network.connector("on");
            for _ in 0..answers.len() {
                connector.connect(target("any.org", 443)).await.map(|_| ()).unwrap_err();
            }
            let host = Host::address(literal);
            connector.connect(Target { host, port: 443, label: None }).await.map(|_| ()).unwrap_err();
            let expected = answers.iter().flatten().chain([&literal]);
            let expected = expected.filter(|address| special(**address).is_none()).count();
            let tried = network.tried();
            assert_eq!(tried.len(), expected);
            for address in tried {
                let address: std::net::SocketAddr = address.parse().unwrap();
                assert_eq!(special(address.ip()), None, "{address}");
            }
        });
    }
}
