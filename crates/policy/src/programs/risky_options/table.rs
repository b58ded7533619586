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
    /// Options whose value is a file the program writes although that is not what it is for.
    pub aside: Names,
    /// Whether long options can be abbreviated, as with GNU programs.
    pub abbreviates: bool,
}

pub const PLAIN: OptionSyntax = OptionSyntax {
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
    aside: Names(""),
    abbreviates: true,
};

pub const RISKY_OPTIONS: &[RiskyOptions] = &[
    RiskyOptions {
        names: Names("tar"),
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
        names: Names("sort"),
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
        names: Names("rg"),
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
        names: Names("split"),
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
        refuse: Names("k T lesskey-file lesskey-src lesskey-content tag-file"),
        write: Names("o O log-file LOG-FILE"),
        ..NONE
    },
    RiskyOptions {
        names: Names("zip"),
        syntax: OptionSyntax {
            valued: "btnixOPsS",
            long_valued: Names("unzip-command temp-path output-file out logfile-path"),
            ..PLAIN
        },
        refuse: Names("unzip-command"),
        write: Names("O output-file logfile-path"),
        ..NONE
    },
    RiskyOptions {
        names: Names("wget wget2"),
        syntax: OptionSyntax {
            valued: "aeoOitTUPQBwARDIlX",
            long_valued: Names(
                "use-askpass execute config output-document output-file append-output \
                 rejected-log save-cookies warc-file hsts-file directory-prefix header user-agent \
                 post-data post-file input-file",
            ),
            ..PLAIN
        },
        run: Names("use-askpass"),
        refuse: Names("e execute config"),
        write: Names(
            "O output-document o output-file a append-output rejected-log save-cookies warc-file \
             hsts-file P directory-prefix",
        ),
        ..NONE
    },
    RiskyOptions {
        names: Names("curl"),
        syntax: OptionSyntax {
            valued: "AbcCdDeEFhHKmoPQrTuUwxXyYz",
            long_valued: Names(
                "alt-svc config cookie cookie-jar data data-binary data-raw data-urlencode \
                 dump-header engine etag-compare etag-save form header hsts libcurl max-time output \
                 output-dir proxy request retry stderr trace trace-ascii upload-file url user \
                 user-agent write-out",
            ),
            exact: Names("proxy-insecure trace-time trace-ids"),
            ..PLAIN
        },
        refuse: Names("K config engine expand-output expand-config"),
        write: Names("o output D dump-header c cookie-jar output-dir"),
        aside: Names("libcurl etag-save hsts alt-svc trace trace-ascii stderr"),
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
        refuse: Names("config Z"),
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
        names: Names("nc"),
        syntax: OptionSyntax {
            valued: "ceIioOpPqsTVwXx",
            long_valued: Names("exec sh-exec"),
            ..PLAIN
        },
        refuse: Names("e c exec sh-exec lua-exec"),
        ..NONE
    },
];
