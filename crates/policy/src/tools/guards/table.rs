//! What is known of programs.

use super::super::arguments::Form;
use crate::words::Words;

/// What is known of a program.
pub struct Guard {
    pub names: Words,
    pub form: Form,
    /// Options, letters or long, whose value is a command.
    pub run: Words,
    /// Options that cannot be judged.
    pub refuse: Words,
    /// Options whose value is a file that is written.
    pub write: Words,
    /// Whether long options may be abbreviated, as GNU programs allow.
    pub abbreviates: bool,
}

const PLAIN: Form = Form {
    valued: "",
    attached: "",
    flags: "",
    long_valued: Words(""),
    long_flags: Words(""),
    whole: Words(""),
    stops: false,
};

const NONE: Guard = Guard {
    names: Words(""),
    form: PLAIN,
    run: Words(""),
    refuse: Words(""),
    write: Words(""),
    abbreviates: true,
};

pub const GUARDS: &[Guard] = &[
    Guard {
        names: Words("tar gtar bsdtar"),
        form: Form {
            valued: "bCfFgHIKLNTVX",
            long_valued: Words(
                "use-compress-program to-command checkpoint-action new-volume-script \
                 info-script rsh-command rmt-command file directory files-from exclude-from \
                 transform owner group",
            ),
            whole: Words("checkpoint to-stdout"),
            ..PLAIN
        },
        run: Words(
            "I F use-compress-program to-command new-volume-script info-script rsh-command \
             rmt-command",
        ),
        refuse: Words("checkpoint-action"),
        ..NONE
    },
    Guard {
        names: Words("rsync"),
        form: Form {
            valued: "efTBM",
            long_valued: Words(
                "rsh rsync-path exclude include filter files-from exclude-from include-from \
                 log-file temp-dir backup-dir suffix port bwlimit timeout password-file config",
            ),
            ..PLAIN
        },
        run: Words("e rsh rsync-path"),
        refuse: Words("daemon config M remote-option"),
        abbreviates: false,
        ..NONE
    },
    Guard {
        names: Words("sort gsort"),
        form: Form {
            valued: "koStT",
            long_valued: Words(
                "compress-program output key field-separator buffer-size temporary-directory \
                 batch-size parallel files0-from",
            ),
            ..PLAIN
        },
        run: Words("compress-program"),
        write: Words("o output"),
        ..NONE
    },
    Guard {
        names: Words("rg ripgrep"),
        form: Form {
            valued: "ABCEMTdefgjmrt",
            long_valued: Words(
                "pre hostname-bin glob type regexp file replace context max-count max-depth \
                 sort threads color colors",
            ),
            ..PLAIN
        },
        run: Words("pre hostname-bin"),
        abbreviates: false,
        ..NONE
    },
    Guard {
        names: Words("split gsplit"),
        form: Form { valued: "abCnlt", long_valued: Words("filter lines bytes"), ..PLAIN },
        run: Words("filter"),
        ..NONE
    },
    Guard {
        names: Words("man"),
        form: Form {
            valued: "PCMSseLRmprE",
            long_valued: Words(
                "pager config-file manpath sections extension locale systems preprocessor \
                 prompt encoding",
            ),
            ..PLAIN
        },
        run: Words("P pager"),
        refuse: Words("H html C config-file X gxditview"),
        ..NONE
    },
    Guard {
        names: Words("less more most"),
        form: Form {
            valued: "bhjkoOpPtTxyzD",
            long_valued: Words(
                "lesskey-file lesskey-src lesskey-content log-file LOG-FILE pattern prompt tag",
            ),
            ..PLAIN
        },
        refuse: Words("k lesskey-file lesskey-src lesskey-content"),
        write: Words("o O log-file LOG-FILE"),
        ..NONE
    },
    Guard {
        names: Words("zip"),
        form: Form { long_valued: Words("unzip-command"), ..PLAIN },
        refuse: Words("unzip-command"),
        ..NONE
    },
    Guard {
        names: Words("make gmake"),
        form: Form {
            valued: "CfIjloWE",
            long_valued: Words("directory file makefile eval include-dir"),
            ..PLAIN
        },
        refuse: Words("E eval"),
        ..NONE
    },
    Guard {
        names: Words("wget"),
        form: Form {
            valued: "aeoOitTUPQBSwAR",
            long_valued: Words("use-askpass execute config output-document output-file"),
            ..PLAIN
        },
        run: Words("use-askpass"),
        refuse: Words("e execute config"),
        write: Words("O output-document o output-file a append-output"),
        ..NONE
    },
    Guard {
        names: Words("curl"),
        form: Form {
            valued: "AbcCdDeEFhHKmoPQrTuUwxXyYz",
            long_valued: Words(
                "config output data header request user engine dump-header cookie-jar trace \
                 trace-ascii stderr output-dir",
            ),
            ..PLAIN
        },
        refuse: Words("K config engine"),
        write: Words("o output D dump-header c cookie-jar trace trace-ascii stderr output-dir"),
        ..NONE
    },
    Guard {
        names: Words("npm pnpm yarn"),
        form: Form {
            valued: "cCw",
            long_valued: Words(
                "script-shell call prefix node-options userconfig globalconfig registry \
                 workspace shell editor",
            ),
            ..PLAIN
        },
        run: Words("script-shell c call"),
        refuse: Words("node-options userconfig globalconfig shell editor viewer git init-module"),
        ..NONE
    },
    Guard {
        names: Words("npx pnpx bunx"),
        form: Form { valued: "cp", long_valued: Words("call package"), stops: true, ..PLAIN },
        run: Words("c call script-shell shell"),
        refuse: Words("node-options n node-arg shell-auto-fallback"),
        ..NONE
    },
    Guard {
        names: Words("cargo"),
        form: Form { valued: "pjFZ", long_valued: Words("config"), ..PLAIN },
        refuse: Words("config"),
        abbreviates: false,
        ..NONE
    },
    Guard {
        names: Words("kubectl oc helm"),
        form: Form {
            valued: "nfolcs",
            long_valued: Words("kubeconfig post-renderer namespace context"),
            ..PLAIN
        },
        run: Words("post-renderer"),
        refuse: Words("kubeconfig exec-command"),
        abbreviates: false,
        ..NONE
    },
    Guard {
        names: Words("ssh-keygen ssh-add"),
        form: Form { valued: "aBbCDEeFfGIiJjKMmNnOoPpRrSsTtVwWYyZz", ..PLAIN },
        refuse: Words("D s w S"),
        ..NONE
    },
    Guard {
        names: Words("install"),
        form: Form { valued: "gmotS", long_valued: Words("strip-program"), ..PLAIN },
        run: Words("strip-program"),
        ..NONE
    },
    Guard {
        names: Words("script"),
        form: Form {
            valued: "cIBOTmoE",
            long_valued: Words("command log-in log-out log-io log-timing"),
            ..PLAIN
        },
        run: Words("c command"),
        ..NONE
    },
    Guard {
        names: Words("nc ncat netcat"),
        form: Form { valued: "ceIioOpPqsTVwXx", long_valued: Words("exec sh-exec"), ..PLAIN },
        refuse: Words("e c exec sh-exec lua-exec"),
        ..NONE
    },
];

/// Programs that run whatever they are told, in ways nobody can judge; fine only to ask who they are.
pub const RUNNERS: Words = Words(
    "at batch bwrap daemonize entr expect firejail gdb lldb ltrace-ng machinectl nsenter proot \
     rlwrap run-parts socat screen start-stop-daemon systemd-nspawn systemd-run unshare \
     setarch perf sg heaptrack cpulimit trickle catatonit s6-setuidgid setuidgid chpst softlimit envdir \
     torify tsocks systemd-inhibit caffeinate chronic ifne hyperfine watchexec nodemon cross-env \
     dotenv direnv fakechroot schroot gamemoderun mangohud dtach abduco lxc-attach i386 i486 i586 i686 x86_64 linux32 linux64 uname26 dbus-launch ssh-agent",
);

/// Editors, which run what their arguments or their input say.
pub const EDITORS: Words = Words("vim vi nvim ex view vimdiff emacs nano pico gvim");

/// Beginnings of arguments that make a compiler run or load something.
pub const COMPILERS: (Words, Words) = (
    Words("gcc g++ cc c++ cpp clang clang++ gfortran"),
    Words("-wrapper -fplugin -B -specs --specs @ -fuse-ld=/ -Wl,-plugin -Xclang -load -Xlinker"),
);

/// Commands of sqlite3 that neither run nor write anything.
pub const SQLITE: Words = Words(
    ".databases .dump .exit .fullschema .headers .help .indexes .mode .nullvalue .print .quit \
     .schema .separator .show .stats .tables .timer .width",
);

/// Text in an argument, or in the input, that makes a program run another.
pub const SIGNS: &[(Words, &[&str])] = &[
    (Words("sqlite3"), &["load_extension", "edit(", "writefile("]),
    (
        Words("psql mysql mariadb"),
        &["\\!", "\\copy", "\\g |", "\\o |", "\\i", "system ", "program '"],
    ),
    (Words("zip"), &["-tt"]),
    (Words("rustc"), &["linker="]),
    (Words("npm pnpm yarn"), &["scripts."]),
];

/// Options of go that run a program, and take it as the next word or behind `=`.
pub const GO: Words = Words("exec toolexec vettool modfile overlay");

/// Compressors, which do nothing else.
pub const COMPRESSORS: Words =
    Words("gzip bzip2 xz zstd lz4 pigz pixz pbzip2 lzip lzma zstdmt brotli compress");

/// Programs that write files they are given.
pub struct Writer {
    pub names: Words,
    /// Letters that take a value.
    pub valued: &'static str,
    pub target: Target,
}

/// Which of its operands a program writes.
pub enum Target {
    All,
    Last,
    /// The second, if there are two.
    Second,
}

impl Target {
    pub fn is_all(&self) -> bool {
        matches!(self, Self::All)
    }
}

pub const WRITERS: &[Writer] = &[
    Writer { names: Words("tee touch mkdir"), valued: "drtm", target: Target::All },
    Writer { names: Words("truncate"), valued: "rs", target: Target::All },
    Writer { names: Words("cp mv ln"), valued: "tS", target: Target::Last },
    Writer { names: Words("install"), valued: "gmotS", target: Target::Last },
    Writer { names: Words("uniq"), valued: "fsw", target: Target::Second },
    Writer { names: Words("split csplit"), valued: "abClntfn", target: Target::Second },
];
