//! Programs with only a few options that run something or write files, a row each.

use super::table::{PLAIN, RiskyOptions};
use crate::names::Names;
use crate::programs::arguments::OptionSyntax;

/// A program with a few such options.
const fn few(
    names: &'static str,
    (valued, long_valued): (&'static str, &'static str),
    run: &'static str,
    refuse: &'static str,
    write: &'static str,
) -> RiskyOptions {
    RiskyOptions {
        names: Names(names),
        syntax: OptionSyntax { valued, long_valued: Names(long_valued), ..PLAIN },
        run: Names(run),
        refuse: Names(refuse),
        write: Names(write),
        aside: Names(""),
        abbreviates: true,
    }
}

/// Rows of the same kind: names, options that take a value (letters, then long ones), and the options whose value is a
/// command, that can run anything, and whose value is a file to write.
pub const FEW_RISKY_OPTIONS: &[RiskyOptions] = &[
    few(
        "apt apt-get aptitude apt-cache apt-mark",
        ("ot", "option config-file"),
        "",
        "c config-file",
        "",
    ),
    few(
        "aria2c",
        ("dio", "conf-path dir out log"),
        "",
        "conf-path on-download-start on-download-stop on-download-complete \
         on-download-error on-download-pause on-bt-download-complete",
        "o out log",
    ),
    few("bat delta", ("lHrm", "pager language theme style"), "pager", "", ""),
    few("bpftrace", ("ceop", "cmd"), "c cmd", "unsafe", "o output"),
    few(
        "bazel bazelisk",
        ("c", "run_under workspace_status_command bazelrc"),
        "run_under workspace_status_command",
        "bazelrc",
        "",
    ),
    few("cpio", ("CDEFHIMORW", "rsh-command file directory format"), "rsh-command", "", "O F file"),
    few("diff3 sdiff", ("oLwI", "diff-program output label"), "diff-program", "", "o output"),
    few(
        "dpkg",
        ("iD", "pre-invoke post-invoke status-logger log admindir root instdir"),
        "pre-invoke post-invoke status-logger",
        "root instdir admindir",
        "log",
    ),
    few("dpkg-architecture", ("acfioqs", "command"), "c command", "", ""),
    few(
        "dpkg-buildpackage debuild",
        ("rR", "root-command rules-file hook"),
        "r root-command",
        "R rules-file hook",
        "",
    ),
    few(
        "gpg gpgsm gpgv",
        (
            "oru",
            "output options homedir agent-program dirmngr-program photo-viewer \
         pinentry-program exec-path keyserver-options",
        ),
        "agent-program dirmngr-program photo-viewer pinentry-program",
        "options homedir exec-path keyserver-options",
        "o output",
    ),
    few(
        "gpg-agent",
        ("", "pinentry-program scdaemon-program"),
        "pinentry-program scdaemon-program",
        "daemon options",
        "",
    ),
    few("groff nroff troff pic grn eqn", ("dfmMnorTwWPI", ""), "", "U", ""),
    few("hg", ("R", "config config-file"), "", "config config-file", ""),
    few("iptables ip6tables", ("", "modprobe"), "modprobe M", "", ""),
    few("jj", ("R", "config config-toml config-file"), "", "config config-toml config-file", ""),
    few(
        "just",
        ("dfEs", "shell shell-arg justfile command dotenv-path chooser set"),
        "shell chooser",
        "c command shell-arg",
        "",
    ),
    few(
        "mysql mysqldump mysqladmin",
        (
            "eDhPpuT",
            "pager tee defaults-file defaults-extra-file plugin-dir login-path result-file \
         execute init-command",
        ),
        "pager",
        "defaults-file defaults-extra-file plugin-dir",
        "tee result-file r",
    ),
    few("nm ar ranlib strip objcopy objdump size", ("", "plugin"), "", "plugin", ""),
    few("nmap", ("oiep", "script datadir"), "", "script script-args datadir", "oN oX oG oA"),
    few(
        "pandoc",
        ("fotFL", "filter lua-filter pdf-engine pdf-engine-opt defaults data-dir output"),
        "F filter pdf-engine",
        "L lua-filter d defaults data-dir pdf-engine-opt",
        "o output",
    ),
    few(
        "patch",
        ("pidorBDFgVYz", "output reject-file get directory input"),
        "",
        "e ed g get",
        "o output r reject-file",
    ),
    few(
        "pip",
        ("rceiUt", "editor python log cache-dir requirement index-url target"),
        "editor",
        "python",
        "log",
    ),
    few(
        "psql pg_dump pg_dumpall",
        (
            "cdfFhLoPpRTUvn",
            "command dbname file output log-file host port username set variable pset",
        ),
        "",
        "",
        "L log-file",
    ),
    few(
        "rclone",
        ("", "password-command config plugin-path"),
        "password-command",
        "config metadata-mapper",
        "",
    ),
    few("sshfs", ("opF", ""), "", "o F", ""),
    few("mosh", ("p", "ssh server client"), "ssh server client", "", ""),
    few(
        "svn",
        ("rmF", "editor-cmd diff-cmd diff3-cmd config-dir config-option username password"),
        "editor-cmd diff-cmd diff3-cmd",
        "config-dir config-option",
        "",
    ),
    few("tcpdump", ("BcCdEFGijJmMrsTVwWyz", "postrotate-command"), "z postrotate-command", "", "w"),
    few("tshark dumpcap", ("aBcdeEfFjJKLNOopRrTtuwXYz", ""), "", "X", "w"),
    few("asciinema ttyrec", ("cet", "command"), "c command e", "", ""),
    few("nix-shell", ("pIAEf", "run command packages attr expr"), "run command", "", ""),
    few("ctags etags", ("fILo", "options"), "", "options", "f o"),
    few("cmake", ("BCDGSTAUP", "build install preset target config"), "", "P C E", ""),
    few(
        "ctest",
        ("CDMRESTj", "test-command build-exe-dir build-and-test"),
        "",
        "S script test-command build-and-test",
        "",
    ),
    few("gem", ("iev", "editor"), "editor", "e", ""),
    few("exim sendmail", ("", ""), "", "be C D", ""),
    few("logrotate", ("sml", "mail state"), "m mail", "", "s state"),
    few(
        "openvpn",
        ("", "up down route-up script-security config"),
        "",
        "up down route-up script-security plugin client-connect tls-verify \
         auth-user-pass-verify learn-address ipchange",
        "",
    ),
    few("shuf", ("iono", "output input-range head-count random-source"), "", "", "o output"),
    few("iconv", ("fto", "output from-code to-code"), "", "", "o output"),
    few("csplit", ("bfn", "prefix suffix-format digits"), "", "", "f prefix"),
    few("xmllint", ("o", "output encode xpath"), "", "", "o output"),
    few("unzip", ("dxP", ""), "", "", "d"),
    few("mktemp", ("p", "tmpdir suffix"), "", "", "p tmpdir"),
    few("msgfmt msgcat msgmerge xgettext", ("oDp", "output-file"), "", "", "o output-file"),
    few("protoc", ("Io", "plugin descriptor_set_out"), "", "plugin", "o descriptor_set_out"),
    few(
        "prove",
        ("eIMPj", "exec harness formatter plugin rc"),
        "e exec",
        "M P plugin harness formatter rc",
        "",
    ),
    few(
        "gpg-zip gpgtar",
        ("oCTu", "gpg tar output tar-args gpg-args"),
        "gpg tar",
        "gpg-args tar-args",
        "o output",
    ),
    few("pygmentize", ("lfFOPSo", ""), "", "x", "o"),
    few("rpcgen", ("YDo", ""), "", "Y", "o"),
    few("ssh-copy-id", ("ipoF", ""), "", "o F", ""),
    few("pg_ctl initdb", ("Dolpc", "pgdata options log"), "", "o options p c set", ""),
];
