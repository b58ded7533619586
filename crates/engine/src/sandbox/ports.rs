//! Tells of ports on which commands listen, in a network of their own.

use std::ops::RangeInclusive;

/// What to say about ports that nobody outside can reach.
pub fn described(ports: &[u16], published: &[RangeInclusive<u16>]) -> Option<String> {
    let is_closed = |port: &&u16| !published.iter().any(|range| range.contains(port));
    let closed: Vec<_> = ports.iter().filter(is_closed).map(u16::to_string).collect();
    let (first, more) = closed.split_first()?;
    let ports = match more {
        [] => format!("port {first}"),
        more => format!("ports {first}, {}", more.join(", ")),
    };
    Some(format!(
        "sandbox: only commands in the sandbox can connect to {ports}; `--publish {first}` (`publish` in [sandbox]) \
         would open it to programs on this machine"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_not_published_is_told() {
        assert_eq!(described(&[80], &[70..=90]), None);
        assert!(described(&[80, 100, 101], &[70..=90]).unwrap().contains("ports 100, 101;"));
    }
}
