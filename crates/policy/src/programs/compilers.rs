//! Compilers and their drivers: linkers, plugins and tools that their options name.

use super::beginnings::beginnings;
use std::borrow::Cow;

use crate::action::{Actions, Runner};
use crate::call::Call;
use crate::names::Names;
use crate::script::Word;
use crate::subcommands::after_global_options;

const RUNS: &str = "an option that can run a program";

/// Options for `-C` of rustc that name no program and no file.
const CODEGEN: Names = Names(
    "bitcode-in-rlib code-model codegen-units control-flow-guard debug-assertions debuginfo \
     default-linker-libraries embed-bitcode extra-filename force-frame-pointers force-unwind-tables \
     inline-threshold instrument-coverage lto metadata no-prepopulate-passes no-redzone \
     no-vectorize-loops no-vectorize-slp opt-level overflow-checks panic prefer-dynamic \
     relocation-model relro-level rpath soft-float split-debuginfo strip symbol-mangling-version \
     target-cpu target-feature tune-cpu incremental link-dead-code link-self-contained",
);

/// Tools of go that run nothing else.
const GO_TOOLS: Names = Names("addr2line buildid cover doc fix nm objdump pack vet");

/// Options of go that name a program, or a file that names one.
const GO: Names = Names("exec toolexec vettool modfile overlay pkgdir compiler gccgoflags");

/// gcc, clang and ld.
pub fn c(actions: &mut Actions<'_>, name: &str, call: &Call<'_>) {
    for word in call.arguments() {
        let Some(text) = word.text() else { continue };
        let Some(options) = text.strip_prefix("-Wl,") else { continue };
        let loads = |option: &str| {
            let bare = option.trim_start_matches('-').split('=').next().unwrap_or_default();
            option.starts_with('@')
                || (option.starts_with('-') && bare.len() > 2 && "plugin".starts_with(bare))
                || bare.starts_with("plugin")
                || bare.starts_with("load-pass")
        };
        if options.split(',').any(loads) {
            return actions.opaque(word.span.clone(), RUNS);
        }
    }
    beginnings(actions, name, call);
}

/// rustc, rustdoc and clippy-driver.
pub fn rustc(actions: &mut Actions<'_>, words: &[Word]) {
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        let Some(text) = word.text() else {
            if actions.may_be_option(word) {
                return actions.unresolved(word.span.clone(), "a word that may be an option");
            }
            continue;
        };
        // `-OClinker=x` is `-O -Clinker=x`.
        let letters = text.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
        let last =
            letters.map(|it| format!("-{}", it.trim_start_matches(['O', 'g', 'v', 'V', 'h'])));
        let text = last.map_or(text, Cow::Owned);
        let glued = ["--codegen=", "-C"].iter().find_map(|option| text.strip_prefix(option));
        let next = words.get(at).and_then(Word::text);
        let setting = match (&*text, glued) {
            ("-C" | "--codegen", _) => {
                at += 1;
                next.unwrap_or_default()
            }
            (_, Some(setting)) => setting.into(),
            (option, None) => {
                let refused = [
                    "-Z",
                    "@",
                    "--sysroot",
                    "--runtool",
                    "--test-runtool",
                    "--test-builder",
                    "--html-in-header",
                    "--config",
                ];
                if refused.iter().any(|start| option.starts_with(start)) {
                    return actions.opaque(word.span.clone(), RUNS);
                }
                continue;
            }
        };
        let key = setting.split('=').next().unwrap_or_default().replace('_', "-");
        if !CODEGEN.has(&key) {
            return actions.opaque(word.span.clone(), RUNS);
        }
    }
}

/// `cargo rustc -- …` and the like pass options on to the compiler.
pub fn cargo(actions: &mut Actions<'_>, call: &Call<'_>) {
    let words = call.arguments();
    let first = words.first().and_then(Word::text).unwrap_or_default();
    if first.starts_with('+') && first.contains('/') {
        return actions.opaque(words[0].span.clone(), "a toolchain in a folder");
    }
    let words = after_global_options("cargo", words).unwrap_or(words);
    let passes = words.first().and_then(Word::text);
    let dashes = words.iter().position(|word| word.text().is_some_and(|text| text == "--"));
    if let (Some("rustc" | "rustdoc" | "clippy"), Some(at)) = (passes.as_deref(), dashes) {
        rustc(actions, &words[at + 1..]);
    }
}

/// `rustup run toolchain command`.
pub fn rustup(actions: &mut Actions<'_>, call: &Call<'_>) {
    let words = call.arguments();
    let words = after_global_options("rustup", words).unwrap_or(words);
    if words.first().and_then(Word::text).as_deref() != Some("run") {
        return;
    }
    let is_option = |word: &&Word| word.text().is_some_and(|text| text.starts_with('-'));
    let skipped = 1 + words[1..].iter().take_while(is_option).count();
    match words.get(skipped).and_then(Word::literal) {
        Some(_) if words.len() > skipped + 1 => actions.run(words[skipped + 1..].to_vec()),
        Some(_) => {}
        None => actions.opaque(call.span(), "an unknown option"),
    }
}

pub fn go(actions: &mut Actions<'_>, call: &Call<'_>) {
    let words = call.arguments();
    let subs = after_global_options("go", words).unwrap_or(words);
    let sub = |at: usize| subs.get(at).and_then(Word::text).unwrap_or_default();
    let is_write =
        |word: &Word| word.text().is_some_and(|text| text.trim_start_matches('-') == "w");
    if sub(0) == "env" && subs.iter().any(is_write) {
        return actions.opaque(call.span(), "a setting that can run a program");
    }
    if sub(0) == "tool" && !sub(1).is_empty() && !GO_TOOLS.has(&sub(1)) {
        return actions.opaque(call.span(), "a tool that can run a program");
    }
    for (at, word) in words.iter().enumerate() {
        let Some(text) = word.text() else { continue };
        let Some(option) = text.strip_prefix('-') else { continue };
        let option = option.strip_prefix('-').unwrap_or(option);
        let (name, glued) = option.split_once('=').map_or((option, None), |(n, v)| (n, Some(v)));
        if text == "--" || text == "-args" {
            break;
        }
        let value = match glued {
            Some(value) => Some(Word::known(value, word.span.clone())),
            None => words.get(at + 1).cloned(),
        };
        match value {
            Some(value) if ["exec", "toolexec", "vettool"].contains(&name) => {
                actions.run_text(&value, Runner::SH);
            }
            _ if GO.has(name) => return actions.opaque(word.span.clone(), RUNS),
            Some(value) if name.ends_with("flags") && !are_plain_flags(&value) => {
                return actions.opaque(word.span.clone(), RUNS);
            }
            _ => {}
        }
    }
}

/// Whether flags for the tools of go name no other program.
fn are_plain_flags(value: &Word) -> bool {
    let signs = ["extld=", "extld ", "-extar", "-wrapper", "-fplugin", "-B", "-specs", "-plugin"];
    value.text().is_none_or(|text| !signs.iter().any(|sign| text.contains(sign)))
}
