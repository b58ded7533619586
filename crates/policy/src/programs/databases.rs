//! Shells of databases, whose own commands and functions can run programs and write files.

use super::arguments::{Argument, OptionSyntax, parse};
use crate::action::{Action, Actions, Runner};
use crate::call::{Call, Input};
use crate::names::Names;
use crate::script::Word;

/// Commands of sqlite3 that run and write nothing.
const SQLITE: Names = Names(
    ".databases .dump .exit .explain .fullschema .headers .help .indexes .mode .nullvalue .print \
     .quit .schema .separator .show .stats .tables .timer .width",
);

/// Functions of its SQL that run or write something.
const FUNCTIONS: [&str; 4] = ["edit", "load_extension", "writefile", "fts3_tokenizer"];

/// Commands of psql that run and write nothing, by their beginnings.
const PSQL: Names = Names(
    "d l q x z ? h c conninfo connect echo encoding timing pset t a f H r p set unset prompt if \
     elif else endif qecho warn sf sv du dn dt",
);

const NOT_JUDGED: &str = "one of its own commands that can run a program";

pub fn is_database(name: &str) -> bool {
    Names("sqlite3 sqlite sqlcipher duckdb psql mysql").has(name)
}

pub fn inspect(actions: &mut Actions<'_>, name: &str, call: &Call<'_>) {
    match name {
        "sqlite3" | "sqlite" | "sqlcipher" | "duckdb" => sqlite(actions, call),
        "psql" => psql(actions, call),
        "mysql" => mysql(actions, call),
        _ => {}
    }
}

/// sqlite3, whose own commands begin with a dot and can be abbreviated.
fn sqlite(actions: &mut Actions<'_>, call: &Call<'_>) {
    const VALUED: Names =
        Names("cmd init separator nullvalue newline maxsize mmap lookaside pagecache vfs heap c s");
    let (mut operands, mut value) = (Vec::new(), None::<String>);
    for word in call.arguments() {
        let text = word.text().unwrap_or_default();
        match value.take().as_deref() {
            Some("cmd" | "c" | "s") => statements(actions, &text, word),
            Some(_) => {}
            None => match text.strip_prefix('-').map(|name| name.trim_start_matches('-')) {
                // It refuses everything that this looks for.
                Some("safe") => return,
                Some("version" | "help") => return,
                Some("init" | "f" | "archive" | "ui") => {
                    return actions.opaque(word.span.clone(), "commands in a file");
                }
                Some(letters) if letters.starts_with('A') => {
                    return actions.opaque(word.span.clone(), "an option that writes files");
                }
                Some(name) => value = VALUED.has(name).then(|| name.to_owned()),
                None => operands.push(word),
            },
        }
    }
    for word in operands.iter().skip(1) {
        match word.text() {
            Some(text) => statements(actions, &text, word),
            None => return actions.unresolved(word.span.clone(), "SQL; -safe makes it harmless"),
        }
    }
    if let Some(text) = operands.first().and_then(|word| word.text()) {
        statements(actions, &text, operands[0]);
    }
    if operands.len() < 2 {
        input(actions, call, "its input; -safe makes it harmless", statements);
    }
}

/// Judges what a database shell reads from its input.
fn input(
    actions: &mut Actions<'_>,
    call: &Call<'_>,
    what: &'static str,
    judge: impl Fn(&mut Actions<'_>, &str, &Word),
) {
    match &call.input {
        Input::Text(text) => judge(actions, text, &call.words[0]),
        Input::Typed => {}
        Input::Unknown | Input::Other => actions.unresolved(call.span(), what),
    }
}

/// Refuses statements and commands of sqlite3 that can run or write something.
fn statements(actions: &mut Actions<'_>, text: &str, word: &Word) {
    let own = |line: &str| line.split_whitespace().next().map(str::to_owned);
    let mut commands = text.lines().filter_map(own).filter(|word| word.starts_with('.'));
    let is_risky = |command: String| !SQLITE.has(&command) && !command.contains('/');
    if commands.any(is_risky) || calls_function(text) {
        actions.opaque(word.span.clone(), NOT_JUDGED);
    }
    let lower = text.to_lowercase();
    if lower.contains("attach") || (lower.contains("vacuum") && lower.contains("into")) {
        actions.push(Action::Write(Word::unknown(false, word.span.clone())));
    }
}

/// Whether SQL calls one of the functions, whatever stands between its name and the parenthesis.
fn calls_function(sql: &str) -> bool {
    let sql = sql.to_lowercase();
    // What looks like a comment may be in a string, so the whole text counts, too.
    let sql = format!("{}\n{sql}", without_comments(&sql));
    FUNCTIONS.iter().any(|function| {
        sql.match_indices(function).any(|(at, _)| {
            let after = &sql[at + function.len()..];
            after.trim_start_matches(['"', '`', ']', '\'', ' ', '\t', '\r', '\n']).starts_with('(')
        })
    })
}

fn without_comments(sql: &str) -> String {
    let mut plain = String::with_capacity(sql.len());
    let mut rest = sql;
    while let Some(at) = rest.find("/*") {
        plain.push_str(&rest[..at]);
        rest = rest[at + 2..].split_once("*/").map_or("", |(_, after)| after);
    }
    plain.push_str(rest);
    let is_code = |line: &str| line.split("--").next().unwrap_or_default().to_owned();
    plain.lines().map(is_code).collect::<Vec<_>>().join("\n")
}

fn psql(actions: &mut Actions<'_>, call: &Call<'_>) {
    const SYNTAX: OptionSyntax = OptionSyntax {
        valued: "cdfFhLoPpRTUv",
        attached: "",
        flags: "",
        long_valued: Names(
            "command dbname file field-separator host log-file output pset port record-separator \
             table-attr username set variable",
        ),
        long_flags: Names(""),
        exact: Names(""),
        stops_at_operand: false,
    };
    let Ok((arguments, _)) = parse(&SYNTAX, call.arguments()) else {
        return actions.opaque(call.span(), "an option that is not spelled out");
    };
    let mut reads = true;
    for argument in arguments {
        let Argument::Option { name, value, span } = argument else { continue };
        match (name.as_str(), value) {
            ("l" | "list" | "V" | "version" | "help" | "?", _) => reads = false,
            ("c" | "command", Some(text)) => {
                reads = false;
                // It is either SQL or one command of psql.
                let own = text.text().unwrap_or_default();
                let own = if own.trim_start().starts_with('\\') { &*own } else { "" };
                meta_commands(actions, own, &text);
                programs_of_copy(actions, &text.text().unwrap_or_default(), &text);
            }
            ("f" | "file", Some(file)) => {
                reads = false;
                if actions.knowledge.has_unknown_content(&file) {
                    return actions.opaque(span, "commands in a file");
                }
            }
            ("o" | "output", Some(file)) => match file.prefix().strip_prefix('|') {
                Some(command) if file.text().is_some() => {
                    actions.run_text(&Word::known(command, span), Runner::SH);
                }
                Some(_) => return actions.opaque(span, "its output goes to a command"),
                None => actions.push(Action::Write(file)),
            },
            _ => {}
        }
    }
    if reads {
        input(actions, call, "its input; use -f for a file, or -c", meta_commands);
    }
}

/// Refuses commands of psql that can run something: `\!`, `\o |x`, `copy … program`.
fn meta_commands(actions: &mut Actions<'_>, text: &str, word: &Word) {
    let mut own = text.split('\\').skip(1).map(|after| {
        let name: String = after.chars().take_while(|c| c.is_alphanumeric()).collect();
        if name.is_empty() { after.chars().take(1).collect() } else { name }
    });
    if !own.all(|name| PSQL.has(&name) || name.starts_with('d')) {
        actions.opaque(word.span.clone(), NOT_JUDGED);
    }
    programs_of_copy(actions, text, word);
}

fn programs_of_copy(actions: &mut Actions<'_>, text: &str, word: &Word) {
    let lower = text.to_lowercase();
    if lower.contains("copy") && lower.contains("program") {
        actions.opaque(word.span.clone(), NOT_JUDGED);
    }
}

fn mysql(actions: &mut Actions<'_>, call: &Call<'_>) {
    let executes = |word: &Word| {
        let text = word.prefix();
        text.starts_with("-e") || text.starts_with("--execute") || text.starts_with("--e")
    };
    for word in call.arguments() {
        client_commands(actions, &word.text().unwrap_or_default(), word);
    }
    let asks = |word: &Word| {
        word.text().is_some_and(|text| ["--version", "-V", "--help"].contains(&&*text))
    };
    if !call.arguments().iter().any(|word| executes(word) || asks(word)) {
        input(actions, call, "its input; use -e", client_commands);
    }
}

/// Refuses commands of the mysql client that can run something: `system`, `\!`, `pager`, `source`.
fn client_commands(actions: &mut Actions<'_>, text: &str, word: &Word) {
    const COMMANDS: Names = Names("system pager edit source tee notee nopager");
    let lower = text.to_lowercase();
    let mut statements = lower.split(['\n', ';']);
    let first = |statement: &str| {
        statement
            .trim()
            .trim_start_matches("--execute=")
            .trim_start_matches("-e")
            .split_whitespace()
            .next()
            .map(str::to_owned)
    };
    let is_own = |statement: &str| first(statement).is_some_and(|first| COMMANDS.has(&first));
    let signs = ["\\!", "\\p ", "\\e", "\\.", "\\t "];
    if statements.any(is_own) || signs.iter().any(|sign| lower.contains(sign)) {
        actions.opaque(word.span.clone(), NOT_JUDGED);
    }
}
