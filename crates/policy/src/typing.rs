//! Judges what is typed into a running program: by what reads it, and by what may come to read it.
//!
//! A shell runs what it reads, and so do interpreters and the shells of databases. Pagers and editors run commands
//! after a few keys. Terminals within terminals (`tmux`, `ssh`, `script`) pass everything on to a shell that nobody
//! sees. All other programs read data.

use crate::denial::{Denial, Why};
use crate::identity;
use crate::lock::Lock;
use crate::names::Names;
use crate::paths::{Target, base_name, target_anywhere};
use crate::policy::{Policy, Scene};
use crate::programs::{is_database, is_editor, is_inline_option, is_interpreter, is_shell};

/// A program that reads the input of a job.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    pub name: &'a str,
    pub arguments: &'a [String],
}

/// What is typed.
#[derive(Debug, Clone, Copy)]
pub struct TypedText<'a> {
    /// The command of the job, which may have changed directory and variables for the program.
    pub command: &'a str,
    /// All text so far, up to the end of this one.
    pub whole: &'a str,
    /// The text that is about to be typed.
    pub new: &'a str,
    /// The keys after it.
    pub keys: &'a [String],
    /// Whether the program reads from a terminal.
    pub terminal: bool,
}

/// Why something may not be typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypingError {
    Denied(Denial),
    /// Nobody can tell what the keys do.
    Keys,
}

/// What a program does with its input.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Use {
    /// Runs it, as this program does.
    Runs(String),
    /// Shows text, and runs commands after some keys.
    Pages,
    /// Edits text, and runs commands after some keys.
    Edits(Editor),
    /// Reads answers, and may start a pager or an editor that reads the rest.
    Starts,
    Reads,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Editor {
    Vi,
    Nano,
    Other,
}

/// Ends the here-document in which typed text is judged.
const END: &str = "MCPZ_END_OF_INPUT";

/// A command without any of these is a single program: `env -C /tmp x=1 bash`.
const COMPOUND: [char; 11] = ['<', '>', '|', '&', ';', '(', '{', '$', '`', '#', '\n'];

const PAGERS: Names = Names("bat less lv man more most pg w3m zless zmore");

/// Programs that run lines of their input that begin in a certain way.
const ESCAPING: Names = Names("dc ed ftp lftp m4 mail mailx ncftp red sftp smbclient telnet tnftp");

/// Programs that start pagers or editors by themselves.
const STARTERS: Names = Names(
    "ansible-vault apt apt-get aptitude aws busctl coredumpctl crontab dmesg dpkg fossil gcloud gem \
     gh git glab gpg hg hostnamectl info jj journalctl kubectl loginctl mutt neomutt networkctl npm \
     oc pass perldoc resolvectl sudoedit svn systemctl timedatectl visudo yarn",
);

/// Programs that pass their input on to another terminal or machine.
const RELAYS: Names = Names(
    "abduco asciinema autossh distrobox doas docker dtach expect flatpak incus kubectl limactl lxc \
     machinectl minicom mosh multipass nc nerdctl oc picocom podman rlwrap runuser screen script \
     socat ssh su sudo telnet tmux toolbox ttyrec unbuffer vagrant zellij",
);

/// The ones among them that start a shell unless they are told otherwise.
const SHELL_RELAYS: Names = Names(
    "abduco asciinema autossh distrobox dtach machinectl mosh screen script ssh su tmux toolbox \
     ttyrec vagrant zellij",
);

impl Policy {
    /// Judges what is typed for a program that reads it, and returns what may be executed for it, if not everything.
    pub fn judge_typed(
        &self,
        reader: &Reader<'_>,
        typed: &TypedText<'_>,
        scene: &Scene<'_>,
    ) -> Result<Option<Lock>, TypingError> {
        if !self.restricts() {
            return Ok(None);
        }
        let what = "what is typed may be a command";
        let refuse = || {
            let why = Why::Opaque { what };
            let part = reader.name.to_owned();
            Err(TypingError::Denied(Denial { part, span: 0..reader.name.len(), why }))
        };
        match use_of(reader) {
            Use::Reads => Ok(None),
            Use::Runs(_) if !is_plain(typed) => Err(TypingError::Keys),
            Use::Runs(name) if typed.terminal && name == "bash" && recalls(typed.whole) => refuse(),
            Use::Runs(name) => {
                let lock = self.judge_input(&name, typed.whole, scene);
                let lock = lock.map_err(TypingError::Denied)?;
                self.judge_behind(reader, typed, scene)?;
                Ok(lock)
            }
            Use::Pages if pages(typed.whole) => Ok(None),
            Use::Edits(editor) if !has_only_keys(typed, editor) => Err(TypingError::Keys),
            Use::Edits(Editor::Vi) if edits(typed.whole) => Ok(None),
            Use::Edits(Editor::Nano | Editor::Other) => Ok(None),
            Use::Starts if answers(typed.new) => Ok(None),
            Use::Pages | Use::Edits(Editor::Vi) | Use::Starts => refuse(),
        }
    }
}

impl Policy {
    /// Judges what is typed for an interpreter behind the command of its job.
    fn judge_behind(
        &self,
        reader: &Reader<'_>,
        typed: &TypedText<'_>,
        scene: &Scene<'_>,
    ) -> Result<(), TypingError> {
        let (command, text) = (typed.command.trim(), typed.whole);
        let name = identity::program(reader.name);
        if command.is_empty() || !(is_shell(name) || is_interpreter(name)) {
            return Ok(());
        }
        if text.contains(END) {
            return Err(TypingError::Keys);
        }
        let reading = |program: &str| format!("{program} <<'{END}'\n{text}\n{END}\n");
        let script = match command.contains(COMPOUND) {
            // The interpreter may be any of its commands, or started by one.
            true => format!("{command}\n\n{}", reading(reader.name)),
            false => reading(command),
        };
        self.judge_script(&script, scene).map_err(TypingError::Denied)
    }
}

impl Reader<'_> {
    /// Whether it only reads data, whatever is typed.
    pub fn reads_data(&self) -> bool {
        use_of(self) == Use::Reads
    }
}

fn use_of(reader: &Reader<'_>) -> Use {
    let (name, arguments) = (identity::program(reader.name), reader.arguments);
    match name {
        "busybox" | "toybox" => match arguments.split_first() {
            Some((applet, arguments)) => use_of(&Reader { name: base_name(applet), arguments }),
            None => Use::Reads,
        },
        _ if is_shell(name) || is_interpreter(name) => match has_program(name, arguments) {
            true => Use::Reads,
            false => Use::Runs(reader.name.to_owned()),
        },
        _ if is_database(name) || ESCAPING.has(name) => Use::Runs(name.to_owned()),
        _ if RELAYS.has(name) => relayed(name, arguments),
        _ if PAGERS.has(name) => Use::Pages,
        "nano" | "rnano" | "pico" => Use::Edits(Editor::Nano),
        _ if name.contains("vi") && is_editor(name) => Use::Edits(Editor::Vi),
        "ex" => Use::Runs("ex".to_owned()),
        _ if is_editor(name) => Use::Edits(Editor::Other),
        _ if STARTERS.has(name) => Use::Starts,
        _ => Use::Reads,
    }
}

/// What becomes of input that a program passes on: the command among its arguments decides.
fn relayed(name: &str, arguments: &[String]) -> Use {
    let has = |option: &str| arguments.iter().any(|argument| argument == option);
    let words = arguments.iter().flat_map(|argument| argument.split([' ', ';', '|', '&', '=']));
    let uses = words.map(|word| {
        let bare = identity::program(base_name(word));
        let is_relay = RELAYS.has(bare);
        if is_relay { Use::Reads } else { use_of(&Reader { name: bare, arguments: &[] }) }
    });
    let starts_shell = SHELL_RELAYS.has(name)
        || (name == "sudo" && (has("-i") || has("-s")))
        || ["exec", "run", "attach", "shell"].into_iter().any(has);
    let found = uses.into_iter().find(|found| *found != Use::Reads);
    match found {
        Some(found) => found,
        None if starts_shell => Use::Runs("sh".to_owned()),
        None if STARTERS.has(name) => Use::Starts,
        None => Use::Reads,
    }
}

/// Whether a shell or interpreter certainly got its program when it was started: `sh -c text`, `python3 file`.
fn has_program(name: &str, arguments: &[String]) -> bool {
    const FLAGS: Names =
        Names("-u -B -q -v -x -e -l -w --norc --noprofile --posix --login -- --verbose");
    if arguments.iter().any(|word| word == "-i" || word == "-s") {
        return false;
    }
    let is_file = |word: &String| target_anywhere(word) == Target::File;
    let is_operand = |word: &String| !word.is_empty() && !word.starts_with('-') && is_file(word);
    let is_certain = |at: usize| match at.checked_sub(1).map(|before| &arguments[before]) {
        None => true,
        Some(before) => !before.starts_with('-') || FLAGS.has(before),
    };
    let inline = arguments.iter().any(|word| is_inline_option(name, word));
    inline || (0..arguments.len()).any(|at| is_operand(&arguments[at]) && is_certain(at))
}

/// Whether it consists of text and the enter key only.
fn is_plain(typed: &TypedText<'_>) -> bool {
    let edits = |c: char| c.is_control() && !"\n\r".contains(c);
    typed.keys.iter().all(|key| key.eq_ignore_ascii_case("enter")) && !typed.new.contains(edits)
}

/// Whether an interactive shell may replace something by an earlier command: `!rm`, `^a^b`.
fn recalls(text: &str) -> bool {
    let bang = text.match_indices('!').any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + 1..].chars().next();
        !matches!(before, Some('$' | '{'))
            && after.is_some_and(|after| !after.is_whitespace() && !"=(\"'".contains(after))
    });
    bang || text.split(['\n', '\r']).any(|line| line.trim_start().starts_with('^'))
}

/// Whether a pager only moves and searches.
fn pages(text: &str) -> bool {
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        rest = match first {
            '/' | '?' => match rest.split_once(['\n', '\r']) {
                Some((pattern, after)) if !pattern.contains('!') => after,
                Some(_) => return false,
                None => return !rest.contains('!'),
            },
            '!' | '|' | '#' | ':' | '-' | '_' | '+' | 'E' | 'V' | 'm' | 's' | 'v' => return false,
            other => &rest[other.len_utf8()..],
        };
    }
    true
}

/// Whether no command of vi is typed but harmless ones.
fn edits(text: &str) -> bool {
    const HARMLESS: Names =
        Names("w wq x q q! wq! x! wa wqa qa qa! n N nohl noh set syntax undo redo u e! $ bn bp ls");
    let is_harmless = |line: &str| {
        let name = line.split_whitespace().next().unwrap_or_default();
        let is_number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
        HARMLESS.has(line.trim()) || is_number || (name == "set" && !line.contains(['=', '|', '!']))
    };
    let mut parts = text.split(':');
    let before = parts.next().unwrap_or_default();
    // `Q` and `"=` lead to commands, too, and `!` to programs.
    let is_text = |text: &str| !text.contains(['!', 'Q', '`']) && !text.contains("\"=");
    is_text(before)
        && parts.all(|part| match part.split_once(['\n', '\r']) {
            Some((line, after)) => is_harmless(line) && is_text(after),
            None => part.len() < 4 || is_harmless(part),
        })
}

/// Whether an editor gets only keys that move, delete, save and leave.
fn has_only_keys(typed: &TypedText<'_>, editor: Editor) -> bool {
    const KEYS: Names = Names(
        "enter esc escape tab space backspace delete insert up down left right home end pageup \
         pagedown page-up page-down ctrl-c",
    );
    const NANO: Names = Names("ctrl-o ctrl-x ctrl-s ctrl-k ctrl-u ctrl-w ctrl-a ctrl-e");
    let is_fine = |key: &String| {
        let key = key.to_lowercase();
        let escapes = editor == Editor::Other && key.starts_with("esc");
        (KEYS.has(&key) && !escapes) || (editor == Editor::Nano && NANO.has(&key))
    };
    let hides = |c: char| {
        let leaves = editor == Editor::Vi && c == '\u{1b}';
        c.is_control() && !"\n\r\t".contains(c) && !leaves
    };
    typed.keys.iter().all(is_fine) && !typed.new.contains(hides)
}

/// Whether it is one answer, and no command for a pager or editor that may appear in between.
fn answers(text: &str) -> bool {
    let lines = text.trim_end_matches(['\n', '\r']);
    !lines.contains(['\n', '\r', '!']) && !lines.starts_with([':', '|'])
}
