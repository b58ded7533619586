//! The environment variables that tell a command's programs where the proxy is.

/// Hosts that programs reach without the proxy: the command's network has its own loopback.
const LOCAL: &str = "localhost,127.0.0.1,::1";

/// The variables for a command whose proxy listens on a port of its loopback.
pub fn environment(port: u16) -> Vec<(&'static str, String)> {
    variables(&format!("127.0.0.1:{port}"))
}

/// The same variables with a label that reports repeat, to tell one command from another. The command can
/// change it, so it serves explanations and never decisions. A label has letters, digits and `-`.
pub fn environment_for(port: u16, label: &str) -> Vec<(&'static str, String)> {
    // The password has no meaning, but without one some programs send no user name, and others prompt.
    let mut variables = variables(&format!("{label}:x@127.0.0.1:{port}"));
    // Without this, git sends the user name only after the proxy demands it.
    variables.push(("GIT_HTTP_PROXY_AUTHMETHOD", "basic".to_owned()));
    variables
}

fn variables(proxy: &str) -> Vec<(&'static str, String)> {
    let http = format!("http://{proxy}");
    let both = |upper, lower, value: &str| [(upper, value.to_owned()), (lower, value.to_owned())];
    let mut variables = Vec::new();
    variables.extend(both("HTTP_PROXY", "http_proxy", &http));
    variables.extend(both("HTTPS_PROXY", "https_proxy", &http));
    // HTTP here as well: programs that use httpx fail to start if this is a SOCKS URL.
    variables.extend(both("ALL_PROXY", "all_proxy", &http));
    variables.extend(both("NO_PROXY", "no_proxy", LOCAL));
    // Node ignores the other variables unless this one is set; yarn reads its own.
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
    fn all_variables_name_the_proxy_and_exempt_loopback() {
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
    fn a_label_is_the_user_name_that_programs_send() {
        let variables = environment_for(8118, "run-7");
        assert_eq!(value(&variables, "https_proxy"), "http://run-7:x@127.0.0.1:8118");
        assert_eq!(value(&variables, "ALL_PROXY"), "http://run-7:x@127.0.0.1:8118");
    }
}
