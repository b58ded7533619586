//! Every wrapper, a row each. To add one, add a row.
//!
//! A row names what differs from [`PLAIN`], which takes no option: an option that no column mentions makes the
//! call opaque, because it might take the next word as its value and so decide which word is the command. Empty
//! `flags` or `long_flags` would accept every option without a value: [`PLAIN`] has none, written `-`.

use crate::names::Names;
use crate::programs::arguments::OptionSyntax;

/// A program that runs the command after its options and operands.
pub struct Wrapper {
    pub names: Names,
    pub options: OptionSyntax,
    /// How many operands come before the command: the time of `timeout`, the file of `flock`.
    pub operands: usize,
    /// Whether a number may come before the command. Newer versions of `chrt` do not ask for a priority.
    pub takes_number: bool,
    /// Whether `NAME=value` may come before the command.
    pub assigns: bool,
    /// Words before the command that do not matter.
    pub skips: Names,
    /// Whether it joins the command's words to a text for a shell.
    pub joins: bool,
    /// First arguments that make it print something and run nothing.
    pub prints: Names,
    /// Options whose value is a script that it runs instead of a command.
    pub scripts: Names,
    /// Options whose value it splits into the first words of the command.
    pub splits: Names,
    /// Options whose value is the directory the command runs in.
    pub enters: Names,
    /// Options whose value is a file it writes, or a command after `|`.
    pub writes: Names,
    /// Options whose value is `NAME=value` for the command.
    pub sets: Names,
    /// Options whose value changes what the command reads or does, unless it is a name or begins with one of these.
    pub tampers: (Names, Names),
}

const STRICT: OptionSyntax = OptionSyntax::STRICT;

const PLAIN: Wrapper = Wrapper {
    names: Names(""),
    options: STRICT,
    operands: 0,
    takes_number: false,
    assigns: false,
    skips: Names(""),
    joins: false,
    prints: Names("--help --version --list -h -V"),
    scripts: Names(""),
    splits: Names(""),
    enters: Names(""),
    writes: Names(""),
    sets: Names(""),
    tampers: (Names(""), Names("")),
};

pub const WRAPPERS: &[Wrapper] = &[
    Wrapper {
        names: Names("nohup unbuffer catchsegv eatmydata torsocks busybox toybox nocache"),
        ..PLAIN
    },
    Wrapper { names: Names("builtin"), prints: Names(""), ..PLAIN },
    Wrapper {
        names: Names("ssh-agent"),
        options: OptionSyntax { valued: "atE", flags: "cdDks", ..STRICT },
        ..PLAIN
    },
    Wrapper {
        names: Names("setsid"),
        options: OptionSyntax { flags: "cfw", long_flags: Names("ctty fork wait"), ..STRICT },
        ..PLAIN
    },
    Wrapper {
        names: Names("nice"),
        options: OptionSyntax {
            valued: "n",
            flags: "0123456789",
            long_valued: Names("adjustment"),
            ..STRICT
        },
        ..PLAIN
    },
    Wrapper {
        names: Names("ionice"),
        options: OptionSyntax {
            valued: "cn",
            flags: "t",
            long_valued: Names("class classdata"),
            long_flags: Names("ignore"),
            ..STRICT
        },
        ..PLAIN
    },
    Wrapper {
        names: Names("stdbuf"),
        options: OptionSyntax { valued: "ioe", long_valued: Names("input output error"), ..STRICT },
        ..PLAIN
    },
    Wrapper {
        names: Names("exec"),
        options: OptionSyntax { flags: "c", ..STRICT },
        prints: Names(""),
        ..PLAIN
    },
    Wrapper {
        names: Names("command"),
        options: OptionSyntax { flags: "p", ..STRICT },
        prints: Names("-v -V"),
        ..PLAIN
    },
    Wrapper {
        names: Names("time"),
        options: OptionSyntax {
            valued: "fo",
            flags: "apvq",
            long_valued: Names("format output"),
            long_flags: Names("append portability verbose quiet"),
            ..STRICT
        },
        writes: Names("o output"),
        ..PLAIN
    },
    Wrapper {
        names: Names("setpriv"),
        options: OptionSyntax {
            flags: "d",
            long_valued: Names(
                "reuid regid ruid euid rgid egid groups inh-caps ambient-caps bounding-set \
                 securebits pdeathsig selinux-label",
            ),
            long_flags: Names("no-new-privs nnp clear-groups keep-groups init-groups reset-env"),
            ..STRICT
        },
        ..PLAIN
    },
    Wrapper {
        names: Names("strace ltrace"),
        options: OptionSyntax {
            valued: "abeEIoOPpsSuUX",
            flags: "AcCdDfhiknNqrtTvwxyYzZ",
            long_valued: Names(
                "env output columns string-limit trace signal status abbrev verbose raw \
                 summary-sort-by trace-path const-print-style user interruptible",
            ),
            long_flags: Names(
                "follow-forks output-separately output-append-mode quiet summary summary-only \
                 no-abbrev strings-in-hex debug absolute-timestamps relative-timestamps \
                 syscall-times successful-only failed-only decode-fds stack-traces syscall-number",
            ),
            ..STRICT
        },
        writes: Names("o output"),
        sets: Names("E env"),
        tampers: (
            Names("e"),
            Names(
                "trace= t= abbrev= a= verbose= v= raw= x= signal= signals= s= status= quiet= silent= silence= q= \
                 read= reads= r= write= writes= w= decode-fds= decode-fd=",
            ),
        ),
        ..PLAIN
    },
    Wrapper { names: Names("fakeroot dbus-run-session zrun lckdo solo"), ..PLAIN },
    Wrapper {
        names: Names("sshpass"),
        options: OptionSyntax { valued: "dfpP", flags: "ev", ..STRICT },
        ..PLAIN
    },
    Wrapper {
        names: Names("systemd-cat"),
        options: OptionSyntax {
            valued: "tp",
            long_valued: Names("identifier priority stderr-priority level-prefix namespace"),
            ..STRICT
        },
        ..PLAIN
    },
    Wrapper {
        names: Names("logsave"),
        options: OptionSyntax { flags: "asv", ..STRICT },
        operands: 1,
        ..PLAIN
    },
    Wrapper {
        names: Names("aa-exec runcon"),
        options: OptionSyntax {
            valued: "pnturl",
            flags: "dvci",
            long_valued: Names("profile namespace type user role range"),
            long_flags: Names("immediate debug verbose"),
            ..STRICT
        },
        ..PLAIN
    },
    Wrapper {
        names: Names("choom"),
        options: OptionSyntax { valued: "np", long_valued: Names("adjust pid"), ..STRICT },
        ..PLAIN
    },
    Wrapper {
        names: Names("xvfb-run"),
        options: OptionSyntax { valued: "efnpsw", flags: "acl", ..STRICT },
        ..PLAIN
    },
    Wrapper { names: Names("cgexec"), options: OptionSyntax { valued: "g", ..STRICT }, ..PLAIN },
    Wrapper {
        names: Names("proxychains proxychains4"),
        options: OptionSyntax { valued: "f", flags: "q", ..STRICT },
        ..PLAIN
    },
    Wrapper {
        names: Names("tini dumb-init"),
        options: OptionSyntax { valued: "pe", flags: "gsvcwV", ..STRICT },
        ..PLAIN
    },
    Wrapper {
        names: Names("valgrind"),
        options: OptionSyntax { flags: "vqd", long_flags: Names(""), ..STRICT },
        writes: Names("log-file xml-file"),
        scripts: Names("db-command"),
        ..PLAIN
    },
    Wrapper {
        names: Names("prlimit"),
        options: OptionSyntax {
            attached: "acdefilmnqrstuvxy",
            long_flags: Names(
                "as core cpu data fsize locks memlock msgqueue nice nofile nproc rss rtprio \
                 rttime sigpending stack",
            ),
            ..STRICT
        },
        ..PLAIN
    },
    Wrapper {
        names: Names("pkexec"),
        options: OptionSyntax {
            long_valued: Names("user"),
            long_flags: Names("keep-cwd disable-internal-agent"),
            ..STRICT
        },
        ..PLAIN
    },
    Wrapper {
        names: Names("numactl"),
        options: OptionSyntax {
            valued: "CNmipl",
            flags: "sHab",
            long_valued: Names("cpunodebind membind physcpubind interleave preferred"),
            ..STRICT
        },
        ..PLAIN
    },
    Wrapper {
        names: Names("env"),
        options: OptionSyntax {
            valued: "uCS",
            flags: "i0v-",
            long_valued: Names("unset chdir split-string"),
            long_flags: Names(
                "ignore-environment null debug block-signal default-signal ignore-signal \
                     list-signal-handling",
            ),
            ..STRICT
        },
        assigns: true,
        skips: Names("-"),
        splits: Names("S split-string"),
        enters: Names("C chdir"),
        ..PLAIN
    },
    Wrapper {
        names: Names("sudo"),
        options: OptionSyntax {
            valued: "CDghpRrTtuU",
            flags: "AbBEHnPSkKN",
            long_valued: Names(
                "user group host prompt chdir chroot role type close-from other-user \
                     command-timeout",
            ),
            long_flags: Names(
                "non-interactive preserve-env set-home stdin background reset-timestamp \
                     askpass bell preserve-groups",
            ),
            ..STRICT
        },
        assigns: true,
        enters: Names("D R chdir chroot"),
        ..PLAIN
    },
    Wrapper {
        names: Names("doas"),
        options: OptionSyntax { valued: "uC", flags: "n", ..STRICT },
        assigns: true,
        ..PLAIN
    },
    Wrapper {
        names: Names("timeout"),
        options: OptionSyntax {
            valued: "ks",
            flags: "fpv",
            long_valued: Names("kill-after signal"),
            long_flags: Names("foreground preserve-status verbose"),
            ..STRICT
        },
        operands: 1,
        ..PLAIN
    },
    Wrapper {
        names: Names("chrt"),
        options: OptionSyntax {
            valued: "TPD",
            flags: "bdfiorRv",
            long_valued: Names("sched-runtime sched-period sched-deadline"),
            long_flags: Names("batch deadline fifo idle other rr reset-on-fork verbose"),
            ..STRICT
        },
        takes_number: true,
        ..PLAIN
    },
    Wrapper {
        names: Names("taskset"),
        options: OptionSyntax { flags: "ac", long_flags: Names("all-tasks cpu-list"), ..STRICT },
        operands: 1,
        ..PLAIN
    },
    Wrapper {
        names: Names("chroot"),
        options: OptionSyntax {
            long_valued: Names("userspec groups"),
            long_flags: Names("skip-chdir"),
            ..STRICT
        },
        operands: 1,
        ..PLAIN
    },
    Wrapper { names: Names("gosu su-exec"), operands: 1, ..PLAIN },
    Wrapper {
        names: Names("faketime"),
        options: OptionSyntax { flags: "fmp", ..STRICT },
        operands: 1,
        ..PLAIN
    },
    Wrapper {
        names: Names("watch"),
        options: OptionSyntax {
            valued: "nq",
            flags: "bcdegprtwx",
            long_valued: Names("interval equexit"),
            long_flags: Names(
                "beep color differences errexit chgexit precise no-rerun no-title no-wrap \
                     exec",
            ),
            ..STRICT
        },
        joins: true,
        ..PLAIN
    },
    Wrapper {
        names: Names("flock"),
        options: OptionSyntax {
            valued: "wEc",
            flags: "sexnuoFv",
            long_valued: Names("wait timeout conflict-exit-code command"),
            long_flags: Names("shared exclusive nonblock nb unlock close no-fork verbose"),
            ..STRICT
        },
        operands: 1,
        scripts: Names("c command"),
        ..PLAIN
    },
];
