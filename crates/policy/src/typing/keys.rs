//! Which text and keys do no more than they seem to: they answer, move, search, edit.

use super::TypedText;
use super::reader::Editor;
use crate::names::Names;

/// Keys that move, choose and leave, in whatever program.
const MOVING: Names = Names(
    "enter esc escape tab space backspace delete insert up down left right home end pageup \
     pagedown page-up page-down ctrl-c ctrl-d",
);

/// Keys that save, cut, search and leave in nano.
const NANO: Names = Names("ctrl-o ctrl-x ctrl-s ctrl-k ctrl-u ctrl-w ctrl-a ctrl-e");

/// Whether it consists of text and the enter key only.
pub fn is_plain(typed: &TypedText<'_>) -> bool {
    let edits = |c: char| c.is_control() && !"\n\r".contains(c);
    typed.keys.iter().all(|key| key.eq_ignore_ascii_case("enter")) && !typed.new.contains(edits)
}

/// Whether an interactive shell may replace something by an earlier command: `!rm`, `^a^b`.
pub fn recalls(text: &str) -> bool {
    let bang = text.match_indices('!').any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + 1..].chars().next();
        !matches!(before, Some('$' | '{'))
            && after.is_some_and(|after| !after.is_whitespace() && !"=(\"'".contains(after))
    });
    bang || text.split(['\n', '\r']).any(|line| line.trim_start().starts_with('^'))
}

/// Whether a pager only moves and searches.
pub fn pages(typed: &TypedText<'_>) -> bool {
    const KEYS: Names = Names("ctrl-b ctrl-e ctrl-f ctrl-k ctrl-n ctrl-p ctrl-u ctrl-y ctrl-l");
    let is_fine = |key: &String| MOVING.has(&key.to_lowercase()) || KEYS.has(&key.to_lowercase());
    if !typed.keys.iter().all(is_fine) || has_controls(typed.new) {
        return false;
    }
    let mut rest = typed.whole;
    while let Some(first) = rest.chars().next() {
        rest = match first {
            '/' | '?' => match rest.split_once(['\n', '\r']) {
                Some((pattern, after)) if !pattern.contains('!') => after,
                Some(_) => return false,
                None => return !rest.contains('!'),
            },
            // A mark takes the next key, whatever that is.
            '!' | '|' | '#' | ':' | '-' | '_' | '+' | '@' | 'E' | 'M' | 'V' | 'm' | 's' | 'v'
            | '\'' => {
                return false;
            }
            other => &rest[other.len_utf8()..],
        };
    }
    true
}

/// Whether no command of vi is typed but harmless ones. Nobody can tell whether vi is inserting text: it may ask
/// something, and take the key that begins the text for the answer. So text counts as commands, too.
pub fn edits(text: &str) -> bool {
    const HARMLESS: Names =
        Names("w wq x q q! wq! x! wa wqa qa qa! n N nohl noh syntax undo redo u e! $ bn bp ls");
    let is_harmless = |line: &str| {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default();
        let is_number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
        let is_option = |word: &str| word.bytes().all(|byte| byte.is_ascii_lowercase());
        HARMLESS.has(line.trim()) || is_number || (name == "set" && words.all(is_option))
    };
    // `@` runs a register, `K` a program for the word, `gx` one for the file, `Q` and `q:` lead to commands. `gf` opens
    // the file that is named, and in a folder `X`, `mx` and `mv` run one.
    let is_text = |text: &str| {
        !text.contains(['!', '@', 'K', 'Q', 'X', '`'])
            && !["\"=", "gx", "gf", "gF", "]f", "[f", "mf", "mr", "mv", "mx", "mX"]
                .into_iter()
                .any(|keys| text.contains(keys))
    };
    let mut parts = text.split(':').peekable();
    let before = parts.next().unwrap_or_default();
    let mut fine = is_text(before) && !(before.ends_with('q') && parts.peek().is_some());
    while let Some(part) = parts.next() {
        let last = parts.peek().is_none();
        fine &= match part.split_once(['\n', '\r', '\u{1b}']) {
            Some((line, after)) => {
                is_harmless(line) && is_text(after) && (last || !after.ends_with('q'))
            }
            // `:set shell:x` has a value, as with an equals sign.
            None if !last => part.len() < 3,
            None => part.len() < 4 || is_harmless(part),
        };
    }
    fine
}

/// Whether an editor gets only keys that move, delete, save and leave.
pub fn has_only_keys(typed: &TypedText<'_>, editor: Editor) -> bool {
    const IN_COMMANDS: Names = Names("enter esc escape ctrl-c");
    // In a command, an arrow recalls an earlier one.
    let last = typed.whole.rsplit(['\n', '\r', '\u{1b}']).next().unwrap_or_default();
    let in_command = editor == Editor::Vi && last.contains([':', '/', '?']);
    let is_fine = |key: &String| {
        let key = key.to_lowercase();
        let escapes = matches!(editor, Editor::Other | Editor::Emacs) && key.starts_with("esc");
        let moves = MOVING.has(&key) && key != "ctrl-d" && !escapes;
        (moves && (!in_command || IN_COMMANDS.has(&key)))
            || (editor == Editor::Nano && NANO.has(&key))
    };
    let hides = |c: char| {
        let leaves = editor == Editor::Vi && c == '\u{1b}';
        c.is_control() && !"\n\r\t".contains(c) && !leaves
    };
    // Emacs shows folders, too, and there these run programs.
    let runs = editor == Editor::Emacs && typed.new.contains(['!', '&', '|', 'X']);
    typed.keys.iter().all(is_fine) && !typed.new.contains(hides) && !runs
}

/// Whether a program that acts on every key is only left, or looked around in.
pub fn leaves(typed: &TypedText<'_>) -> bool {
    const KEYS: Names =
        Names("esc escape up down home end pageup pagedown page-up page-down ctrl-c f10");
    typed.keys.iter().all(|key| KEYS.has(&key.to_lowercase()))
        && typed.new.chars().all(|c| c == 'q' || c == 'y')
}

/// Whether a debugger only steps and shows.
pub fn steps(typed: &TypedText<'_>) -> bool {
    const COMMANDS: Names = Names(
        "b break bt backtrace c cont continue d delete disable down enable f fin finish frame h help \
         l list n next ni nexti q quit s step si stepi u until up w where y yes no",
    );
    // A second word may be a condition, which the debugger evaluates, or a command for each frame.
    const WITH_NAME: Names = Names("b break h help l list until");
    let is_name = |c: char| c.is_ascii_alphanumeric() || "._:".contains(c);
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    let is_fine = |line: &str| match *line.split_whitespace().collect::<Vec<_>>() {
        [] => true,
        [name] => COMMANDS.has(name),
        [name, number] if is_number(number) => COMMANDS.has(name),
        [name, word] => WITH_NAME.has(name) && word.chars().all(is_name),
        _ => false,
    };
    is_plain(typed) && typed.whole.split(['\n', '\r']).all(is_fine)
}

/// Whether it is one answer, and no command for a pager or editor that may appear in between.
pub fn answers(typed: &TypedText<'_>) -> bool {
    let lines = typed.new.trim_end_matches(['\n', '\r']);
    let is_fine = |key: &String| MOVING.has(&key.to_lowercase()) || NANO.has(&key.to_lowercase());
    !lines.contains(['\n', '\r', '!'])
        && !lines.starts_with([':', '|'])
        && !has_controls(&lines.replace('\u{1b}', ""))
        && typed.keys.iter().all(is_fine)
}

/// Whether it is a single line, for a program that waits for one.
pub fn is_line(typed: &TypedText<'_>) -> bool {
    let line = typed.new.trim_end_matches(['\n', '\r']);
    !line.contains(['\n', '\r'])
        && !has_controls(line)
        && typed.keys.iter().all(|key| MOVING.has(&key.to_lowercase()))
}

/// Whether it says nothing that a program nobody knows is likely to take for a command: words, numbers, paths,
/// addresses, and keys that move and choose.
pub fn is_plain_answer(typed: &TypedText<'_>) -> bool {
    let text = typed.new;
    let is_fine = |(at, c): (usize, char)| {
        let after = &text[at + c.len_utf8()..];
        let in_address = after.starts_with("//") || after.starts_with(|c: char| c.is_ascii_digit());
        c.is_alphanumeric() || " \t\n\r.,_-/@+~?'".contains(c) || (c == ':' && at > 0 && in_address)
    };
    text.char_indices().all(is_fine) && typed.keys.iter().all(|key| MOVING.has(&key.to_lowercase()))
}

fn has_controls(text: &str) -> bool {
    text.contains(|c: char| c.is_control() && !"\n\r\t".contains(c))
}
