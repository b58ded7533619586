//! A rule that limits a program which can run anything, such as `make test`.
//!
//! The judge reads with it what a command says, and the keeper what a process really executes: the same code, so that
//! neither takes what the other refuses.

use crate::additions::{self, AddedPlaces, Arguments, Reach};
use crate::identity;
use crate::opened;
use crate::paths::base_name;
use crate::programs;
use crate::rule::{CommandName, Rule, RuleError};
use crate::script::Word;

/// What a rule says about a call of the program that it is about.
pub enum Fit<'a> {
    /// It does not allow these arguments.
    No,
    /// It allows the call but for this argument.
    Adds(&'a Word),
    Yes(Reach),
}

/// How a rule fits a call. `words` may be reordered as additions may be.
pub fn fit<'a>(rule: &Rule, name: &CommandName, words: &'a [Word]) -> Fit<'a> {
    let Some(program) = name.known().map(base_name) else { return Fit::No };
    if !rule.allows_arguments(name, words) {
        return Fit::No;
    }
    if !has_reach(program) || rule.whole_program().is_some() {
        return Fit::Yes(Reach::Anywhere);
    }
    // A regular expression sees all words.
    let by_rule = rule.named(name, words);
    let all = vec![true; words.len() - 1];
    let given = Arguments {
        words: &words[1..],
        named: by_rule.as_deref().unwrap_or(&all),
        open: rule.is_open(),
    };
    if programs::is_shell(identity::program(program)) {
        return Fit::Yes(additions::reach_of_shell(program, given));
    }
    let added = by_rule.is_some().then(|| additions::refused(program, given)).flatten();
    added.map_or_else(|| Fit::Yes(additions::reach(program, given)), Fit::Adds)
}

/// Whether it may matter where a program is called.
pub fn has_reach(program: &str) -> bool {
    additions::matter_to(program) || programs::is_shell(identity::program(program))
}

/// Such a rule, for a program by the name that a command has for it.
pub struct Limit {
    rule: Rule,
    program: String,
}

/// Where a call holds, and which directories and files it adds.
pub struct Place {
    pub reach: Reach,
    pub added: AddedPlaces,
}

impl Limit {
    pub fn new(rule: &str, program: &str) -> Result<Self, RuleError> {
        Ok(Self { rule: Rule::new(rule)?, program: program.to_owned() })
    }

    /// Where the rule allows the program with these arguments, if it does.
    pub fn place(&self, arguments: &[&str]) -> Option<Place> {
        let texts = std::iter::once(self.program.as_str()).chain(arguments.iter().copied());
        let words: Vec<_> = texts.map(|text| Word::known(text, 0..0)).collect();
        let name = CommandName::of(&words);
        let program = base_name(&self.program);
        let other = additions::options_last(program, &words);
        [Some(&words), other.as_ref()].into_iter().flatten().find_map(|words| {
            let Fit::Yes(reach) = fit(&self.rule, &name, words) else { return None };
            // What a `*` of the rule stands for may lead elsewhere, too.
            let named = self.rule.spelled_out(&name, words);
            let given = &words[1..];
            let given = match programs::is_shell(identity::program(program)) {
                // What follows a script is for that.
                true => match opened::file(identity::program(program), given) {
                    Some(script) => &given[..=script],
                    None => given,
                },
                false => given,
            };
            let added = named.map(|named| {
                let given = Arguments { words: given, named: &named, open: false };
                additions::added_places(program, given)
            });
            let mut added = added.unwrap_or_default();
            let texts = given.iter().filter_map(Word::text);
            added.below = texts
                .filter_map(|text| Some((text.to_string(), self.rule.folder_of(&text)?.to_owned())))
                .collect();
            Some(Place { reach, added })
        })
    }
}
