//! One entry of a list: a tool, or a tool and what it is asked to do.

use super::keys::{is_nearly, letters};

/// The tool by which assistants run commands.
pub const TOOL: &str = "run_shell_command";

/// Its names: today's, that of its class, and those newer ones take for it.
const NAMES: [&str; 4] = [TOOL, "ShellTool", "Shell", "Bash"];

/// What else assistants have, by all the names they take for it.
const OTHER_TOOLS: &str = "\
    Agent AgentTool Edit EditTool ExitPlanMode ExitPlanModeTool FindFiles Glob GlobTool Grep GrepTool \
    ListFiles ListFilesTool Lsp LspTool MemoryTool NotebookEdit NotebookRead MultiEdit Read ReadFile \
    ReadFileTool ReadFolder ReadManyFilesTool SaveMemory SaveMemoryTool SearchFiles Skill SkillTool \
    Task TaskTool TodoRead TodoWrite TodoWriteTool WebFetch WebFetchTool WebSearch WebSearchTool Write \
    WriteFile WriteFileTool activate_skill agent ask_user codebase_investigator edit enter_plan_mode \
    exit_plan_mode get_internal_docs glob google_web_search grep_search list_directory lsp read_file \
    read_many_files replace save_memory search_file_content skill task todo_read todo_write web_fetch \
    web_search write_file write_todos";

/// Parts of names of tools that run commands.
const RUNNERS: [&str; 5] = ["bash", "command", "exec", "shell", "terminal"];

pub const FORM: &str = "write it as run_shell_command or run_shell_command(COMMAND)";
const ONE_COMMAND: &str = "a rule is about one command without quotes, variables and operators, such as run_shell_command(git push)";
const STAR: &str =
    "a `*` stands only at the end, as in run_shell_command(git *), and not behind an option";

#[derive(Debug, PartialEq, Eq)]
pub enum Entry {
    /// A rule for commands; `*` is about all of them.
    Command(String),
    /// A tool that runs no commands.
    OtherTool,
    /// A name nobody here knows.
    Unknown(String),
}

impl Entry {
    /// Reads an entry, or says how it should be written.
    pub fn read(text: &str) -> Result<Self, &'static str> {
        let text = text.trim();
        let (name, argument) = match text.split_once('(') {
            None => (text, None),
            Some((name, rest)) => (name.trim_end(), Some(rest.strip_suffix(')').ok_or(FORM)?)),
        };
        match argument {
            None if NAMES.contains(&name) => Ok(Self::Command("*".to_owned())),
            Some(command) if NAMES.contains(&name) => pattern(command).map(Self::Command),
            _ if is_other_tool(name) => Ok(Self::OtherTool),
            // Only tools that are known are told what they are asked to do.
            Some(_) => Err(FORM),
            None if name.is_empty() || runs_commands(name) => Err(FORM),
            None => pattern(name).map(Self::Unknown),
        }
    }
}

/// Whether an entry, however it is written, names the tool that runs commands.
pub fn names_our_tool(text: &str) -> bool {
    let name = text.split('(').next().unwrap_or_default().trim();
    NAMES.contains(&name) || is_rule(text)
}

/// Whether a text that is in no list can only be meant as an entry. `Shell` is also a word.
pub fn is_unmistakable(text: &str) -> bool {
    [TOOL, "ShellTool"].contains(&text.trim()) || is_rule(text)
}

/// Whether a text is a rule for commands, such as `Bash(rm)`, even if the tool is misspelt.
pub fn is_rule(text: &str) -> bool {
    let Some((name, rest)) = text.trim().split_once('(') else { return false };
    let is_name = name.chars().all(|c| c.is_alphanumeric() || "_-".contains(c));
    NAMES.contains(&name) || is_name && rest.ends_with(')') && runs_commands(name)
}

fn is_other_tool(name: &str) -> bool {
    name.starts_with("mcp_") || OTHER_TOOLS.split_whitespace().any(|tool| tool == name)
}

/// Whether a name that is none of the tool's was meant for it.
fn runs_commands(name: &str) -> bool {
    let name = letters(name);
    RUNNERS.iter().any(|part| name.contains(part))
        || NAMES.iter().any(|known| is_nearly(&name, &letters(known)))
}

/// A rule of ours that is about all the commands the assistant's is about.
fn pattern(command: &str) -> Result<String, &'static str> {
    let command = command.trim();
    if command == "*" {
        return Ok(command.to_owned());
    }
    // What our rules are held against has no quotes any more, so such a rule would match nothing.
    if command.contains(['"', '\'', '`', '\\', '$', ';', '&', '|', '<', '>', '(', ')', '\n']) {
        return Err(ONE_COMMAND);
    }
    // `git *` and the older `git:*` are `git` with or without arguments, as our rules are.
    let open = command.strip_suffix(":*").or_else(|| command.strip_suffix(" *"));
    let words = open.unwrap_or(command).trim_end();
    let (last, starts) = (words.split_whitespace().last(), words.trim_end_matches('*'));
    let options = words.ends_with('*') && last.is_some_and(|word| word.starts_with('-'));
    if starts.contains('*') || starts.is_empty() && !words.is_empty() || options {
        return Err(STAR);
    }
    let name = words.split_whitespace().next().ok_or(FORM)?;
    if name.contains(',') { Err(ONE_COMMAND) } else { Ok(words.to_owned()) }
}
