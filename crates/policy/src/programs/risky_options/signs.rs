//! Programs that run others whatever their options are, and texts that make a program run another.

use crate::names::Names;

/// Programs that run commands in ways that cannot be judged. Only `--version` and the like are fine.
pub const RUNNERS: Names = Names(
    "abduco acpid ansible ansible-console arch-chroot at autossh batch bconsole \
     bootchartd bwrap byobu caffeinate capsh catatonit chpst chronic cpulimit crash crond \
     cross-env cttyhack daemon daemonize dbus-launch debconf debugfs direnv distrobox \
     dotenv dtach entr envdir envuidgid expect fakechroot firejail flatpak-spawn \
     foreground ftpd gamemoderun gdb gdbserver genie getty agetty gprofng gtester heaptrack \
     hyperfine i386 i486 i586 i686 ifdown ifne ifplugd ifup inetd lftp linux32 \
     linux64 linuxrc lldb lpd ltrace-ng lxc-attach lxc-execute machinectl mangohud mdev \
     mini_httpd mispipe msfconsole multipass multitime newgrp nodemon nq nsenter openvt \
     pee perf pexec popmaildir proot ptyget pueue reformime rlwrap rr \
     run-mailcap run-parts run0 runscript runsv runsvdir s6-setuidgid sash schroot screen \
     scriptlive see setarch setlock setuidgid sg socat softlimit stap \
     start-stop-daemon sulogin svlogd systemd-inhibit systemd-nspawn \
     systemd-run tasksh tcpsvd telnetd timelimit tmate torify trace-cmd trickle \
     tsocks tsp ttyd udhcpc udhcpc6 udhcpd udpsvd uftrace uname26 unshare varnishncsa vidir \
     vipe watchexec watchman-make wine x86_64 xdotool xe xinit startx xpra xterm gnome-terminal \
     konsole alacritty kitty urxvt st foot terminator zellij zcip bugpoint compose \
     debconf-apt-progress debconf-communicate dh dpkg-maintscript-helper dpkg-preconfigure \
     dpkg-reconfigure edit fstab-decode gdb-add-index gdbtui gp-collect-app instmodsh jexec \
     llvm-reduce luit make-first-existing-target memusage msgexec msgfilter not pg_virtualenv \
     rust-gdb rust-gdbgui rust-lldb sotruss switch_root systemd-mount systemd-socket-activate \
     uclampset valgrind.bin vgdb",
);

/// First arguments with which such a program runs nothing.
pub const ASKING: Names = Names("--version --help -V -ls -list");

/// Texts in an argument or in the input that make a program run another.
pub const SIGNS: &[(Names, &[&str])] = &[
    (Names("npm pnpm yarn"), &["scripts."]),
    (Names("m4"), &["syscmd", "include(/dev"]),
    (Names("ftp ncftp tnftp sftp smbclient telnet"), &["!"]),
    (Names("mail mailx s-nail"), &["~!", "~|", "~e", "~v", "~<!"]),
    (Names("curl"), &["%output{"]),
    (Names("gs ghostscript ps2pdf"), &["%pipe%"]),
    (Names("debugfs"), &["!"]),
    (Names("pgbench"), &["\\shell", "\\setshell", "/dev/"]),
    (Names("xdg-user-dir"), &["}", ";", "$", "`", "\n"]),
    (Names("service invoke-rc.d"), &["/"]),
    (Names("systemd-notify"), &["--exec"]),
    (Names("tc"), &["exec", "-b"]),
    (Names("gpg-connect-agent"), &["/run", "/bye !", "--run", "-r"]),
    (
        Names("keytool jarsigner jdb jar javac javadoc jlink jpackage"),
        &["-j-", "-provider", "-doclet"],
    ),
];

/// Compressors, which are harmless as the value of `tar -I`.
pub const COMPRESSORS: Names =
    Names("gzip bzip2 xz zstd lz4 pigz pixz pbzip2 lzip lzma zstdmt brotli compress");
