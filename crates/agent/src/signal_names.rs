//! Names and numbers of signals.

/// The signals of Linux, starting with 1.
const SIGNALS: [&str; 31] = [
    "SIGHUP",
    "SIGINT",
    "SIGQUIT",
    "SIGILL",
    "SIGTRAP",
    "SIGABRT",
    "SIGBUS",
    "SIGFPE",
    "SIGKILL",
    "SIGUSR1",
    "SIGSEGV",
    "SIGUSR2",
    "SIGPIPE",
    "SIGALRM",
    "SIGTERM",
    "SIGSTKFLT",
    "SIGCHLD",
    "SIGCONT",
    "SIGSTOP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGXCPU",
    "SIGXFSZ",
    "SIGVTALRM",
    "SIGPROF",
    "SIGWINCH",
    "SIGIO",
    "SIGPWR",
    "SIGSYS",
];

/// The name of a signal. Real-time signals have none and get their number.
pub fn signal_name(signal: i32) -> String {
    let named = usize::try_from(signal - 1).ok().and_then(|at| SIGNALS.get(at));
    named.map_or_else(|| format!("SIG{signal}"), ToString::to_string)
}

/// The inverse of [`signal_name`].
pub fn signal_number(name: &str) -> Option<u8> {
    match SIGNALS.iter().position(|known| *known == name) {
        Some(at) => u8::try_from(at + 1).ok(),
        None => name.strip_prefix("SIG")?.parse().ok(),
    }
}
