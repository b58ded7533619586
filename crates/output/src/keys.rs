//! The bytes that a terminal sends for a key.
//!
//! Keys have names such as `ctrl-c` or `page-up`. The bytes are those of xterm, which all programs understand.

/// The names of the keys, for the error about an unknown one.
pub const KEY_NAMES: &str = "enter, tab, backtab, escape, space, backspace, delete, insert, up, \
    down, left, right, home, end, page-up, page-down, f1 to f12; with ctrl-, alt- or shift- before \
    them, as in shift-up; ctrl-a to ctrl-z, ctrl-@ [ \\ ] ^ _; alt- and one character";

const ESCAPE: u8 = 0x1b;

/// The bytes that a terminal sends for a key, or `None` if there is no key of this name. Full-screen programs
/// switch the terminal to `application` mode, in which it sends other bytes for a few keys.
pub fn key_bytes(name: &str, application: bool) -> Option<Vec<u8>> {
    let (modifiers, name) = split_modifiers(name);
    match key(name) {
        Some(key) => key.bytes(modifiers, application),
        None => character(name, modifiers),
    }
}

/// The modifier keys that are held down while another key is pressed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Modifiers {
    shift: bool,
    alt: bool,
    ctrl: bool,
}

impl Modifiers {
    /// The number xterm sends for them: one more than their bits.
    fn number(self) -> u8 {
        1 + u8::from(self.shift) + 2 * u8::from(self.alt) + 4 * u8::from(self.ctrl)
    }
}

/// Splits the modifiers off the name: `ctrl-`, `ctrl+`, `C-` and the like.
fn split_modifiers(mut name: &str) -> (Modifiers, &str) {
    let mut modifiers = Modifiers::default();
    while let Some((first, rest)) = name.split_once(['-', '+']) {
        match first.to_ascii_lowercase().as_str() {
            "ctrl" | "control" | "c" => modifiers.ctrl = true,
            "alt" | "meta" | "m" => modifiers.alt = true,
            "shift" | "s" => modifiers.shift = true,
            _ => break,
        }
        name = rest;
    }
    (modifiers, name)
}

/// How a key is sent.
#[derive(Debug, Clone, Copy)]
enum Key {
    /// As itself.
    Byte(u8),
    Space,
    Tab,
    Backtab,
    /// `ESC [ A`, or `ESC O A` in application mode.
    Cursor(u8),
    /// `ESC O P`, in every mode.
    Function(u8),
    /// `ESC [ 3 ~`.
    Number(u8),
}

fn key(name: &str) -> Option<Key> {
    // A single character stands for itself, even `-`.
    name.chars().nth(1)?;
    let name: String = name.chars().filter(|c| !matches!(c, '-' | '_' | ' ')).collect();
    Some(match name.to_ascii_lowercase().as_str() {
        "enter" | "return" => Key::Byte(b'\r'),
        "escape" | "esc" => Key::Byte(ESCAPE),
        "backspace" => Key::Byte(0x7f),
        "space" => Key::Space,
        "tab" => Key::Tab,
        "backtab" => Key::Backtab,
        "up" => Key::Cursor(b'A'),
        "down" => Key::Cursor(b'B'),
        "right" => Key::Cursor(b'C'),
        "left" => Key::Cursor(b'D'),
        "end" => Key::Cursor(b'F'),
        "home" => Key::Cursor(b'H'),
        "insert" | "ins" => Key::Number(2),
        "delete" | "del" => Key::Number(3),
        "pageup" | "pgup" => Key::Number(5),
        "pagedown" | "pgdn" => Key::Number(6),
        other => function_key(other.strip_prefix('f')?)?,
    })
}

/// The numbers have gaps because the keys come from several terminals.
fn function_key(number: &str) -> Option<Key> {
    Some(match number {
        "1" => Key::Function(b'P'),
        "2" => Key::Function(b'Q'),
        "3" => Key::Function(b'R'),
        "4" => Key::Function(b'S'),
        "5" => Key::Number(15),
        "6" => Key::Number(17),
        "7" => Key::Number(18),
        "8" => Key::Number(19),
        "9" => Key::Number(20),
        "10" => Key::Number(21),
        "11" => Key::Number(23),
        "12" => Key::Number(24),
        _ => return None,
    })
}

impl Key {
    fn bytes(self, modifiers: Modifiers, application: bool) -> Option<Vec<u8>> {
        let with = modifiers.number();
        let text = match (self, with) {
            (Self::Cursor(letter), 1) if application => format!("\x1bO{}", char::from(letter)),
            (Self::Cursor(letter), 1) => format!("\x1b[{}", char::from(letter)),
            (Self::Function(letter), 1) => format!("\x1bO{}", char::from(letter)),
            (Self::Cursor(letter) | Self::Function(letter), _) => {
                format!("\x1b[1;{with}{}", char::from(letter))
            }
            (Self::Number(number), 1) => format!("\x1b[{number}~"),
            (Self::Number(number), _) => format!("\x1b[{number};{with}~"),
            (Self::Byte(byte), _) => return with_alt(&[byte], modifiers),
            (Self::Space, _) if modifiers.ctrl => return character("@", modifiers),
            (Self::Space, _) => return with_alt(b" ", modifiers),
            (Self::Tab, _) if !modifiers.shift => return with_alt(b"\t", modifiers),
            (Self::Tab | Self::Backtab, _) => {
                return with_alt(b"\x1b[Z", Modifiers { shift: false, ..modifiers });
            }
        };
        Some(text.into_bytes())
    }
}

/// A character pressed with modifiers. A character alone is text, not a key.
fn character(name: &str, modifiers: Modifiers) -> Option<Vec<u8>> {
    let mut characters = name.chars();
    let (Some(character), None) = (characters.next(), characters.next()) else { return None };
    if !modifiers.ctrl {
        return if modifiers.alt { with_alt(name.as_bytes(), modifiers) } else { None };
    }
    match character.to_ascii_uppercase() {
        control @ '@'..='_' => {
            with_alt(&[control as u8 & 0x1f], Modifiers { ctrl: false, ..modifiers })
        }
        _ => None,
    }
}

/// Bytes that only alt changes, by an escape before them.
fn with_alt(bytes: &[u8], modifiers: Modifiers) -> Option<Vec<u8>> {
    if modifiers.ctrl || modifiers.shift {
        return None;
    }
    let escape: &[u8] = if modifiers.alt { &[ESCAPE] } else { &[] };
    Some([escape, bytes].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(name: &str) -> Option<String> {
        key_bytes(name, false).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    fn check(cases: &[(&str, &str)]) {
        for (name, expected) in cases {
            assert_eq!(sent(name).as_deref(), Some(*expected), "{name}");
        }
    }

    #[test]
    fn a_named_key_sends_what_a_terminal_sends() {
        check(&[("enter", "\r"), ("tab", "\t"), ("escape", "\x1b"), ("esc", "\x1b")]);
        check(&[("space", " "), ("backspace", "\x7f"), ("backtab", "\x1b[Z")]);
        check(&[("insert", "\x1b[2~"), ("delete", "\x1b[3~")]);
        check(&[("up", "\x1b[A"), ("down", "\x1b[B"), ("right", "\x1b[C"), ("left", "\x1b[D")]);
        check(&[("home", "\x1b[H"), ("end", "\x1b[F")]);
        check(&[("page-up", "\x1b[5~"), ("pageup", "\x1b[5~")]);
        check(&[("page-down", "\x1b[6~"), ("pagedown", "\x1b[6~")]);
        check(&[("f1", "\x1bOP"), ("f4", "\x1bOS"), ("f5", "\x1b[15~"), ("f12", "\x1b[24~")]);
    }

    #[test]
    fn ctrl_with_a_letter_or_sign_sends_a_control_character() {
        for letter in 'a'..='z' {
            let control = char::from(letter as u8 - b'a' + 1).to_string();
            check(&[(&format!("ctrl-{letter}"), &control)]);
        }
        check(&[("ctrl-[", "\x1b"), ("ctrl-\\", "\x1c"), ("ctrl-]", "\x1d"), ("ctrl-^", "\x1e")]);
        check(&[("ctrl-_", "\x1f"), ("ctrl-@", "\0"), ("ctrl-space", "\0")]);
    }

    #[test]
    fn alt_sends_an_escape_before_a_key_or_character() {
        check(&[("alt-x", "\x1bx"), ("alt-X", "\x1bX"), ("alt--", "\x1b-"), ("alt-+", "\x1b+")]);
        check(&[("alt-enter", "\x1b\r"), ("alt-é", "\x1bé"), ("alt-tab", "\x1b\t")]);
        check(&[("alt-ctrl-c", "\x1b\x03"), ("ctrl-alt-space", "\x1b\0")]);
    }

    #[test]
    fn modifiers_become_a_number_in_the_sequence_of_a_cursor_key() {
        check(&[("shift-up", "\x1b[1;2A"), ("alt-left", "\x1b[1;3D"), ("ctrl-up", "\x1b[1;5A")]);
        check(&[("ctrl-home", "\x1b[1;5H"), ("ctrl-shift-end", "\x1b[1;6F")]);
        check(&[("ctrl-f1", "\x1b[1;5P"), ("shift-f5", "\x1b[15;2~"), ("alt-delete", "\x1b[3;3~")]);
        check(&[("shift-tab", "\x1b[Z")]);
        assert_eq!(key_bytes("ctrl-up", true).unwrap(), b"\x1b[1;5A");
    }

    #[test]
    fn application_mode_changes_the_cursor_keys_only() {
        for (name, expected) in [("up", "\x1bOA"), ("home", "\x1bOH"), ("end", "\x1bOF")] {
            assert_eq!(key_bytes(name, true).unwrap(), expected.as_bytes());
        }
        for name in ["enter", "page-up", "f1", "f5", "ctrl-c", "alt-x"] {
            assert_eq!(key_bytes(name, true), key_bytes(name, false));
        }
    }

    #[test]
    fn names_have_several_spellings() {
        for name in ["ctrl-c", "Ctrl-C", "ctrl+c", "C-c", "CTRL+C", "control-c"] {
            assert_eq!(sent(name).unwrap(), "\x03");
        }
        check(&[("Enter", "\r"), ("PageUp", "\x1b[5~"), ("PAGE_DOWN", "\x1b[6~")]);
        check(&[("M-x", "\x1bx"), ("S-Tab", "\x1b[Z"), ("C-M-a", "\x1b\x01")]);
    }

    #[test]
    fn an_unknown_key_sends_nothing() {
        for name in
            ["", "x", "-", "ctrl-", "ctrl-1", "ctrl-é", "shift-x", "shift-enter", "ctrl-tab"]
        {
            assert_eq!(sent(name), None, "{name}");
        }
        for name in ["f0", "f13", "f", "fn", "up up", "hyper-x", "alt-xy", "ctrl-ab", "€-x"] {
            assert_eq!(sent(name), None, "{name}");
        }
    }

    #[test]
    fn every_key_that_is_listed_exists() {
        let (names, _) = KEY_NAMES.split_once(", f1 to").unwrap();
        assert!(names.split(", ").all(|name| sent(name).is_some()), "{names}");
    }
}
