//! Whether some processes listen on a TCP port, which tells that a server is ready.

use std::fs;

/// The state of a listening socket, as the kernel writes it.
const LISTEN: &str = "0A";

/// Whether one of the processes listens on the port. Assumes that they share a network namespace.
pub fn listens(pids: &[i32], port: u16) -> bool {
    let sockets: Vec<u64> = pids
        .iter()
        .find_map(|pid| tables(*pid))
        .map(|tables| tables.iter().flat_map(|table| listening(table, port)).collect())
        .unwrap_or_default();
    // Usually false already, which saves reading every descriptor of every process.
    !sockets.is_empty() && pids.iter().any(|pid| has_socket(*pid, &sockets))
}

/// The socket tables of a process's network namespace, for each version of IP.
fn tables(pid: i32) -> Option<Vec<String>> {
    let table = |name| fs::read_to_string(format!("/proc/{pid}/net/{name}"));
    let tables: Vec<String> = ["tcp", "tcp6"].into_iter().flat_map(table).collect();
    (!tables.is_empty()).then_some(tables)
}

/// The inodes of the sockets in a table that listen on the port.
fn listening(table: &str, port: u16) -> impl Iterator<Item = u64> {
    table.lines().filter_map(move |line| listening_socket(line, port))
}

/// A line's fields are: number, local address, remote address, state, two for queues and timers, retransmissions,
/// user, timeout, inode, and more.
fn listening_socket(line: &str, port: u16) -> Option<u64> {
    let mut fields = line.split_ascii_whitespace();
    let (_, local_port) = fields.nth(1)?.rsplit_once(':')?;
    if u16::from_str_radix(local_port, 16).ok()? != port || fields.nth(1)? != LISTEN {
        return None;
    }
    fields.nth(5)?.parse().ok()
}

/// Whether one of these sockets is open in the process.
fn has_socket(pid: i32, sockets: &[u64]) -> bool {
    let Ok(open) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    open.flatten()
        .filter_map(|descriptor| fs::read_link(descriptor.path()).ok())
        .filter_map(|link| socket(link.to_str()?))
        .any(|socket| sockets.contains(&socket))
}

/// The inode in a link to a socket, such as `socket:[123]`.
fn socket(link: &str) -> Option<u64> {
    link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::process::{Command, id};

    use super::*;

    const TCP: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4321 1 000000002a4417af 100 0 0 10 0
   1: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1603 1 0000000000000000 100 0 0 10 0
   2: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 5555 1 0000000000000000 20 4 30 10 -1
   3: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 5556 1 0000000000000000 20 4 30 10 -1
";
    const TCP6: &str = "\
  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 77 1 0000000000000000 100 0 0 10 0
   1: 00000000000000000000000001000000:0BB8 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 78 1 0000000000000000 100 0 0 10 0
";

    const NONE: [u64; 0] = [];

    fn found(table: &str, port: u16) -> Vec<u64> {
        listening(table, port).collect()
    }

    #[test]
    fn sockets_that_listen_on_a_port_are_found_in_the_table() {
        assert_eq!(found(TCP, 8080), [4321], "not those that are connected");
        assert_eq!(found(TCP, 22), [1603]);
        assert_eq!(found(TCP, 50000), NONE, "it is connected from there");
        assert_eq!(found(TCP, 0), NONE, "the other side of a listening socket is no port");
        assert_eq!(found(TCP6, 8080), [77]);
        assert_eq!(found(TCP6, 3000), [78]);
    }

    #[test]
    fn lines_that_are_not_understood_are_passed_over() {
        for line in ["", "x", "0: 1F90", "0: :", "0: 0:1F90 0:0", "0: 0:XYZW 0:0 0A a b c d e 1"] {
            assert_eq!(found(line, 8080), NONE, "{line}");
        }
        assert_eq!(found("0: 0:1F90 0:0 0A a b c d e", 8080), NONE);
        assert_eq!(found("0: 0:1F90 0:0 0A a b c d e -1", 8080), NONE);
        assert_eq!(found("0: 0:1F90 0:0 0A a b c d e 1", 8080), [1]);
    }

    #[test]
    fn a_link_to_a_socket_names_its_inode() {
        assert_eq!(socket("socket:[123]"), Some(123));
        for link in ["pipe:[123]", "socket:[]", "socket:[1", "/dev/null"] {
            assert_eq!(socket(link), None);
        }
    }

    #[test]
    fn only_the_process_that_has_the_socket_listens() {
        let own = id().cast_signed();
        let mut other = Command::new("sleep").arg("100").spawn().unwrap();
        let sleeping = other.id().cast_signed();
        for address in ["127.0.0.1:0", "[::1]:0"] {
            // The machine may not have IPv6.
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let port = listener.local_addr().unwrap().port();
            assert!(listens(&[own], port));
            assert!(listens(&[i32::MAX, sleeping, own], port));
            assert!(!listens(&[sleeping], port));
            assert!(!listens(&[i32::MAX], port));
            assert!(!listens(&[], port));
            drop(listener);
            assert!(!listens(&[own], port));
        }
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
