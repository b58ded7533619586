//! Which programs do more with their input than read it, or nothing else.

use crate::names::Names;

pub const PAGERS: Names = Names("bat less lv man more most moar ov pg w3m zless zmore");

/// Programs that run lines of their input that begin in a certain way.
pub const ESCAPING: Names =
    Names("dc ed ftp lftp m4 mail mailx ncftp red sftp smbclient telnet tnftp");

/// Programs that start pagers or editors by themselves.
pub const STARTERS: Names = Names(
    "ansible-vault apt apt-get aptitude aws busctl coredumpctl crontab dmesg dpkg fossil gcloud gem \
     gh git glab gpg hg hostnamectl info jj journalctl kubectl loginctl networkctl oc pass \
     perldoc resolvectl sudoedit svn systemctl timedatectl visudo",
);

/// Programs that run others after a single key: file managers, monitors, browsers, and editors in which text is a
/// command.
pub const KEYED: Names = Names(
    "aerc alpine amp atop bpytop broot btop calcurse clifm cmus ctop dired dua elinks fff finch gdu \
     gitui glances glow helix htop hx iotop irssi joshuto k9s kak lazydocker lazygit lf links lynx mc \
     mcdiff mcview mocp mutt ncdu ncmpcpp neomutt newsboat nnn pine ranger s-nail sam sc sc-im slrn \
     tig tin vd vifm vis visidata weechat xplr yazi ytop",
);

/// Programs that choose among lines, and run others if an option says so.
pub const CHOOSERS: Names = Names("fzf gum peco percol sk");

/// Files with commands that run when the editor is left.
pub const COMMAND_FILES: &[&str] = &["git-rebase-todo", "crontab"];

pub const DEBUGGERS: Names = Names(
    "bashdb byebug cgdb debug delve dlv gdb gdb-multiarch ipdb jdb lldb node-inspect pdb pudb r2 \
     radare2 rdbg rizin rust-gdb rust-lldb valgrind-gdb",
);

/// Modules and scripts that read a language, and the interpreter that does.
pub const CONSOLES: &[(Names, &str)] = &[
    (Names("IPython asyncio bpython code ipython ptpython ptipython pty xonsh"), "python"),
    (Names("irb pry rails ripl"), "ruby"),
    (Names("ts-node tsx"), "node"),
    (Names("psysh"), "php"),
    (Names("pgcli usql"), "psql"),
    (Names("mycli"), "mysql"),
    (Names("litecli"), "sqlite3"),
];

/// What a short program says if it reads a program itself.
pub const CONSOLE_WORDS: &[&str] = &[
    "binding",
    "breakpoint",
    "child_process",
    "cmdloop",
    "compile",
    "debugger",
    "eval",
    "exec",
    "interact",
    "pdb",
    "popen",
    "pty",
    "qx",
    "readpipe",
    "repl",
    "set_trace",
    "spawn",
    "system",
    "subprocess",
];

/// Programs that read data only, or nothing.
pub const DATA: Names = Names(
    "base32 base64 bc cat cksum cmp column comm cut dd diff expand factor fmt fold grep head hexdump \
     iconv jq join md5sum nl numfmt od paste pr rev sha1sum sha224sum sha256sum sha384sum \
     sha512sum shuf sleep sort split strings sum tac tail tee tr tsort unexpand uniq wc xxd yes yq",
);

/// Programs that pass their input on to another terminal or machine.
pub const RELAYS: Names = Names(
    "abduco asciinema autossh distrobox doas docker dtach expect flatpak incus kubectl limactl lxc \
     machinectl minicom mosh multipass nc nerdctl oc picocom podman rlwrap runuser screen script \
     socat ssh su sudo telnet tmux toolbox ttyrec unbuffer vagrant zellij",
);

/// The ones among them that start a shell unless they are told otherwise.
pub const SHELL_RELAYS: Names = Names(
    "abduco asciinema autossh distrobox dtach machinectl mosh screen script ssh su tmux toolbox \
     ttyrec vagrant zellij",
);

/// The ones among them that run only what their arguments say.
pub const PLAIN_RELAYS: Names = Names("doas runuser su sudo");
