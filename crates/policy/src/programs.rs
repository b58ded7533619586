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
mod interpreters;
mod risky_options;
mod sed;
mod shells;
mod ssh;
mod wrappers;

use crate::judge::{Call, Judge, Ruling};

pub use interpreters::runs_anything;

/// Judges what a command runs.
pub fn inspect(judge: &mut Judge<'_>, name: &str, call: &Call<'_>) -> Ruling {
    let written = call.words[0].literal().filter(|path| path.contains('/'));
    if written.is_some_and(|path| judge.knowledge.has_written(&path)) {
        return judge.opaque(call.words[0].span.clone(), "the script wrote it itself");
    }
    match name {
        "sh" | "bash" | "dash" | "ash" | "rbash" => shells::inspect(judge, name, call),
        "zsh" | "fish" | "ksh" | "mksh" | "csh" | "tcsh" | "pwsh" | "nu" | "elvish" | "xonsh" => {
            judge.opaque(call.span(), "only sh and bash are understood")
        }
        "find" | "gfind" => find::find(judge, call),
        "fd" | "fdfind" => find::fd(judge, call),
        "xargs" | "gxargs" => find::xargs(judge, call),
        "parallel" => find::parallel(judge, call),
        "git" => git::inspect(judge, call),
        "sed" | "gsed" => sed::inspect(judge, call),
        "awk" | "gawk" | "mawk" | "nawk" => awk::inspect(judge, call),
        "ssh" | "scp" | "sftp" => ssh::inspect(judge, name, call),
        "tmux" => ssh::tmux(judge, call),
        _ => {
            wrappers::inspect(judge, name, call)?;
            builtins::inspect(judge, name, call)?;
            risky_options::inspect(judge, name, call)?;
            interpreters::inspect(judge, name, call)
        }
    }
}
