//! What is known of single programs and builtins: what they run, write and change besides themselves.
//!
//! Each file takes a [`Call`] and lists its [`Action`]s; it refuses nothing itself. An unknown option where
//! it decides what runs makes the call opaque.
//!
//! | to add | edit |
//! |---|---|
//! | a wrapper, which runs the command after it (`sudo`, `timeout`) | a row in `wrappers/table.rs` |
//! | a program with options that run or write something (`tar`, `curl`) | a row in `risky_options/table.rs` |
//! | a program that always runs others (`gdb`) | `risky_options/signs.rs` |
//! | a program that does if an argument begins in some way (`openssl -engine`) | a row in `beginnings.rs` |
//! | a program that writes its operands (`cp`) | a row in `writers.rs` |
//! | a program with options that write files, which unknown words may be (`git log`) | a name in `hidden_options.rs` |
//! | an interpreter (`python`) | a row in `interpreters.rs` |
//! | a program with a language or syntax of its own (`awk`, `git`) | a file, and a line in [`actions`] |

mod arguments;
mod awk;
mod beginnings;
mod builtins;
mod compilers;
mod databases;
mod editors;
mod find;
mod git;
mod hidden_options;
mod interpreters;
mod make;
mod packages;
mod risky_options;
mod sed;
mod shells;
mod ssh;
mod tmux;
mod wrappers;
mod writers;
mod xargs;

use crate::action::{Action, Actions};
use crate::call::Call;
use crate::identity;
use crate::knowledge::Knowledge;
use crate::paths::Target;

pub use builtins::sets_only_checks;
pub use databases::is_database;
pub use editors::is_editor;
pub use interpreters::{
    is_debugging, is_information, is_inline_option, is_interpreter, opens_programs, runs_anything,
    runs_operands_too,
};
pub use shells::is_shell;
pub use wrappers::is_wrapper;

/// All that a command does besides running its own program, in order.
pub fn actions(name: &str, call: &Call<'_>, knowledge: &Knowledge) -> Vec<Action> {
    let mut actions = Actions::new(knowledge);
    inspect(&mut actions, name, call);
    actions.into_list()
}

fn inspect(actions: &mut Actions<'_>, name: &str, call: &Call<'_>) {
    let name = identity::program(name);
    let path = call.words[0].literal().filter(|path| path.contains('/'));
    if path.is_some() && actions.knowledge.target(&call.words[0]) != Target::File {
        return actions.opaque(call.words[0].span.clone(), "a program with another name");
    }
    let found = call.words[0]
        .literal()
        .filter(|name| name.contains('/') || actions.knowledge.changes_path());
    if found.is_some_and(|path| actions.knowledge.has_written(&path)) {
        return shells::run_written(actions, call);
    }
    hidden_options::inspect(actions, name, call);
    match name {
        _ if is_shell(name) => shells::inspect(actions, name, call),
        "find" => find::find(actions, call),
        "fd" => find::fd(actions, call),
        "xargs" => xargs::xargs(actions, call),
        "parallel" => xargs::parallel(actions, call),
        "git" => git::inspect(actions, call),
        "sed" => sed::inspect(actions, call),
        "awk" | "gawk" | "mawk" | "nawk" => awk::inspect(actions, call),
        "ssh" | "scp" | "sftp" => ssh::inspect(actions, name, call),
        "tmux" => tmux::inspect(actions, call),
        _ => {
            wrappers::inspect(actions, name, call);
            builtins::inspect(actions, name, call);
            risky_options::inspect(actions, name, call);
            interpreters::inspect(actions, name, call);
        }
    }
}
