//! Programs that run or load something if an argument begins in a certain way: `openssl -engine`, `gcc -fplugin`.

use crate::action::Actions;
use crate::call::Call;
use crate::names::Names;

/// Beginnings of arguments that make a program run or load something.
const BEGINNINGS: &[(Names, Names)] = &[
    (
        Names(
            "gcc g++ cc c++ cpp clang clang++ clang-cl gfortran gccgo gnat gdc ldc2 dmd \
             icc icx",
        ),
        Names(
            "-wrapper -fplugin -B -specs --specs --spec @ -Wl,@ -fuse-ld=/ -fuse-ld=. \
             --ld-path -ld-path -Xclang -load -Xlinker -Xassembler -Xpreprocessor \
             -Xopenmp -mllvm -cc1 --prefix --pref --for-linker --for-assembler \
             -iplugindir -fpass-plugin --config -config --gcc-toolchain -gcc-toolchain \
             -ccc- -resource-dir --resource -no-canonical -fsycl-link -aux-info",
        ),
    ),
    (Names("ld ld.lld lld mold"), Names("-plugin --plugin -plug --plug @ -load")),
    (Names("pnpm"), Names("--config. --pnpmfile --global-pnpmfile --hooks")),
    (Names("yarn"), Names("--use-yarnrc --yarn-path")),
    (Names("opt llc lli"), Names("-load --load")),
    (Names("openssl"), Names("-engine -provider -provider-path -config -pkcs11")),
    (
        Names(
            "tex latex pdftex pdflatex xetex xelatex luatex lualatex luahbtex etex ptex \
             platex uplatex context tectonic",
        ),
        Names(
            "-shell-escape --shell-escape -enable-write18 --enable-write18 -Zshell-escape \
             -Z -cnf-line --cnf-line -progname --progname",
        ),
    ),
    (
        Names("latexmk"),
        Names(
            "-e -r -pdflatex= -latex= -xelatex= -lualatex= -shell-escape -pretex \
             -usepretex",
        ),
    ),
    (Names("exiftool"), Names("-if -config -execute -use")),
    (
        Names(
            "convert magick identify mogrify composite montage import display animate \
             stream gm",
        ),
        Names("| msl: ephemeral: epi:"),
    ),
    (Names("gs ghostscript ps2pdf"), Names("-dNOSAFER -dDELAYSAFER -o| -sOutputFile=| %pipe")),
    (Names("java javac jar javadoc"), Names("-javaagent -agent -XX:OnError -XX:OnOutOfMemory @")),
    (Names("lynx links elinks w3m"), Names("-cfg -config -o -eval -lss -remote")),
    (Names("mutt neomutt"), Names("-e -F -H")),
    (Names("mail mailx s-nail"), Names("-S -X -: ~")),
    (Names("dvips"), Names("-R0 -o| -o!")),
    (Names("fzf sk"), Names("--preview --bind --listen --with-shell --history --tmux")),
    (Names("vagrant"), Names("-c --command")),
    (Names("restic"), Names("--password-command -o --option")),
    (Names("borg"), Names("--rsh --remote-path --content-from-command --paths-from-command")),
    (Names("perldoc"), Names("-M")),
    (Names("terraform tofu"), Names("-plugin-dir")),
    (Names("mvn"), Names("-Dexec")),
    (Names("gradle"), Names("-I --init-script -Dorg.gradle.jvmargs -Dorg.gradle.java")),
    (Names("sbt"), Names("-J -D --java-home -java-home")),
];

/// Programs that get options from `pkg-config`.
const COMPILERS: Names = Names("gcc g++ cc c++ clang clang++");

/// Refuses arguments that begin like one that runs or loads something.
pub fn beginnings(actions: &mut Actions<'_>, name: &str, call: &Call<'_>) {
    for (_, starts) in BEGINNINGS.iter().filter(|(names, _)| names.has(name)) {
        for word in call.arguments() {
            let prefix = word.prefix();
            if starts.iter().any(|start| prefix.starts_with(start)) {
                return actions.opaque(word.span.clone(), "an option that can run a program");
            }
            let is_known = COMPILERS.has(name) && actions.knowledge.trusts_flags(word);
            if word.text().is_none()
                && prefix.is_empty()
                && !is_known
                && actions.may_be_option(word)
            {
                let what = "options that can run a program; write the options out";
                return actions.opaque(word.span.clone(), what);
            }
        }
    }
}
