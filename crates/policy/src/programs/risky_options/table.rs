//! Which options of which programs run other programs or write files.
//!
//! To add a program, add a row to [`RISKY_OPTIONS`].

use crate::names::Names;
use crate::programs::arguments::OptionSyntax;

/// The options of a program that run something, or write files.
pub struct RiskyOptions {
    pub names: Names,
    pub syntax: OptionSyntax,
    /// Options, letters or long, whose value is a command.
    pub run: Names,
    /// Options that can run something that cannot be judged.
    pub refuse: Names,
    /// Options whose value is a file the program writes.
    pub write: Names,
    /// Whether long options can be abbreviated, as with GNU programs.
    pub abbreviates: bool,
}

const PLAIN: OptionSyntax = OptionSyntax {
    valued: "",
    attached: "",
    flags: "",
    long_valued: Names(""),
    long_flags: Names(""),
    exact: Names(""),
    stops_at_operand: false,
};

const NONE: RiskyOptions = RiskyOptions {
    names: Names(""),
    syntax: PLAIN,
    run: Names(""),
    refuse: Names(""),
    write: Names(""),
    abbreviates: true,
};

pub const RISKY_OPTIONS: &[RiskyOptions] = &[
    RiskyOptions {
        names: Names("tar gtar bsdtar"),
        syntax: OptionSyntax {
            valued: "bCfFgHIKLNTVX",
            long_valued: Names(
                "use-compress-program to-command checkpoint-action new-volume-script \
                 info-script rsh-command rmt-command file directory files-from exclude-from \
                 transform owner group",
            ),
            exact: Names("checkpoint to-stdout"),
            ..PLAIN
        },
        run: Names(
            "I F use-compress-program to-command new-volume-script info-script rsh-command \
             rmt-command",
        ),
        refuse: Names("checkpoint-action"),
        ..NONE
    },
    RiskyOptions {
        names: Names("rsync"),
        syntax: OptionSyntax {
            valued: "efTBM",
            long_valued: Names(
                "rsh rsync-path exclude include filter files-from exclude-from include-from \
                 log-file temp-dir backup-dir suffix port bwlimit timeout password-file config",
            ),
            ..PLAIN
        },
        run: Names("e rsh rsync-path"),
        refuse: Names("daemon config M remote-option"),
        abbreviates: false,
        ..NONE
    },
    RiskyOptions {
        names: Names("sort gsort"),
        syntax: OptionSyntax {
            valued: "koStT",
            long_valued: Names(
                "compress-program output key field-separator buffer-size temporary-directory \
                 batch-size parallel files0-from",
            ),
            ..PLAIN
        },
        run: Names("compress-program"),
        write: Names("o output"),
        ..NONE
    },
    RiskyOptions {
        names: Names("rg ripgrep"),
        syntax: OptionSyntax {
            valued: "ABCEMTdefgjmrt",
            long_valued: Names(
                "pre hostname-bin glob type regexp file replace context max-count max-depth \
                 sort threads color colors",
            ),
            ..PLAIN
        },
        run: Names("pre hostname-bin"),
        abbreviates: false,
        ..NONE
    },
    RiskyOptions {
        names: Names("split gsplit"),
        syntax: OptionSyntax {
            valued: "abCnlt",
            long_valued: Names("filter lines bytes"),
            ..PLAIN
        },
        run: Names("filter"),
        ..NONE
    },
    RiskyOptions {
        names: Names("man"),
        syntax: OptionSyntax {
            valued: "PCMSseLRmprE",
            long_valued: Names(
                "pager config-file manpath sections extension locale systems preprocessor \
                 prompt encoding",
            ),
            ..PLAIN
        },
        run: Names("P pager"),
        refuse: Names("H html C config-file X gxditview"),
        ..NONE
    },
    RiskyOptions {
        names: Names("less more most"),
        syntax: OptionSyntax {
            valued: "bhjkoOpPtTxyzD",
            long_valued: Names(
                "lesskey-file lesskey-src lesskey-content log-file LOG-FILE pattern prompt tag",
            ),
            ..PLAIN
        },
        refuse: Names("k lesskey-file lesskey-src lesskey-content"),
        write: Names("o O log-file LOG-FILE"),
        ..NONE
    },
    RiskyOptions {
        names: Names("zip"),
        syntax: OptionSyntax { long_valued: Names("unzip-command"), ..PLAIN },
        refuse: Names("unzip-command"),
        ..NONE
    },
    RiskyOptions {
        names: Names("make gmake"),
        syntax: OptionSyntax {
            valued: "CfIjloWE",
            long_valued: Names("directory file makefile eval include-dir"),
            ..PLAIN
        },
        refuse: Names("E eval"),
        ..NONE
    },
    RiskyOptions {
        names: Names("wget"),
        syntax: OptionSyntax {
            valued: "aeoOitTUPQBSwAR",
            long_valued: Names("use-askpass execute config output-document output-file"),
            ..PLAIN
        },
        run: Names("use-askpass"),
        refuse: Names("e execute config"),
        write: Names("O output-document o output-file a append-output"),
        ..NONE
    },
    RiskyOptions {
        names: Names("curl"),
        syntax: OptionSyntax {
            valued: "AbcCdDeEFhHKmoPQrTuUwxXyYz",
            long_valued: Names(
                "config output data header request user engine dump-header cookie-jar trace \
                 trace-ascii stderr output-dir",
            ),
            ..PLAIN
        },
        refuse: Names("K config engine"),
        write: Names("o output D dump-header c cookie-jar trace trace-ascii stderr output-dir"),
        ..NONE
    },
    RiskyOptions {
        names: Names("npm pnpm yarn"),
        syntax: OptionSyntax {
            valued: "cCw",
            long_valued: Names(
                "script-shell call prefix node-options userconfig globalconfig registry \
                 workspace shell editor",
            ),
            ..PLAIN
        },
        run: Names("script-shell c call"),
        refuse: Names("node-options userconfig globalconfig shell editor viewer git init-module"),
        ..NONE
    },
    RiskyOptions {
        names: Names("npx pnpx bunx"),
        syntax: OptionSyntax {
            valued: "cp",
            long_valued: Names("call package"),
            stops_at_operand: true,
            ..PLAIN
        },
        run: Names("c call script-shell shell"),
        refuse: Names("node-options n node-arg shell-auto-fallback"),
        ..NONE
    },
    RiskyOptions {
        names: Names("cargo"),
        syntax: OptionSyntax { valued: "pjFZ", long_valued: Names("config"), ..PLAIN },
        refuse: Names("config"),
        abbreviates: false,
        ..NONE
    },
    RiskyOptions {
        names: Names("kubectl oc helm"),
        syntax: OptionSyntax {
            valued: "nfolcs",
            long_valued: Names("kubeconfig post-renderer namespace context"),
            ..PLAIN
        },
        run: Names("post-renderer"),
        refuse: Names("kubeconfig exec-command"),
        abbreviates: false,
        ..NONE
    },
    RiskyOptions {
        names: Names("ssh-keygen ssh-add"),
        syntax: OptionSyntax { valued: "aBbCDEeFfGIiJjKMmNnOoPpRrSsTtVwWYyZz", ..PLAIN },
        refuse: Names("D s w S"),
        ..NONE
    },
    RiskyOptions {
        names: Names("install"),
        syntax: OptionSyntax { valued: "gmotS", long_valued: Names("strip-program"), ..PLAIN },
        run: Names("strip-program"),
        ..NONE
    },
    RiskyOptions {
        names: Names("script"),
        syntax: OptionSyntax {
            valued: "cIBOTmoE",
            long_valued: Names("command log-in log-out log-io log-timing"),
            ..PLAIN
        },
        run: Names("c command"),
        ..NONE
    },
    RiskyOptions {
        names: Names("nc ncat netcat"),
        syntax: OptionSyntax {
            valued: "ceIioOpPqsTVwXx",
            long_valued: Names("exec sh-exec"),
            ..PLAIN
        },
        refuse: Names("e c exec sh-exec lua-exec"),
        ..NONE
    },
];

/// Programs that run commands in ways that cannot be judged. Only `--version` and the like are fine.
pub const RUNNERS: Names = Names(
    "at batch bwrap daemonize entr expect firejail gdb lldb ltrace-ng machinectl nsenter proot \
     rlwrap run-parts socat screen start-stop-daemon systemd-nspawn systemd-run unshare setarch \
     perf sg heaptrack cpulimit trickle catatonit s6-setuidgid setuidgid chpst softlimit envdir \
     torify tsocks systemd-inhibit caffeinate chronic ifne hyperfine watchexec nodemon \
     cross-env dotenv direnv fakechroot schroot gamemoderun mangohud dtach abduco lxc-attach \
     i386 i486 i586 i686 x86_64 linux32 linux64 uname26 dbus-launch ssh-agent",
);

/// Compilers, and the beginnings of arguments that make them run or load something.
pub const COMPILERS: (Names, Names) = (
    Names("gcc g++ cc c++ cpp clang clang++ gfortran"),
    Names("-wrapper -fplugin -B -specs --specs @ -fuse-ld=/ -Wl,-plugin -Xclang -load -Xlinker"),
);

/// Commands of sqlite3 that run and write nothing.
pub const SQLITE: Names = Names(
    ".databases .dump .exit .fullschema .headers .help .indexes .mode .nullvalue .print .quit \
     .schema .separator .show .stats .tables .timer .width",
);

/// Texts in an argument or in the input that make a program run another.
pub const SIGNS: &[(Names, &[&str])] = &[
    (Names("sqlite3"), &["load_extension", "edit(", "writefile("]),
    (
        Names("psql mysql mariadb"),
        &["\\!", "\\copy", "\\g |", "\\o |", "\\i", "system ", "program '"],
    ),
    (Names("zip"), &["-tt"]),
    (Names("rustc"), &["linker="]),
    (Names("npm pnpm yarn"), &["scripts."]),
];

/// Options of go that name a program, as the next word or after `=`.
pub const GO: Names = Names("exec toolexec vettool modfile overlay");

/// Compressors, which are harmless as the value of `tar -I`.
pub const COMPRESSORS: Names =
    Names("gzip bzip2 xz zstd lz4 pigz pixz pbzip2 lzip lzma zstdmt brotli compress");
