//! Ports on which processes listen, in a network of their own.

use std::collections::BTreeSet;
use std::fs;

/// The state of a socket that listens, in the kernel's tables.
const LISTENS: &str = "0A";

/// The ports on which something listens in the network of a process.
pub fn listening(process: i32) -> BTreeSet<u16> {
    let tables = ["tcp", "tcp6"].map(|name| format!("/proc/{process}/net/{name}"));
    let tables = tables.iter().filter_map(|path| fs::read_to_string(path).ok());
    tables.flat_map(|table| table.lines().filter_map(port).collect::<Vec<_>>()).collect()
}

/// The port in a line such as `0: 0100007F:1435 00000000:0000 0A …`.
fn port(line: &str) -> Option<u16> {
    let mut words = line.split_whitespace().skip(1);
    let (local, state) = (words.next()?, words.nth(1)?);
    let (_, port) = local.rsplit_once(':')?;
    u16::from_str_radix(port, 16).ok().filter(|_| state == LISTENS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_read_from_the_kernels_tables() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let own = listener.local_addr().unwrap().port();
        assert!(listening(std::process::id() as i32).contains(&own));
        assert_eq!(port("   0: 0100007F:1435 00000000:0000 0A 00000000"), Some(0x1435));
        assert_eq!(port("   0: 0100007F:1435 0100007F:0016 01 00000000"), None);
        assert_eq!(port("  sl  local_address rem_address   st"), None);
    }
}
