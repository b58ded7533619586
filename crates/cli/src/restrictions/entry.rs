//! One entry of a list: a tool, or a tool with a pattern for its argument.

use super::keys::{is_nearly, letters};

/// The tool that runs commands in these assistants.
pub const TOOL: &str = "run_shell_command";

/// Its names: the current one, that of its class, and aliases in newer versions.
const NAMES: [&str; 4] = [TOOL, "ShellTool", "Shell", "Bash"];

/// The other tools of these assistants, with all their aliases.
const OTHER_TOOLS: &str = "\
    Agent AgentTool Edit EditTool ExitPlanMode ExitPlanModeTool FindFiles Glob GlobTool Grep GrepTool \
    ListFiles ListFilesTool Lsp LspTool MemoryTool NotebookEdit NotebookRead MultiEdit Read ReadFile \
    ReadFileTool ReadFolder ReadManyFilesTool SaveMemory SaveMemoryTool SearchFiles Skill SkillTool \
    Task TaskTool TodoRead TodoWrite TodoWriteTool WebFetch WebFetchTool WebSearch WebSearchTool Write \
    WriteFile WriteFileTool activate_skill agent ask_user codebase_investigator edit enter_plan_mode \
    exit_plan_mode get_internal_docs glob google_web_search grep_search list_directory lsp read_file \
    read_many_files replace save_memory search_file_content skill task todo_read todo_write web_fetch \
    web_search write_file write_todos";

/// Parts of the names of tools that run commands.
const RUNNERS: [&str; 5] = ["bash", "command", "exec", "shell", "terminal"];

/// Why an entry is not understood, as advice on how to write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    #[error("write it as run_shell_command or run_shell_command(COMMAND)")]
    Form,
    #[error(
        "a rule covers one command without quotes, variables or operators, such as \
         run_shell_command(git push)"
    )]
    Command,
    #[error("use `*` only at the end, as in run_shell_command(git *), and not after an option")]
    Star,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Entry {
    /// A rule for commands; `*` matches all of them.
    Command(String),
    /// A tool that does not run commands.
    OtherTool,
    /// An unknown name: another tool, or a command.
    Unknown(String),
}

impl Entry {
    pub fn parse(text: &str) -> Result<Self, EntryError> {
        let text = text.trim();
        let (name, argument) = match text.split_once('(') {
            None => (text, None),
            Some((name, rest)) => {
                (name.trim_end(), Some(rest.strip_suffix(')').ok_or(EntryError::Form)?))
            }
        };
        match argument {
            None if NAMES.contains(&name) => Ok(Self::Command("*".to_owned())),
            Some(command) if NAMES.contains(&name) => pattern(command).map(Self::Command),
            _ if is_other_tool(name) => Ok(Self::OtherTool),
            // Only known tools may have an argument.
            Some(_) => Err(EntryError::Form),
            None if name.is_empty() || runs_commands(name) => Err(EntryError::Form),
            None => pattern(name).map(Self::Unknown),
        }
    }
}

/// Whether an entry, even a malformed one, names the tool that runs commands.
pub fn names_shell_tool(text: &str) -> bool {
    let name = text.split('(').next().unwrap_or_default().trim();
    NAMES.contains(&name) || is_rule(text)
}

/// Whether a text outside of any list can only be meant as an entry. `Shell` may be an ordinary word.
pub fn is_clearly_entry(text: &str) -> bool {
    [TOOL, "ShellTool"].contains(&text.trim()) || is_rule(text)
}

/// Whether a text is a rule for commands, such as `Bash(rm)`, even with the tool misspelt.
pub fn is_rule(text: &str) -> bool {
    let Some((name, rest)) = text.trim().split_once('(') else { return false };
    let is_name = name.chars().all(|c| c.is_alphanumeric() || "_-".contains(c));
    NAMES.contains(&name) || is_name && rest.ends_with(')') && runs_commands(name)
}

fn is_other_tool(name: &str) -> bool {
    name.starts_with("mcp_") || OTHER_TOOLS.split_whitespace().any(|tool| tool == name)
}

/// Whether an unknown name was probably meant for the tool that runs commands.
fn runs_commands(name: &str) -> bool {
    let name = letters(name);
    RUNNERS.iter().any(|part| name.contains(part))
        || NAMES.iter().any(|known| is_nearly(&name, &letters(known)))
}

/// Our pattern for the commands that the assistant's rule matches.
fn pattern(command: &str) -> Result<String, EntryError> {
    let command = command.trim();
    if command == "*" {
        return Ok(command.to_owned());
    }
    // Rules are matched against words without quotes, so a rule with quotes would never match.
    if command.contains(['"', '\'', '`', '\\', '$', ';', '&', '|', '<', '>', '(', ')', '\n']) {
        return Err(EntryError::Command);
    }
    // `git *` and the older `git:*` mean `git` with or without arguments, as the rule `git` does for us.
    let open = command.strip_suffix(":*").or_else(|| command.strip_suffix(" *"));
    let words = open.unwrap_or(command).trim_end();
    let (last, starts) = (words.split_whitespace().last(), words.trim_end_matches('*'));
    let options = words.ends_with('*') && last.is_some_and(|word| word.starts_with('-'));
    if starts.contains('*') || starts.is_empty() && !words.is_empty() || options {
        return Err(EntryError::Star);
    }
    let name = words.split_whitespace().next().ok_or(EntryError::Form)?;
    if name.contains(',') { Err(EntryError::Command) } else { Ok(words.to_owned()) }
}
