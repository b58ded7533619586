//! What tells a command's programs where the proxy is.

/// Hosts that are the command's own: its network has a loopback of its own, and nothing else.
const LOCAL: &str = "localhost,127.0.0.1,::1";

/// The variables for a command whose proxy listens at a port of its loopback.
pub fn environment(port: u16) -> Vec<(&'static str, String)> {
    variables(&format!("127.0.0.1:{port}"))
}

/// The same with a label that comes back in reports, to tell one command from another. It is what the
/// command says of itself: good for an explanation, not for a decision. Letters, digits and `-`.
pub fn environment_for(port: u16, label: &str) -> Vec<(&'static str, String)> {
    // A password, though it means nothing: without one some programs send no name, others ask for it.
    let mut variables = variables(&format!("{label}:x@127.0.0.1:{port}"));
    // git waits to be asked for a name unless it is told how to give it.
    variables.push(("GIT_HTTP_PROXY_AUTHMETHOD", "basic".to_owned()));
    variables
}

fn variables(place: &str) -> Vec<(&'static str, String)> {
    let http = format!("http://{place}");
    let both = |upper, lower, value: &str| [(upper, value.to_owned()), (lower, value.to_owned())];
    let mut variables = Vec::new();
    variables.extend(both("HTTP_PROXY", "http_proxy", &http));
    variables.extend(both("HTTPS_PROXY", "https_proxy", &http));
    // Programs made with httpx would not start with an address of SOCKS here.
    variables.extend(both("ALL_PROXY", "all_proxy", &http));
    variables.extend(both("NO_PROXY", "no_proxy", LOCAL));
    // Node looks at the others only if it is told to; yarn has its own.
    variables.push(("NODE_USE_ENV_PROXY", "1".to_owned()));
    variables.extend([("YARN_HTTP_PROXY", http.clone()), ("YARN_HTTPS_PROXY", http)]);
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(variables: &[(&'static str, String)], name: &str) -> String {
        variables.iter().find(|(own, _)| *own == name).unwrap().1.clone()
    }

    #[test]
    fn every_program_finds_the_proxy_and_its_own_loopback() {
        let variables = environment(8118);
        for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"] {
            assert_eq!(value(&variables, name), "http://127.0.0.1:8118");
        }
        for name in ["ALL_PROXY", "all_proxy"] {
            assert_eq!(value(&variables, name), "http://127.0.0.1:8118");
        }
        for name in ["NO_PROXY", "no_proxy"] {
            assert_eq!(value(&variables, name), "localhost,127.0.0.1,::1");
        }
    }

    #[test]
    fn a_label_is_the_name_a_program_gives() {
        let variables = environment_for(8118, "run-7");
        assert_eq!(value(&variables, "https_proxy"), "http://run-7:x@127.0.0.1:8118");
        assert_eq!(value(&variables, "ALL_PROXY"), "http://run-7:x@127.0.0.1:8118");
    }
}
