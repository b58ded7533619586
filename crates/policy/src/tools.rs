//! What commands run besides themselves: wrappers, shells, builtins, and programs with an option for
//! it.
//!
//! Each part takes a [`Call`] that is allowed by its name, and judges whatever it starts. An option
//! that is not known in a place where it decides what runs is refused.

mod arguments;
mod awk;
mod builtins;
mod find;
mod git;
mod guards;
mod interpreters;
mod names;
mod remote;
mod sed;
mod shells;
mod wrappers;

use crate::judge::{Call, Judge, Ruling};

pub use interpreters::runs_anything;

/// Judges what a command runs.
pub fn look(judge: &mut Judge<'_>, name: &str, call: &Call<'_>) -> Ruling {
    let written = call.words[0].literal().filter(|path| path.contains('/'));
    if written.is_some_and(|path| judge.knowledge.has_written(&path)) {
        return judge.hides(call.words[0].span.clone(), "the script wrote it itself");
    }
    match name {
        "sh" | "bash" | "dash" | "ash" | "rbash" => shells::look(judge, name, call),
        "zsh" | "fish" | "ksh" | "mksh" | "csh" | "tcsh" | "pwsh" | "nu" | "elvish" | "xonsh" => {
            judge.hides(call.span(), "only sh and bash are understood")
        }
        "find" | "gfind" => find::find(judge, call),
        "fd" | "fdfind" => find::fd(judge, call),
        "xargs" | "gxargs" => find::xargs(judge, call),
        "parallel" => find::parallel(judge, call),
        "git" => git::look(judge, call),
        "sed" | "gsed" => sed::look(judge, call),
        "awk" | "gawk" | "mawk" | "nawk" => awk::look(judge, call),
        "ssh" | "scp" | "sftp" => remote::look(judge, name, call),
        "tmux" => remote::tmux(judge, call),
        _ => {
            wrappers::look(judge, name, call)?;
            builtins::look(judge, name, call)?;
            guards::look(judge, name, call)?;
            interpreters::look(judge, name, call)
        }
    }
}
