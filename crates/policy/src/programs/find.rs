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

/// `find`: commands after `-exec` and the like, files after `-fprint`.
pub fn find(actions: &mut Actions<'_>, call: &Call<'_>) {
    let words = call.arguments();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        let Some(text) = word.text() else {
            let before = words[..at - 1].last().and_then(Word::text);
            let is_value = before.is_some_and(|option| VALUED.has(&option)) && word.is_single();
            // It can be `-exec` only if a command and its end follow.
            let next = words.get(at).and_then(Word::text);
            let ends = |word: &Word| word.text().is_none_or(|text| text == ";" || text == "+");
            let runs = next.is_some_and(|next| !next.starts_with(['-', '(', '!']))
                && words[at..].iter().any(ends);
            if is_value || !actions.may_be_option(word) || (word.is_single() && !runs) {
                continue;
            }
            return actions.unresolved(word.span.clone(), "a find argument");
        };
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
                let command = words[at..at + length].iter();
                let command: Vec<_> =
                    command.map(|word| word.replace_mark("{}", &Origin::Listed)).collect();
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
    let command = words[at + 1..].iter().map(|word| word.replace_mark("{", &Origin::Listed));
    let files = Word::unknown(true, words[at].span.clone());
    actions.run(command.chain([files]).collect());
}
