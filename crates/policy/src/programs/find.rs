//! `find` and `fd`, which run a command for each file they find.

use crate::action::{Action, Actions};
use crate::call::Call;
use crate::names::Names;
use crate::script::{Origin, Word};

/// Tests of `find` that take a value.
const VALUED: Names = Names(
    "-amin -anewer -atime -cmin -cnewer -ctime -fstype -gid -group -ilname -iname -inum -ipath \
     -iregex -iwholename -links -lname -maxdepth -mindepth -mmin -mtime -name -newer -path -perm \
     -printf -regex -regextype -samefile -size -type -uid -used -user -wholename -xtype",
);

/// Its actions that run, write or delete something, and where it reads from a file which paths to begin with.
const ACTIONS: Names =
    Names("-delete -exec -execdir -files0-from -fls -fprint -fprint0 -fprintf -ok -okdir");

/// `find`: commands after `-exec` and the like, files after `-fprint`.
pub fn find(actions: &mut Actions<'_>, call: &Call<'_>) {
    let words = call.arguments();
    let reads = |word: &Word| word.prefix().starts_with("-files0");
    let origin = if words.iter().any(reads) { Origin::Other } else { Origin::Listed };
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        let Some(text) = word.text() else {
            let before = words[..at - 1].last().and_then(Word::text);
            let is_value = before.is_some_and(|option| VALUED.has(&option)) && word.is_single();
            if is_value || !actions.may_be_option(word) {
                continue;
            }
            return actions.unresolved(word.span.clone(), "a find argument");
        };
        if word.is_pattern() && ACTIONS.iter().any(|name| may_match(word, name)) {
            let what = "a pattern that may match an action of find; put ./ before it";
            return actions.unresolved(word.span.clone(), what);
        }
        match &*text {
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                let is = |at: usize, text: &str| {
                    words.get(at).and_then(Word::text).is_some_and(|word| word == text)
                };
                // A plus ends the command only after `{}`.
                let ends = |at: &usize| is(*at, ";") || (is(*at, "+") && is(at - 1, "{}"));
                let length = (at..words.len()).find(ends).unwrap_or(words.len()) - at;
                if text.ends_with("dir") {
                    actions.push(Action::EnterUnknown);
                }
                if let Some(word) = hidden_end(actions, &words[at..at + length]) {
                    let what = "a word that may end the command of find";
                    return actions.unresolved(word.span.clone(), what);
                }
                let all = is(at + length, "+");
                let command = words[at..at + length].iter();
                let command: Vec<_> = command
                    .map(|word| match all && word.literal().is_some_and(|word| word == "{}") {
                        true => Word::listed(&origin, word.span.clone()),
                        false => word.replace_mark("{}", &origin),
                    })
                    .collect();
                at += length + 1;
                if !command.is_empty() {
                    actions.run(command);
                }
            }
            "-fprint" | "-fprint0" | "-fls" | "-fprintf" => {
                if let Some(file) = words.get(at) {
                    actions.push(Action::WriteAside(file.clone()));
                }
                at += 1;
            }
            "-delete" => actions.push(Action::Delete { span: word.span.clone() }),
            _ => {}
        }
    }
}

/// The word of a command that may be its end, after which more of the expression would follow.
fn hidden_end<'a>(actions: &Actions<'_>, command: &'a [Word]) -> Option<&'a Word> {
    let others = command.split_last()?.1;
    let unknown = |word: &&Word| {
        word.text().is_none() && word.beginning().is_empty() && actions.may_be_option(word)
    };
    let splits = command.iter().find(|word| actions.knowledge.may_split(word));
    splits.or_else(|| others.iter().find(unknown))
}

/// Whether a file of this name would match a pattern, as far as its first and last characters tell.
fn may_match(pattern: &Word, name: &str) -> bool {
    let text = pattern.text().unwrap_or_default();
    let end = text.rsplit(['*', '?', ']']).next().unwrap_or_default();
    name.starts_with(&pattern.beginning()) && name.ends_with(end)
}

/// `fd`: a command after `-x` or `-X`.
pub fn fd(actions: &mut Actions<'_>, call: &Call<'_>) {
    let words = call.arguments();
    let at = words.iter().position(|word| {
        let Some(text) = word.text() else { return actions.may_be_option(word) };
        let short = text.starts_with('-') && !text.starts_with("--") && text.contains(['x', 'X']);
        short || text.starts_with("--exec")
    });
    let Some(at) = at else { return };
    if words[at].text().is_none_or(|text| !["-x", "-X", "--exec", "--exec-batch"].contains(&&*text))
    {
        return actions.unresolved(words[at].span.clone(), "an argument that may start a command");
    }
    let command = words[at + 1..].iter().map(|word| word.replace_mark("{", &Origin::FileName));
    let files = Word::unknown(true, words[at].span.clone());
    actions.run(command.chain([files]).collect());
}
