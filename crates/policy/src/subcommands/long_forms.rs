//! Long options, and the letters with the same meaning: `curl --output` is `curl -o`.
//!
//! The options are those that the programs list in their help. A letter has the case that the program gives it. An
//! option without a letter is here only if it is also the beginning of another. For a program without a row, a deny
//! rule means the option as it is spelled.

use crate::names::Names;

/// Long options without their dashes, each with the letters that mean the same.
const LONG_FORMS: &[(Names, &str)] = &[
    (Names("rm"), "dir=d force=f recursive=rR verbose=v"),
    (
        Names("cp"),
        "archive=a backup=b dereference=L force=f interactive=i link=l no-clobber=n no-dereference=P \
         no-target-directory=T one-file-system=x preserve=p recursive=Rr suffix=S symbolic-link=s target-directory=t \
         update=u verbose=v",
    ),
    (
        Names("mv"),
        "backup=b context=Z force=f interactive=i no-clobber=n no-target-directory=T suffix=S target-directory=t \
         update=u verbose=v",
    ),
    (
        Names("ln"),
        "backup=b directory=dF force=f interactive=i logical=L no-dereference=n no-target-directory=T physical=P \
         relative=r suffix=S symbolic=s target-directory=t verbose=v",
    ),
    (
        Names("install"),
        "backup=b compare=C directory=d group=g mode=m no-target-directory=T owner=o preserve-timestamps=p strip=s \
         suffix=S target-directory=t verbose=v",
    ),
    (Names("mkdir"), "mode=m parents=p verbose=v"),
    (Names("rmdir"), "parents=p verbose=v"),
    (Names("touch"), "date=d no-create=c no-dereference=h reference=r"),
    (Names("chmod"), "changes=c quiet=f recursive=Rr silent=f verbose=v"),
    (Names("chown"), "changes=c no-dereference=h quiet=f recursive=Rr silent=f verbose=v"),
    (Names("chgrp"), "changes=c no-dereference=h quiet=f recursive=Rr silent=f verbose=v"),
    (Names("shred"), "exact=x force=f iterations=n remove=u size=s verbose=v zero=z"),
    (Names("truncate"), "io-blocks=o no-create=c reference=r size=s"),
    (
        Names("split"),
        "bytes=b elide-empty-files=e line-bytes=C lines=l number=n separator=t suffix-length=a unbuffered=u",
    ),
    (Names("tee"), "append=a ignore-interrupts=i"),
    (
        Names("sort"),
        "buffer-size=S check=cC dictionary-order=d field-separator=t general-numeric-sort=g human-numeric-sort=h \
         ignore-case=f ignore-leading-blanks=b ignore-nonprinting=i key=k merge=m month-sort=M numeric-sort=n \
         output=o random-sort=R reverse=r stable=s temporary-directory=T unique=u version-sort=V zero-terminated=z",
    ),
    (
        Names("tar"),
        "absolute-names=P after-date=N append=r auto-compress=a block-number=R blocking-factor=b bzip2=j catenate=A \
         check-links=l compare=d compress=Z concatenate=A confirmation=w create=c dereference=h diff=d directory=C \
         exclude= exclude-from=X extract=x file=f files-from=T format=H get=x gunzip=z gzip=z ignore-zeros=i \
         incremental=G info-script=F interactive=w keep-old-files=k label=V list=t listed-incremental=g \
         multi-volume=M new-volume-script=F newer=N preserve-order=s preserve-permissions=p read-full-records=B \
         same-order=s same-permissions=p seek=n sparse=S starting-file=K tape-length=L to-stdout=O touch=m \
         uncompress=Z ungzip=z unlink-first=U update=u use-compress-program=I verbose=v verify=W xz=J",
    ),
    (
        Names("gzip"),
        "best=9 decompress=d fast=1 force=f keep=k license=L list=l name=N no-name=n quiet=q recursive=r stdout=c \
         suffix=S test=t verbose=v",
    ),
    (Names("bzip2"), "compress=z decompress=d force=f keep=k quiet=q small=s stdout=c test=t"),
    (
        Names("xz"),
        "compress=z decompress=d extreme=e force=f keep=k list=l quiet=q stdout=c test=t threads=T verbose=v",
    ),
    (Names("zstd"), "decompress=d force=f keep=k quiet=q stdout=c verbose=v"),
    (
        Names("zip"),
        "copy-entries=U delete=d encrypt=e exclude=x freshen=f include=i junk-paths=j move=m output-file=O \
         password=P recurse-paths=r symlinks=y test=T update=u",
    ),
    (
        Names("cpio"),
        "append=A create=o dereference=L directory=D dot=V extract=i file=F format=H io-size=C link=l list=t \
         make-directories=d message=M nonmatching=f null=0 numeric-uid-gid=n owner=R pass-through=p pattern-file=E \
         preserve-modification-time=m rename=r reset-access-time=a swap=b swap-bytes=s swap-halfwords=S \
         unconditional=u verbose=v warning=W",
    ),
    (
        Names("patch"),
        "backup=b batch=t context=c directory=d ed=e force=f forward=N fuzz=F get=g ifdef=D ignore-whitespace=l \
         input=i normal=n output=o prefix=B reject-file=r remove-empty-files=E reverse=R strip=p suffix=z unified=u",
    ),
    (
        Names("diff"),
        "brief=q context=cC ed=e exclude=x exclude-from=X expand-tabs=t ifdef=D ignore-all-space=w \
         ignore-blank-lines=B ignore-case=i ignore-matching-lines=I ignore-space-change=b ignore-tab-expansion=E \
         ignore-trailing-space=Z initial-tab=T minimal=d new-file=N paginate=l rcs=n recursive=r \
         report-identical-files=s show-c-function=p show-function-line=F side-by-side=y starting-file=S text=a \
         unified=uU width=W",
    ),
    (
        Names("objcopy"),
        "binary-architecture=B byte=b discard-all=x discard-locals=X globalize-symbol=G input-target=I interleave=i \
         keep-symbol=K localize-symbol=L only-section=j output-target=O preserve-dates=p remove-section=R \
         strip-all=S strip-debug=g strip-symbol=N target=F weaken-symbol=W wildcard=w",
    ),
    (
        Names("strip"),
        "discard-all=x discard-locals=X input-target=I keep-symbol=K output-target=O preserve-dates=p \
         remove-section=R strip-all=s strip-debug=gSd strip-symbol=N target=F wildcard=w",
    ),
    (
        Names("rsync"),
        "acls=A archive=a backup=b checksum=c compress=z copy-links=L cvs-exclude=C devices=D dry-run=n \
         executability=E filter=f group=g hard-links=H ipv4=4 ipv6=6 itemize-changes=i keep-dirlinks=K links=l \
         one-file-system=x owner=o partial=P perms=p protect-args=s recursive=r relative=R rsh=e sparse=S times=t \
         update=u whole-file=W xattrs=X",
    ),
    (
        Names("curl"),
        "append=a cert=E config=K continue-at=C cookie=b cookie-jar=c data=d disable=q dump-header=D fail=f form=F \
         ftp-port=P get=G globoff=g head=I header=H include=i insecure=k junk-session-cookies=j list-only=l \
         location=L max-time=m netrc=n no-buffer=N output=o parallel=Z proxy=x proxy-user=U proxytunnel=p quote=Q \
         range=r referer=e remote-header-name=J remote-name=O remote-time=R request=X show-error=S silent=s \
         speed-limit=Y speed-time=y telnet-option=t time-cond=z upload-file=T use-ascii=B user=u user-agent=A \
         verbose=v write-out=w",
    ),
    (
        Names("wget"),
        "accept=A adjust-extension=E append-output=a background=b backup-converted=K base=B continue=c \
         convert-links=k debug=d directory-prefix=P domains=D exclude-directories=X execute=e force-directories=x \
         force-html=F include-directories=I inet4-only=4 inet6-only=6 input-file=i level=l mirror=m no-clobber=n \
         no-directories=n no-host-directories=n no-parent=n no-verbose=n output-document=O output-file=o \
         page-requisites=p quiet=q quota=Q recursive=r reject=R relative=L server-response=S span-hosts=H timeout=T \
         timestamping=N tries=t user-agent=U verbose=v wait=w",
    ),
    (
        Names("make"),
        "always-make=B assume-new=W assume-old=o check-symlink-times=L directory=C dry-run=n environment-overrides=e \
         eval=E file=f ignore-errors=i include-dir=I jobs=j just-print=n keep-going=k load-average=l makefile=f \
         max-load=l new-file=W no-builtin-rules=r no-builtin-variables=R no-keep-going=S old-file=o output-sync=O \
         print-data-base=p print-directory=w question=q quiet=s recon=n silent=s stop=S touch=t what-if=W",
    ),
    (
        Names("rake"),
        "all=A build-all=B describe=D directory=C dry-run=n execute=e execute-continue=E execute-print=p jobs=j \
         libdir=I multitask=m no-deprecation-warnings=X no-search=N no-system=G nosearch=N nosystem=G prereqs=P \
         quiet=q rakefile=f rakelibdir=R require=r silent=s system=g tasks=T trace=t verbose=v where=W",
    ),
    (Names("node"), "check=c conditions=C eval=e interactive=i print=p require=r"),
    (
        Names("mysql"),
        "batch=B comments=c compress=C database=D debug-info=T execute=e force=f host=h html=H i-am-a-dummy=U \
         ignore-spaces=i named-commands=G no-auto-rehash=A no-beep=b one-database=o password=p port=P quick=q raw=r \
         safe-updates=U silent=s skip-column-names=N skip-line-numbers=L socket=S table=t unbuffered=n user=u \
         verbose=v vertical=E wait=w xml=X",
    ),
    (
        Names("psql"),
        "command=c dbname=d echo-all=a echo-errors=b echo-hidden=E echo-queries=e expanded=x field-separator=F \
         field-separator-zero=z file=f host=h html=H list=l log-file=L no-align=A no-password=w no-psqlrc=X \
         no-readline=n output=o password=W port=p pset=P quiet=q record-separator=R record-separator-zero=0 set=v \
         single-line=S single-step=s table-attr=T tuples-only=t username=U variable=v",
    ),
    (
        Names("gpg"),
        "armor=a decrypt=d detach-sign=b dry-run=n encrypt=e interactive=i list-keys=k list-secret-keys=K \
         local-user=u output=o quiet=q recipient=r sign=s symmetric=c verbose=v",
    ),
    (
        Names("git"),
        "all=a create=c delete=d detach=d edit=e force=f interactive=i message=m no-verify=n patch=p prune=p \
         remotes=r set-upstream=u signoff=s tags=t track=t untracked-files=u",
    ),
    (
        Names("npm"),
        "call=c force=f global=g long=l package=p parseable=p prefix=C save=S save-dev=D save-exact=E \
         save-optional=O save-prod=P workspace=w yes=y",
    ),
    (
        Names("pip"),
        "constraint=c dest=d editable=e find-links=f index-url=i quiet=q requirement=r target=t upgrade=U verbose=v \
         wheel-dir=w yes=y",
    ),
    (Names("cargo"), "features=F jobs=j package=p release=r"),
    (
        Names("docker"),
        "all=a attach=a context=c cpu-shares=c debug=D detach=d env=e file=f follow=f force=f host=H hostname=h \
         interactive=i label=l memory=m publish=p publish-all=P quiet=q tag=t tail=n time=t tty=t user=u volume=v \
         volumes=v workdir=w",
    ),
    (
        Names("kubectl"),
        "all-namespaces=A container=c filename=f follow=f kustomize=k namespace=n output=o patch=p previous=p \
         recursive=R selector=l server=s stdin=i tty=t watch=w",
    ),
    (
        Names("apt apt-get"),
        "assume-yes=y build=b compile=b config-file=c default-release=t download-only=d dry-run=s fix-broken=f \
         fix-missing=m host-architecture=a just-print=s no-act=s option=o recon=s show-upgraded=u simulate=s \
         target-release=t yes=y",
    ),
    (
        Names("dpkg"),
        "audit=C contents=c control=e extract=x field=f info=I install=i list=l listfiles=L purge=P recursive=R \
         refuse-downgrade=G remove=r search=S selected-only=O skip-same-version=E status=s vextract=X",
    ),
    (
        Names("systemctl"),
        "all=a force=f full=l host=H lines=n machine=M output=o property=p recursive=r signal=s type=t",
    ),
    (
        Names("journalctl"),
        "boot=b catalog=x directory=D dmesg=k follow=f identifier=t lines=n machine=M merge=m output=o pager-end=e \
         priority=p reverse=r since=S unit=u until=U",
    ),
    (
        Names("sed"),
        "expression=e in-place=i line-length=l null-data=z quiet=n regexp-extended=Er separate=s silent=n \
         unbuffered=u",
    ),
    (
        Names("grep"),
        "after-context=A basic-regexp=G before-context=B binary=U byte-offset=b context=C count=c \
         dereference-recursive=R devices=D directories=d extended-regexp=E file=f files-with-matches=l \
         files-without-match=L fixed-strings=F ignore-case=i initial-tab=T invert-match=v line-number=n \
         line-regexp=x max-count=m no-filename=h no-messages=s null=Z null-data=z only-matching=o perl-regexp=P \
         quiet=q recursive=r regexp=e silent=q text=a with-filename=H word-regexp=w",
    ),
    (
        Names("xargs"),
        "arg-file=a delimiter=d eof=eE exit=x interactive=p max-args=n max-chars=s max-lines=lL max-procs=P \
         no-run-if-empty=r null=0 open-tty=o replace=iI verbose=t",
    ),
    (Names("env"), "chdir=C debug=v ignore-environment=i null=0 split-string=S unset=u"),
    (Names("nice"), "adjustment=n"),
    (Names("stdbuf"), "error=e input=i output=o"),
    (Names("timeout"), "kill-after=k signal=s verbose=v"),
    (Names("time"), "append=a format=f output=o portability=p quiet=q verbose=v"),
    (
        Names("script"),
        "append=a command=c echo=E flush=f log-in=I log-io=B log-out=O log-timing=T logging-format=m output-limit=o \
         quiet=q return=e",
    ),
    (
        Names("flock"),
        "close=o command=c conflict-exit-code=E exclusive=x no-fork=F nonblock=n shared=s timeout=w unlock=u",
    ),
    (
        Names("watch"),
        "beep=b chgexit=g color=c differences=d equexit=q errexit=e exec=x interval=n no-title=t no-wrap=w precise=p",
    ),
    (Names("kill"), "list=l queue=q signal=sn table=L"),
    (
        Names("pkill"),
        "count=c echo=e euid=u exact=x full=f group=G ignore-ancestors=A ignore-case=i logpidfile=L newest=n older=O \
         oldest=o parent=P pgroup=g pidfile=F queue=q runstates=r session=s signal=s terminal=t uid=U",
    ),
    (
        Names("killall"),
        "context=Z exact=e ignore-case=I interactive=i list=l ns=n older-than=o process-group=g quiet=q regexp=r \
         signal=s user=u verbose=v wait=w younger-than=y",
    ),
    (
        Names("sudo"),
        "askpass=A background=b chdir=D chroot=R close-from=C command-timeout=T edit=e group=g host=h list=l login=i \
         non-interactive=n other-user=U preserve-env=E preserve-groups=P prompt=p remove-timestamp=K \
         reset-timestamp=k role=r set-home=H shell=s stdin=S type=t user=u validate=v",
    ),
    (
        Names("su"),
        "command=c fast=f group=g preserve-environment=mp pty=P shell=s supp-group=G whitelist-environment=w",
    ),
    (
        Names("runuser"),
        "command=c fast=f group=g preserve-environment=mp pty=P shell=s supp-group=G user=u whitelist-environment=w",
    ),
    (
        Names("unshare"),
        "cgroup=C fork=f ipc=i map-current-user=c map-root-user=r mount=m net=n pid=p root=R setgid=G setuid=S \
         time=T user=U uts=u wd=w",
    ),
    (
        Names("nsenter"),
        "all=a cgroup=C follow-context=Z ipc=i mount=m net=n no-fork=F pid=p root=r setgid=G setuid=S target=t \
         time=T user=U uts=u wd=w",
    ),
    (Names("setsid"), "ctty=c fork=f wait=w"),
    (Names("ionice"), "class=c classdata=n ignore=t pgid=P pid=p uid=u"),
    (
        Names("chrt"),
        "all-tasks=a batch=b deadline=d fifo=f idle=i max=m other=o pid=p reset-on-fork=R rr=r sched-deadline=D \
         sched-period=P sched-runtime=T verbose=v",
    ),
    (Names("taskset"), "all-tasks=a cpu-list=c pid=p"),
    (Names("renice"), "pgrp=g pid=p priority=n user=u"),
    (
        Names("prlimit"),
        "as=v core=c cpu=t data=d fsize=f locks=x memlock=l msgqueue=q nice=e nofile=n nproc=u output=o pid=p rss=m \
         rtprio=r rttime=y sigpending=i stack=s",
    ),
    (
        Names("mount"),
        "all=a bind=B fake=f fork=F fstab=T internal-only=i label=L mkdir=m move=M namespace=N no-canonicalize=c \
         no-mtab=n options=o rbind=R read-only=r read-write=w rw=w show-labels=l test-opts=O types=t uuid=U \
         verbose=v",
    ),
    (
        Names("umount"),
        "all=a all-targets=A detach-loop=d force=f internal-only=i lazy=l namespace=N no-canonicalize=c no-mtab=n \
         quiet=q read-only=r recursive=R test-opts=O types=t verbose=v",
    ),
    (
        Names("losetup"),
        "all=a associated=j detach=d detach-all=D find=f json=J list=l noheadings=n nooverlap=L offset=o output=O \
         partscan=P read-only=r sector-size=b set-capacity=c verbose=v",
    ),
    (
        Names("wipefs"),
        "all=a backup=b force=f json=J no-act=n noheadings=i offset=o output=O parsable=p quiet=q types=t",
    ),
    (Names("swapoff"), "all=a verbose=v"),
    (
        Names("dmesg"),
        "buffer-size=s clear=C color=L console-level=n console-off=D console-on=E ctime=T decode=x facility=f file=F \
         follow=w follow-new=W force-prefix=p human=H json=J kernel=k level=l nopager=P notime=t raw=r read-clear=c \
         reltime=e show-delta=d syslog=S userspace=u",
    ),
    (
        Names("useradd"),
        "add-subids-for-system=F base-dir=b comment=c create-home=m defaults=D expiredate=e gid=g groups=G \
         home-dir=d inactive=f key=K no-create-home=M no-log-init=l no-user-group=N non-unique=o password=p prefix=P \
         root=R selinux-user=Z shell=s skel=k system=r uid=u user-group=U",
    ),
    (
        Names("usermod"),
        "add-subgids=w add-subuids=v append=a badname=b comment=c del-subgids=W del-subuids=V expiredate=e gid=g \
         groups=G home=d inactive=f lock=L login=l move-home=m non-unique=o password=p prefix=P remove=r root=R \
         selinux-user=Z shell=s uid=u unlock=U",
    ),
    (Names("userdel"), "force=f prefix=P remove=r root=R selinux-user=Z"),
    (
        Names("groupadd"),
        "force=f gid=g key=K non-unique=o password=p prefix=P root=R system=r users=U",
    ),
    (
        Names("passwd"),
        "all=a delete=d expire=e inactive=i keep-tokens=k lock=l maxdays=x mindays=n quiet=q repository=r root=R \
         status=S unlock=u warndays=w",
    ),
    (
        Names("hostname"),
        "alias=a all-fqdns=A all-ip-addresses=I boot=b domain=d file=F fqdn=f ip-address=i long=f nis=y short=s yp=y",
    ),
    (Names("date"), "date=d file=f iso-8601=I reference=r rfc-email=R set=s universal=u utc=u"),
    (Names("mktemp"), "directory=d dry-run=u quiet=q tmpdir=p"),
    (
        Names("strace"),
        "absolute-timestamps=t attach=p columns=a const-print-style=X daemonize=D debug=d decode-fds=y decode-pids=Y \
         detach-on=b env=E failed-only=Z follow-forks=f instruction-pointer=i interruptible=I no-abbrev=v output=o \
         output-append-mode=A output-separately=f quiet=q relative-timestamps=r stack-traces=k string-limit=s \
         strings-in-hex=x successful-only=z summary=C summary-columns=U summary-only=c summary-sort-by=S \
         summary-wall-clock=w syscall-number=n syscall-times=T trace-path=P user=u",
    ),
    (
        Names("ltrace"),
        "align=a config=F debug=D demangle=C indent=n library=l no-signals=b output=o",
    ),
    (
        Names("php"),
        "define=d docroot=t file=f interactive=a no-php-ini=n php-ini=c process-begin=B process-code=R process-end=E \
         run=r server=S",
    ),
    (
        Names("logger"),
        "file=f port=P priority=p server=n size=S skip-empty=e socket=u stderr=s tag=t tcp=T udp=d",
    ),
    (Names("base64"), "decode=d ignore-garbage=i wrap=w"),
    (
        Names("ls"),
        "all=a almost-all=A classify=F context=Z dereference=L dereference-command-line=H directory=d dired=D \
         escape=b hide-control-chars=q human-readable=h ignore=I ignore-backups=B indicator-style=p inode=i \
         kibibytes=k literal=N no-group=G numeric-uid-gid=n quote-name=Q recursive=R reverse=r size=s tabsize=T \
         width=w",
    ),
    (
        Names("cat"),
        "number=n number-nonblank=b show-all=A show-ends=E show-nonprinting=v show-tabs=T squeeze-blank=s",
    ),
    (Names("head"), "bytes=c lines=n quiet=q silent=q verbose=v zero-terminated=z"),
    (
        Names("tail"),
        "bytes=c follow=f lines=n quiet=q silent=q sleep-interval=s verbose=v zero-terminated=z",
    ),
    (Names("cut"), "bytes=b characters=c delimiter=d fields=f only-delimited=s zero-terminated=z"),
    (
        Names("uniq"),
        "check-chars=w count=c ignore-case=i repeated=d skip-chars=s skip-fields=f unique=u zero-terminated=z",
    ),
    (
        Names("pacman"),
        "cascade=c database=D deptest=T files=F nosave=n query=Q recursive=s refresh=y remove=R sync=S sysupgrade=u \
         upgrade=U",
    ),
    (
        Names("iptables ip6tables"),
        "append=A check=C delete=D delete-chain=X flush=F insert=I list=L list-rules=S new-chain=N policy=P \
         rename-chain=E replace=R zero=Z",
    ),
    (Names("shutdown"), "halt=H poweroff=P reboot=r"),
    (Names("reboot poweroff halt"), "force=f no-wtmp=d poweroff=p wtmp-only=w"),
];

/// The letters for a long option without its dashes, or for any that it may abbreviate.
pub fn letters(program: &str, option: &str) -> String {
    let Some((_, forms)) = LONG_FORMS.iter().find(|(programs, _)| programs.has(program)) else {
        return String::new();
    };
    let forms = || forms.split_ascii_whitespace().filter_map(|form| form.split_once('='));
    if let Some((_, letters)) = forms().find(|(long, _)| *long == option) {
        return letters.to_owned();
    }
    let meant = forms().filter(|(long, _)| long.starts_with(option));
    meant.map(|(_, letters)| letters).collect()
}
