//! Options of compilers that change neither what is linked nor what is run, in the variables that pass them on.

use crate::names::Names;

/// Options of Rust's compilers with a value that is a lint, a level or a condition.
const WITH_VALUE: Names =
    Names("A D F W --allow --cap-lints --cfg --check-cfg --deny --edition --forbid --warn");

/// What `-C` may set.
const CODEGEN: Names = Names(
    "codegen-units debug-assertions debuginfo embed-bitcode force-frame-pointers instrument-coverage link-dead-code \
     lto opt-level overflow-checks panic relocation-model split-debuginfo strip target-cpu target-feature",
);

/// Options for the go command.
const GO: Names = Names(
    "-a -asan -buildvcs -count -cover -failfast -json -msan -n -p -race -short -timeout -trimpath -v -x",
);

/// Whether these options change only what a Rust compiler warns of, and how it makes the same program.
pub fn are_harmless_to_rustc<'a>(words: impl IntoIterator<Item = &'a str>) -> bool {
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value)),
            _ if word.starts_with("--") => (word, None),
            // `-OCopt-level=3`
            _ => {
                let letters = word.strip_prefix('-').unwrap_or_default();
                let letters = letters.trim_start_matches(['g', 'O', 'v', 'q']);
                match letters.char_indices().nth(1) {
                    Some((at, _)) => (&letters[..at], Some(&letters[at..])),
                    None => (letters, None),
                }
            }
        };
        let mut value = || value.or_else(|| words.next()).unwrap_or_default();
        let is_harmless = match name {
            "" => word.len() > 1 && word.starts_with('-'),
            "C" | "--codegen" => CODEGEN.has(value().split('=').next().unwrap_or_default()),
            _ if WITH_VALUE.has(name) => is_condition(value()),
            _ => name == "--verbose",
        };
        if !is_harmless {
            return false;
        }
    }
    true
}

/// The same for a variable, in some of which the words are apart by a separator.
pub fn are_harmless_to_rustc_encoded(value: &str) -> bool {
    are_harmless_to_rustc(
        value.split(|c: char| c.is_whitespace() || c == '\x1f').filter(|it| !it.is_empty()),
    )
}

/// Whether a value of `GOFLAGS` changes neither what is compiled nor by what.
pub fn are_harmless_to_go(value: &str) -> bool {
    value.split_whitespace().all(|word| {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        let is_linked =
            |option: &str| Names("-s -w -linkmode=internal -linkmode=external").has(option);
        name == "-ldflags" && is_linked(value)
            || Names("-mod=readonly -mod=vendor").has(word)
            || GO.has(name) && value.chars().all(|c| c.is_alphanumeric() || "_,.-".contains(c))
    })
}

fn is_condition(text: &str) -> bool {
    !text.starts_with('-') && text.chars().all(|c| c.is_alphanumeric() || "_:-=\"(), ".contains(c))
}
