//! Programs whose operands, and the values of some options, name files they write.
//!
//! A row lists every option of its program: one that took a value without being listed as such would make its value an
//! operand, and the file that is written another one.

use crate::names::Names;
use crate::programs::arguments::OptionSyntax;

pub struct Writer {
    pub names: Names,
    pub syntax: OptionSyntax,
    pub target: Target,
    /// Options whose value is a file or folder that is written.
    pub writes: Names,
    /// Options whose value is the beginning of the path of a file that is written.
    pub begins: Names,
    /// Options whose value is another part of the name.
    pub parts: Names,
}

/// Which of its operands a program writes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Target {
    All,
    First,
    Last,
    /// The last, which may be a folder that gets the others.
    Into,
    /// All but the first, which it only reads.
    Rest,
    /// The same, and they are the beginnings of names.
    Beginning,
    /// None.
    Nothing,
}

impl Target {
    pub fn among<T>(self, operands: &[T]) -> &[T] {
        match self {
            Self::All => operands,
            Self::First => &operands[..operands.len().min(1)],
            Self::Last | Self::Into => &operands[operands.len().saturating_sub(1)..],
            Self::Rest | Self::Beginning => &operands[operands.len().min(1)..],
            Self::Nothing => &[],
        }
    }
}

/// Letters with a value and without, long options with a value and without.
const fn options(
    valued: &'static str,
    flags: &'static str,
    long_valued: &'static str,
    long_flags: &'static str,
) -> OptionSyntax {
    OptionSyntax {
        valued,
        flags,
        long_valued: Names(long_valued),
        long_flags: Names(long_flags),
        attached: "",
        exact: Names(""),
        stops_at_operand: false,
    }
}

const fn row(names: &'static str, target: Target, syntax: OptionSyntax) -> Writer {
    let none = Names("");
    Writer { names: Names(names), syntax, target, writes: none, begins: none, parts: none }
}

pub const WRITERS: &[Writer] = &[
    row(
        "tee",
        Target::All,
        options("", "aip", "", "append ignore-interrupts output-error help version"),
    ),
    row(
        "touch",
        Target::All,
        options("drt", "acfhm", "date reference time", "no-create no-dereference help version"),
    ),
    row("mkdir", Target::All, options("m", "pvZ", "mode", "parents verbose context help version")),
    row("mkfifo", Target::All, options("m", "Z", "mode", "context help version")),
    row("mknod", Target::First, options("m", "Z", "mode", "context help version")),
    row("sponge", Target::All, options("", "ah", "", "help")),
    row(
        "truncate",
        Target::All,
        options("rs", "co", "reference size", "no-create io-blocks help version"),
    ),
    Writer {
        writes: Names("p tmpdir"),
        ..row(
            "mktemp",
            Target::All,
            options("p", "dqtuV", "suffix", "directory dry-run quiet tmpdir help version"),
        )
    },
    row(
        "cp",
        Target::Into,
        options(
            "tS",
            "abdfHiLlnPpRrsTuvxZ",
            "target-directory suffix no-preserve sparse",
            "archive attributes-only backup context copy-contents debug dereference force help interactive \
             keep-directory-symlink link no-clobber no-dereference no-target-directory one-file-system parents \
             preserve recursive reflink remove-destination strip-trailing-slashes symbolic-link update verbose \
             version",
        ),
    ),
    row(
        "mv",
        Target::Into,
        options(
            "tS",
            "bfinTuvZ",
            "target-directory suffix",
            "backup context debug exchange force help interactive no-clobber no-copy no-target-directory \
             strip-trailing-slashes update verbose version",
        ),
    ),
    row(
        "ln",
        Target::Into,
        options(
            "tS",
            "bdFfiLnPrsTv",
            "target-directory suffix",
            "backup directory force help interactive logical no-dereference no-target-directory physical relative \
             symbolic verbose version",
        ),
    ),
    row(
        "install",
        Target::Into,
        OptionSyntax {
            exact: Names("strip"),
            ..options(
                "gmotS",
                "bCcDdpsTvZ",
                "group mode owner strip-program suffix target-directory",
                "backup compare context debug directory help no-target-directory preserve-context \
                 preserve-timestamps verbose version",
            )
        },
    ),
    row(
        "uniq",
        Target::Rest,
        options(
            "fsw",
            "cDdiuz0123456789",
            "skip-fields skip-chars check-chars",
            "all-repeated count group help ignore-case repeated unique version zero-terminated",
        ),
    ),
    row(
        "split",
        Target::Beginning,
        options(
            "abClnt",
            "deuxv0123456789",
            "additional-suffix bytes filter line-bytes lines number separator suffix-length",
            "elide-empty-files help hex-suffixes numeric-suffixes unbuffered verbose version",
        ),
    ),
    Writer {
        begins: Names("f prefix"),
        parts: Names("b suffix-format"),
        ..row(
            "csplit",
            Target::Nothing,
            options(
                "bfn",
                "kqsz",
                "digits prefix suffix-format",
                "elide-empty-files help keep-files quiet silent suppress-matched version",
            ),
        )
    },
    Writer {
        writes: Names("b"),
        ..row("zipsplit", Target::First, options("bnr", "hipqst", "", "-"))
    },
    Writer {
        writes: Names("dump-section"),
        ..row(
            "objcopy",
            Target::Last,
            OptionSyntax {
                attached: "i",
                exact: Names("interleave strip-unneeded weaken"),
                ..OBJCOPY
            },
        )
    },
    Writer {
        writes: Names("o r output reject-file"),
        begins: Names("B prefix"),
        parts: Names("Y z basename-prefix suffix"),
        ..row(
            "patch",
            Target::First,
            options(
                "BDdFgiopRrVYz",
                "bcEefflNnRsTtuvZ",
                "basename-prefix directory fuzz get ifdef input output prefix quoting-style read-only \
                 reject-file reject-format strip suffix version-control",
                "backup backup-if-mismatch batch binary context dry-run ed follow-symlinks force forward help \
                 ignore-whitespace merge no-backup-if-mismatch normal posix quiet remove-empty-files reverse \
                 set-time set-utc silent unified verbose version",
            ),
        )
    },
];

const OBJCOPY: OptionSyntax = options(
    "IOBFjRNKLGWb",
    "pDUSgwxXMvVh",
    "add-gnu-debuglink add-section add-symbol adjust-section-vma adjust-start adjust-vma \
     alt-machine-code binary-architecture byte \
     change-addresses change-section-address change-section-lma change-section-vma change-start dump-section \
     file-alignment gap-fill globalize-symbol globalize-symbols heap image-base input-target \
     interleave-width keep-global-symbol keep-global-symbols keep-section keep-symbol keep-symbols \
     localize-symbol localize-symbols long-section-names only-section output-target pad-to \
     prefix-alloc-sections prefix-sections prefix-symbols redefine-sym redefine-syms \
     remove-relocations remove-section rename-section reverse-bytes section-alignment \
     set-section-alignment set-section-flags set-start srec-len stack strip-symbol strip-symbols \
     strip-unneeded-symbol strip-unneeded-symbols subsystem target update-section \
     verilog-data-width weaken-symbol weaken-symbols",
    "adjust-warnings change-leading-char change-warnings compress-debug-sections debugging \
     decompress-debug-sections disable-deterministic-archives \
     discard-all discard-locals elf-stt-common enable-deterministic-archives extract-dwo \
     extract-symbol help impure info interleave keep-file-symbols keep-section-symbols \
     localize-hidden merge-notes no-adjust-warnings no-change-warnings no-merge-notes \
     only-keep-debug preserve-dates pure readonly-text \
     remove-leading-char srec-forceS3 strip-all strip-debug strip-dwo strip-unneeded verbose version \
     weaken wildcard writable-text",
);
