//! What programs need to execute to do their work.
//!
//! A program that is not here executes nothing by itself. The less is here, the better the lock holds: what is only
//! needed for a feature that few use belongs into the settings of those who use it.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::identity::program;
use crate::locked::{LockedArguments, LockedWord};
use crate::names::Names;

/// Programs that run what a project, a package or a user's own program says: interpreters, build tools, package
/// managers, test runners. A rule that allows one of them allows everything that is not denied.
const ANYTHING: Names = Names(
    "make gmake bmake cmake ctest cpack ninja meson scons waf autoconf autoreconf automake configure libtool \
     cargo rustup go zig swift dotnet msbuild stack cabal dune opam mix rebar3 sbt lein mvn mvnw gradle gradlew ant \
     bazel bazelisk buck buck2 pants earthly just task mage rake tox nox pytest py.test phpunit jest vitest mocha \
     playwright cypress karma ava turbo nx lerna nodemon concurrently npm npx pnpm pnpx yarn bunx corepack node-gyp \
     pip pip3 pipx uv uvx poetry pdm hatch conda mamba micromamba virtualenv gem bundle bundler rails rspec composer \
     flutter dart java jshell kotlin scala groovy R octave matlab gdb lldb expect pre-commit ansible ansible-playbook \
     vagrant packer apt apt-get aptitude dpkg dpkg-reconfigure dnf yum rpm zypper apk pacman brew snap flatpak nix \
     nix-build nix-shell guix parallel run-parts valgrind",
);

/// A program, the parts of it that are programs themselves, and what all of them execute.
struct Need {
    programs: Names,
    parts: &'static [&'static str],
    executes: Names,
}

const PAGERS: &str = "less more pager";

const NEEDS: &[Need] = &[
    Need {
        programs: Names("git"),
        parts: &["/usr/lib*/git-core/*", "/usr/local/lib*/git-core/*"],
        executes: Names(
            "git git-lfs git-upload-pack git-receive-pack git-upload-archive ssh man gettext envsubst gpg gpg2 less \
             more pager editor sensible-editor vi vim nano true false uname ls sed grep sort basename dirname cat",
        ),
    },
    need("gh hub glab tig", "git ssh less more pager gpg"),
    Need {
        programs: Names("gcc g++ cc c++ cpp gfortran gccgo gdc gnat c89 c99 c89-gcc c99-gcc"),
        parts: &[
            "/usr/lib/gcc/*/*/*",
            "/usr/libexec/gcc/*/*/*",
            "/usr/local/lib/gcc/*/*/*",
            "/usr/local/libexec/gcc/*/*/*",
        ],
        executes: Names("gcc as ld ld.bfd ld.gold ld.lld ld.mold collect2 cc1 cc1plus lto1"),
    },
    Need {
        programs: Names("clang clang++"),
        // Others in the folder run code.
        parts: &[
            "/usr/lib/llvm-*/bin/clang",
            "/usr/lib/llvm-*/bin/clang++",
            "/usr/lib/llvm-*/bin/ld.lld",
            "/usr/lib/llvm-*/bin/lld",
            "/usr/lib/llvm-*/bin/llvm-objcopy",
        ],
        executes: Names("clang as ld ld.bfd ld.gold ld.lld ld.mold lld"),
    },
    need(
        "rustc rustdoc rustfmt clippy-driver",
        "cc gcc clang ld ld.lld lld rust-lld mold rustc rustdoc rustfmt",
    ),
    need("ld collect2", "ld.bfd ld.gold ld.lld /usr/lib/gcc/*/*/* /usr/libexec/gcc/*/*/*"),
    need(
        "tar gtar bsdtar",
        "gzip gunzip bzip2 bunzip2 xz unxz lzma unlzma lzip lzop zstd unzstd compress uncompress pigz pbzip2 pxz \
         pixz lz4 zstdmt pzstd brotli",
    ),
    need("egrep fgrep rgrep", "grep"),
    need("sort", "gzip bzip2 xz zstd lz4 lzop"),
    need("zipgrep", "sed unzip egrep grep"),
    need("gunzip zcat uncompress", "gzip"),
    need("gzexe", "gzip sed dirname basename mktemp rm cat cp mv ln chmod tail expr sleep"),
    need("zgrep zegrep zfgrep", "zgrep gzip grep egrep fgrep sed cat mktemp"),
    need("zdiff zcmp", "gzip cmp diff mktemp cat"),
    need("zless zmore", "less more gzip"),
    need(
        "bzgrep bzegrep bzfgrep bzdiff bzcmp bzless bzmore",
        "bzip2 bzgrep grep egrep fgrep cmp diff less more mktemp sed stty",
    ),
    need(
        "xzgrep xzegrep xzfgrep xzdiff xzcmp xzless xzmore \
         lzgrep lzegrep lzfgrep lzdiff lzcmp lzless lzmore",
        "xz xzgrep grep egrep fgrep cmp diff less more mktemp sed cat",
    ),
    need("zstdgrep zstdless", "zstdcat zstd grep less"),
    Need {
        programs: Names("man apropos whatis mandb"),
        parts: &["/usr/lib/man-db/*", "/usr/libexec/man-db/*"],
        executes: Names(
            "man apropos whatis groff nroff troff grotty tbl eqn pic refer preconv col locale less more pager gzip \
             zcat xz bzip2 zstd",
        ),
    },
    need(
        "groff nroff",
        "groff troff grotty tbl eqn pic refer soelim preconv grops grodvi grohtml locale",
    ),
    need("scp sftp rsync mosh autossh", "ssh"),
    need("ssh-copy-id", "ssh sftp ssh-add ls sed head tr grep cat mktemp mkdir rm chmod dirname"),
    need("ssh ssh-add ssh-agent", "ssh ssh-keysign ssh-sk-helper ssh-pkcs11-helper ssh-askpass"),
    Need {
        programs: Names("gpg gpg2 gpgv gpgsm gpg-connect-agent gpgconf"),
        parts: &["/usr/lib/gnupg/*", "/usr/lib/gnupg2/*", "/usr/libexec/gnupg/*"],
        executes: Names(
            "gpg gpgsm gpgconf gpg-connect-agent gpg-agent dirmngr keyboxd scdaemon pinentry*",
        ),
    },
    Need {
        programs: Names("docker podman nerdctl"),
        parts: &[
            "/usr/lib/docker/cli-plugins/*",
            "/usr/libexec/docker/cli-plugins/*",
            "/usr/local/lib/docker/cli-plugins/*",
            "/usr/local/libexec/docker/cli-plugins/*",
        ],
        executes: Names(
            "docker-* docker-credential-* conmon crun runc netavark aardvark-dns slirp4netns pasta \
             newuidmap newgidmap fuse-overlayfs podman catatonit rootlessport ssh nsenter",
        ),
    },
    need("docker-compose", "docker docker-buildx docker-credential-*"),
    need(
        "kubectl k9s helm kustomize",
        "kubectl kubectl-* aws aws-iam-authenticator gke-gcloud-auth-plugin kubelogin",
    ),
    need("terraform tofu", "git ssh"),
    need(
        "systemctl journalctl loginctl machinectl timedatectl hostnamectl",
        "less more pager systemd-tty-ask-password-agent",
    ),
    need("mysql mariadb", PAGERS),
    // Debian's find the version to run.
    Need {
        programs: Names("psql"),
        parts: &["/usr/lib/postgresql/*/bin/psql"],
        executes: Names("less more pager cat"),
    },
    need(
        "pg_dump pg_dumpall pg_restore pg_isready pgbench createdb dropdb createuser dropuser vacuumdb reindexdb \
         clusterdb pg_basebackup",
        "/usr/lib/postgresql/*/bin/*",
    ),
    need("yq", "jq"),
    Need {
        programs: Names("gcloud gsutil bq"),
        parts: &["/usr/lib/google-cloud-sdk/bin/*"],
        executes: Names("dirname readlink uname which ssh"),
    },
    need("ctags", "sort"),
    need("lsb_release", "getopt cut tr cat"),
    need(
        "lesspipe lessfile",
        "basename dirname mktemp tr sed grep file tar gzip bzip2 xz zstd unzip",
    ),
    need("gcore", "dirname basename gdb"),
    need("diff3 sdiff colordiff", "diff"),
    need("flex bison", "m4"),
    Need {
        programs: Names("7z 7za 7zr p7zip"),
        parts: &["/usr/lib/p7zip/7z", "/usr/lib/p7zip/7za", "/usr/lib/p7zip/7zr"],
        executes: Names("7z 7za 7zr which basename cat rm mktemp"),
    },
    need("zforce", "gzip grep basename sed mv"),
    need("gcc-ar gcc-nm gcc-ranlib", "ar nm ranlib"),
    need("dpkg-deb", "tar gzip xz zstd bzip2"),
    need("apt-cache", "dpkg"),
    need("perf", "objdump addr2line less pager"),
    need("pkg-config pkgconf", "pkgconf"),
    need("editor sensible-editor", "vi vim nano editor"),
    need("sensible-pager pager", PAGERS),
    need("bat batcat delta difftastic", "less"),
];

const fn need(programs: &'static str, executes: &'static str) -> Need {
    Need { programs: Names(programs), parts: &[], executes: Names(executes) }
}

/// Whether a program is for running others.
pub fn runs_anything(name: &str) -> bool {
    ANYTHING.has(name) || ANYTHING.has(program(name))
}

/// How ssh executes itself to get through another host.
pub fn jumps() -> Vec<LockedArguments> {
    let optional = |option: &str| [Vec::new(), vec![known(option), LockedWord::Any]];
    let mut all = Vec::new();
    for user in optional("-l") {
        for port in optional("-p") {
            for file in optional("-F") {
                let to = vec![known("-W"), LockedWord::Any, LockedWord::Operand];
                all.push([user.clone(), port.clone(), file, to].concat());
            }
        }
    }
    all
}

fn known(word: &str) -> LockedWord {
    LockedWord::Known(word.to_owned())
}

/// What a program needs to execute.
pub fn of(name: &str) -> Vec<String> {
    let Some(need) = find(name) else { return Vec::new() };
    let parts = need.parts.iter().map(ToString::to_string);
    parts.chain(need.executes.iter().map(str::to_owned)).collect()
}

/// The parts of a program that are programs themselves, and may execute the same.
pub fn parts(name: &str) -> &'static [&'static str] {
    find(crate::paths::base_name(name)).map_or(&[], |need| need.parts)
}

fn find(name: &str) -> Option<&'static Need> {
    static BY_NAME: LazyLock<HashMap<&str, &Need>> = LazyLock::new(|| {
        let names = |need: &'static Need| need.programs.iter().map(move |name| (name, need));
        NEEDS.iter().flat_map(names).collect()
    });
    BY_NAME.get(name).or_else(|| BY_NAME.get(program(name))).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_is_listed_once() {
        let mut seen: Vec<&str> = Vec::new();
        for name in NEEDS.iter().flat_map(|need| need.programs.iter()).chain(ANYTHING.iter()) {
            assert!(!seen.contains(&name), "{name} is listed twice");
            seen.push(name);
        }
    }

    #[test]
    fn compilers_do_not_need_what_runs_code() {
        for name in ["gcc", "g++", "clang"] {
            assert!(!of(name).iter().any(|it| it.ends_with("/llvm-*/bin/*")), "{name}");
        }
    }

    #[test]
    fn a_program_needs_the_same_by_all_its_names() {
        for (name, plain) in [("gcc-12", "gcc"), ("x86_64-linux-gnu-g++-12", "g++"), ("c99", "gcc")]
        {
            assert_eq!(of(name), of(plain), "{name}");
            assert!(!of(name).is_empty());
        }
        assert!(runs_anything("pip3.11") && runs_anything("npm10") && !runs_anything("ls"));
    }
}
