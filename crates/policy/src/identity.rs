//! Which program a name stands for: `gcc-12` and `x86_64-linux-gnu-gcc` are `gcc`, `vim.basic` is `vim`.
//!
//! The tables know a program by its plain name, and a deny rule for it applies to all its names. An allow rule means
//! only the name it has.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::names::Names;

/// Programs that are installed with a version in their name.
const VERSIONED: Names = Names(
    "2to3 R ar as autoconf automake awk bash bpython bugpoint bundle bundler c++ cargo cc clang clang++ \
     clang-apply-replacements clang-format clang-tidy clangd cmake cpack cpp ctest cython dash dotnet easy_install \
     emacs erb erl exim fish flake8 flex g++ gawk gcc gccgo gcov gdb gem gfortran ghc ghci gnat go gofmt gpg gradle \
     guild guile helm idle ipython irb java javac jruby jshell julia ksh ld ld.lld llc lldb lli llvm-reduce lua \
     lua-jit luac luajit make mariadb mawk mono mysql nm node nodejs nosetests not npm npx objcopy objdump ocaml \
     octave opt pdb perl phar php php-cgi phpdbg phpize pip pipx pkg-config psql py.test pydoc pylint pypy pytest \
     python racc racket rackup rake ranlib rbenv rbs rdoc ri rst2html ruby rustc rustdoc scala strip swipl tclsh \
     tcsh tox typeprof valgrind vim virtualenv wheel wish zsh",
);

/// Programs of a toolchain, whose target may come before their name.
const TARGETED: Names = Names(
    "addr2line ar as c++ cc clang clang++ cpp elfedit g++ gcc gccgo gcov gdb gfortran gnat ld \
     ld.bfd ld.gold ld.lld nm objcopy objdump perl pkg-config pkgconf python ranlib readelf size \
     strings strip",
);

/// Processors, with which the name of a target begins.
const PROCESSORS: Names = Names(
    "aarch64 aarch64_be alpha amd64 arc arm armeb armv6l armv7a armv7l avr bpf hppa i386 \
     i486 i586 i686 ia64 loongarch64 m68k microblaze mips mips64 mips64el mipsel msp430 \
     nios2 or1k powerpc powerpc64 powerpc64le ppc64 ppc64le riscv32 riscv64 s390 s390x sh4 \
     sparc sparc64 thumbv7em wasm32 x86_64 xtensa",
);

/// Programs of which a system has several variants, named after a dot.
const VARIANTS: Names =
    Names("busybox emacs fsck ksh mkfs mount nc rvim umount vi view vim vimdiff w");

/// Programs that some systems install with a `g` before their name, for the ones of GNU.
const GNU: Names = Names(
    "awk chgrp chmod chown chroot cp csplit date dd env find grep install kill ln make mkdir mv \
     nice nohup rm rmdir sed sh shred sort split stdbuf tac tar tee test time timeout touch \
     truncate uniq unlink xargs",
);

/// Other names, which lead to the program or to one like it.
const OTHERS: &[(Names, &str)] = &[
    (Names("editor sensible-editor"), "vim"),
    (Names("pager sensible-pager"), "less"),
    (Names("nodejs"), "node"),
    (Names("original-awk bwk"), "awk"),
    (Names("c89 c99 c89-gcc c99-gcc musl-gcc diet tcc colorgcc afl-gcc"), "gcc"),
    (Names("ld.bfd ld.gold"), "ld"),
    (Names("netcat ncat"), "nc"),
    (Names("ripgrep"), "rg"),
    (Names("batcat"), "bat"),
    (Names("slogin"), "ssh"),
    (Names("rzsh"), "zsh"),
    (Names("fakeroot-sysv fakeroot-tcp"), "fakeroot"),
    (Names("fdfind"), "fd"),
    (Names("bsdtar"), "tar"),
    (Names("mariadb"), "mysql"),
    (Names("yarnpkg"), "yarn"),
    (Names("pn"), "pnpm"),
    (Names("chg"), "hg"),
    (Names("bundler"), "bundle"),
];

/// Names of the same program, which systems install by one or the other.
const SAME: [Names; 8] = [
    Names("rg ripgrep"),
    Names("bat batcat"),
    Names("fd fdfind"),
    Names("node nodejs"),
    Names("ssh slogin"),
    Names("yarn yarnpkg"),
    Names("pnpm pn"),
    Names("bundle bundler"),
];

/// Programs that are scripts for an interpreter, which can also run them by their files: `node npm-cli.js`.
const SCRIPTS: Names = Names("bundle composer corepack npm npx pip pnpm pnpx yarn");

/// Whether the program is such a script.
pub fn is_script(program: &str) -> bool {
    SCRIPTS.has(program)
}

/// Endings of the names of such files.
const ENDINGS: [&str; 5] = [".js", ".cjs", ".mjs", ".phar", ".pyz"];

/// Files that begin a program, which is named after its folder.
const BEGINNINGS: Names = Names("__main__.py __pip-runner__.py cli.js index.js");

/// Whether a path says what program it is only with the folder around it: `.`, `__main__.py`.
pub fn is_named_by_folder(path: &str) -> bool {
    let mut parts = path.rsplit('/').filter(|part| !["", "."].contains(part));
    match (parts.next(), parts.next()) {
        (None | Some(".."), _) => !path.starts_with('/'),
        (Some(base), folder) => BEGINNINGS.has(base) && folder.is_none(),
    }
}

/// The program whose script has this path: `npm` for `npm/bin/npm-cli.js`, `pip` for `pip/__main__.py`.
pub fn of_script(path: &str) -> Option<&str> {
    let mut parts = path.rsplit('/').filter(|part| !part.is_empty());
    let base = parts.next()?;
    let folder = parts.find(|part| !Names("bin dist lib").has(part));
    let by_folder = folder.filter(|folder| BEGINNINGS.has(base) && SCRIPTS.has(folder));
    by_folder.or_else(|| Some(program(base)).filter(|program| SCRIPTS.has(program)))
}

/// `yarn` for `yarn-4.1.0.cjs`, `npm` for `npm-cli.js`.
fn without_ending(name: &str) -> &str {
    let Some(stem) = ENDINGS.iter().find_map(|ending| name.strip_suffix(ending)) else {
        return name;
    };
    let is_rest = |rest: &str| rest == "cli" || is_version(rest);
    let stem = stem.split_once('-').filter(|(_, rest)| is_rest(rest)).map_or(stem, |(it, _)| it);
    if SCRIPTS.has(stem) || stem == "yarnpkg" { stem } else { name }
}

/// The plain name of the program with this base name.
pub fn program(name: &str) -> &str {
    let name = known_otherwise(without_ending(name));
    let name = without_version(without_target(name));
    let name = match name.split_once('.') {
        Some((program, _)) if VARIANTS.has(program) => program,
        _ => name,
    };
    known_otherwise(without_g(name))
}

/// `sed` for `gsed`.
pub fn without_g(name: &str) -> &str {
    name.strip_prefix('g').filter(|rest| GNU.has(rest)).unwrap_or(name)
}

/// The name and all others that a rule for the same program may use: `python3.11`, `python3`, `python`.
pub fn names(name: &str) -> Vec<&str> {
    let plain = without_target(name);
    let major = plain.split_once('.').map_or(plain, |(major, _)| major);
    let major = if without_version(plain) == plain { plain } else { major };
    let program = program(name);
    let mut names = vec![name, plain, major, without_version(plain), program];
    names.dedup();
    let same = SAME.iter().filter(|same| same.has(program)).flat_map(|same| same.iter());
    names.extend(same.filter(|same| *same != program));
    names
}

/// Whether a file of this name is the program of that name, perhaps in some version or variant.
pub fn is_same_program(name: &str, file: &str) -> bool {
    let rest = file.strip_prefix(name);
    let version = |rest: &str| rest.chars().all(|c| c.is_ascii_digit() || ".-".contains(c));
    rest.is_some_and(version) || names(file).contains(&name)
}

fn known_otherwise(name: &str) -> &str {
    static PROGRAMS: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| {
        let each = |(names, program): &(Names, &'static str)| {
            let program = *program;
            names.iter().map(move |name| (name, program))
        };
        OTHERS.iter().flat_map(each).collect()
    });
    PROGRAMS.get(name).copied().unwrap_or(name)
}

/// `gcc-12` for `x86_64-linux-gnu-gcc-12`.
fn without_target(name: &str) -> &str {
    if !name.split('-').next().is_some_and(|first| PROCESSORS.has(first)) {
        return name;
    }
    let tails = name.match_indices('-').map(|(at, _)| &name[at + 1..]);
    tails.into_iter().find(|tail| TARGETED.has(without_version(tail))).unwrap_or(name)
}

/// `perl` for `perl5.36-x86_64-linux-gnu`.
fn without_version(name: &str) -> &str {
    if !name.bytes().any(|byte| byte.is_ascii_digit()) {
        return name;
    }
    let is_program = |program: &&str| name.strip_prefix(program).is_some_and(is_version);
    VERSIONED.iter().filter(is_program).max_by_key(|program| program.len()).unwrap_or(name)
}

/// Whether this can be the rest of a name: `3.11`, `-12`, `3.8m`, `5.36-x86_64-linux-gnu`.
fn is_version(rest: &str) -> bool {
    let rest = rest.strip_prefix(['-', '@']).unwrap_or(rest);
    let after = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let is_build = Names("m d u t dm -dbg -intel64 -full -rhel").has(after);
    let is_target = after.starts_with('-') && (after.contains("linux") || after.contains("darwin"));
    after.len() < rest.len()
        && rest.starts_with(|c: char| c.is_ascii_digit())
        && (after.is_empty() || is_build || is_target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_a_version_a_target_or_a_variant_is_its_program() {
        for (name, expected) in [
            ("gcc-12", "gcc"),
            ("x86_64-linux-gnu-gcc", "gcc"),
            ("x86_64-linux-gnu-g++-12", "g++"),
            ("c99", "gcc"),
            ("perl5.36-x86_64-linux-gnu", "perl"),
            ("perl5.36.0", "perl"),
            ("python3.11", "python"),
            ("python3.8d", "python"),
            ("x86_64-linux-gnu-python3.11", "python"),
            ("pip3.11", "pip"),
            ("vim.basic", "vim"),
            ("editor", "vim"),
            ("nc.openbsd", "nc"),
            ("clang++-15", "clang++"),
            ("gsed", "sed"),
            ("ld.bfd", "ld"),
            ("php8.2", "php"),
            ("npm-cli.js", "npm"),
            ("yarn-4.1.0.cjs", "yarn"),
            ("composer.phar", "composer"),
        ] {
            assert_eq!(program(name), expected, "{name}");
        }
        for name in [
            "gcc",
            "vim",
            "deploy.sh",
            "python3-config",
            "base64",
            "sha256sum",
            "bzip2",
            "git",
            "grep",
            "go",
            "test2",
            "make-it",
            "gcc-12-x",
            "lint-python",
            "check-perl",
            "my-python3",
            "gzip",
            "i386",
            "index.js",
            "npm-check.js",
            "",
        ] {
            assert_eq!(program(name), name);
        }
    }

    #[test]
    fn a_rule_may_name_the_program_or_its_major_version() {
        assert_eq!(names("python3.11"), ["python3.11", "python3", "python"]);
        assert!(names("x86_64-linux-gnu-gcc-12").contains(&"gcc-12"));
        assert_eq!(names("ls"), ["ls"]);
        assert_eq!(names("deploy.sh"), ["deploy.sh"]);
    }
}
