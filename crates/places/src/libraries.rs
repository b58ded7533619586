//! What is said of an agent that lacks its libraries, and what to do then.

#[cfg(any(test, feature = "container", feature = "kubernetes"))]
use std::path::Path;

/// Whether this is what the kernel, a shell, a runtime or the dynamic linker says about such a program.
#[cfg(any(test, feature = "container", feature = "kubernetes"))]
pub fn lacks_libraries(said: &str) -> bool {
    let said = said.to_lowercase();
    let signs = ["no such file or directory", "glibc_", "loading shared librar", ": not found"];
    signs.iter().any(|sign| said.contains(sign))
}

/// What to say about an agent that does not start.
pub fn cannot_run(said: &str) -> String {
    format!(
        "cannot run in it ({said}): it needs libraries that are not there; name a statically linked agent with \
         --place-agent, or `agent` in its table"
    )
}

/// What a place said, with advice if it was about the agent.
#[cfg(any(test, feature = "container", feature = "kubernetes"))]
pub fn explained(agent: &Path, said: String) -> String {
    match lacks_libraries(&said) {
        true => format!("{} {}", agent.display(), cannot_run(&said)),
        false => said,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_dynamic_linker_is_told_from_other_failures() {
        assert!(lacks_libraries("exec /.mcpz-agent: no such file or directory"));
        assert!(lacks_libraries("version `GLIBC_2.38' not found (required by /.mcpz-agent)"));
        assert!(lacks_libraries("Error loading shared library libgcc_s.so.1: No such file"));
        assert!(lacks_libraries("sh: 1: /.mcpz/agent-12: not found"));
        assert!(!lacks_libraries("exec /.mcpz-agent: exec format error"));
    }
}
