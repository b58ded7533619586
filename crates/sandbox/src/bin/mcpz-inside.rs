//! Runs one command in a sandbox, for tests and experiments.
//!
//!     mcpz-inside [OPTIONS] COMMAND [ARGUMENT …]
//!
//! Runs itself again inside the namespaces, with the permissions in place of the options.

#![expect(unsafe_code, reason = "descriptors are closed by a system call")]

use std::error::Error;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use mcpz_sandbox::{
    Bubblewrap, Mode, Network, Permissions, Restrictions, SERVICE_VARIABLES, Support, Version,
    View, trial,
};

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            complain(error.as_ref());
            ExitCode::from(125)
        }
    }
}

#[expect(clippy::print_stderr, reason = "this is where errors reach people")]
fn complain(error: &dyn Error) {
    eprint!("mcpz-inside: {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        eprint!(": {error}");
        cause = error.source();
    }
    eprintln!();
}

fn run() -> Result<ExitCode, Box<dyn Error>> {
    let mut words = std::env::args_os().skip(1).peekable();
    let mut view = View::new(Mode::Workspace, std::env::current_dir()?);
    let (mut alone, mut probe, mut print) = (None, false, false);
    while let Some(word) = words.next_if(|word| word.to_string_lossy().starts_with("--")) {
        let mut value = || words.next().ok_or("an option lacks its value");
        match word.to_str() {
            Some("--restricted") => {
                let permissions: Permissions = serde_json::from_slice(value()?.as_encoded_bytes())?;
                return Err(restricted(&permissions, words));
            }
            Some("--workspace") => view.mode = Mode::Workspace,
            Some("--trial") => {
                let permissions: Permissions = serde_json::from_slice(value()?.as_encoded_bytes())?;
                let holes = trial(&permissions)?;
                return match holes.is_empty() {
                    true => Ok(ExitCode::SUCCESS),
                    false => Err(format!("not held: {holes:?}").into()),
                };
            }
            Some("--read-only") => view.mode = Mode::ReadOnly,
            Some("--net") => view.network = Network::On,
            Some("--directory") => view.directory = value()?.into(),
            Some("--write") => view.write_dirs.push(value()?.into()),
            Some("--hide") => view.deny_read.push(value()?.into()),
            Some("--home") => view.homes.push(value()?.into()),
            Some("--unprotected") => view.unprotected.push(value()?.into()),
            Some("--alone") => alone = Some(PathBuf::from(value()?)),
            Some("--probe") => probe = true,
            Some("--print") => print = true,
            _ => return Err(format!("unknown option {}", word.display()).into()),
        }
    }
    let mut layout = view.survey()?;
    if let Some(tmp) = alone {
        return Err(restricted(&layout.permissions_without_mounts(&tmp)?, words));
    }
    let own = std::env::current_exe()?;
    let permissions: OsString = serde_json::to_string(&layout.permissions())?.into();
    if probe {
        let trial = ["--trial".into(), permissions];
        report(&Support::probe(Some("/usr/bin/bwrap".as_ref()), &mut layout, (&own, &trial)));
        return Ok(ExitCode::SUCCESS);
    }
    let bubblewrap = Bubblewrap { program: "bwrap".into(), version: Version::WITHOUT_NESTING };
    if print {
        show(&bubblewrap.options(&layout, &own));
        return Ok(ExitCode::SUCCESS);
    }
    let arguments: Vec<_> = ["--restricted".into(), permissions].into_iter().chain(words).collect();
    let mut status = bubblewrap.command(&layout, &own, &arguments)?.command.status()?;
    while !status.success() && layout.uncover_gone() {
        status = bubblewrap.command(&layout, &own, &arguments)?.command.status()?;
    }
    Ok(ExitCode::from(status.code().unwrap_or(126) as u8))
}

/// Restricts this process and executes the command. Returns only on failure.
fn restricted(
    permissions: &Permissions,
    mut words: impl Iterator<Item = OsString>,
) -> Box<dyn Error> {
    let restrictions = match Restrictions::prepare(permissions) {
        Ok(restrictions) => restrictions,
        Err(error) => return error.into(),
    };
    let Some(program) = words.next() else { return "no command".into() };
    let mut command = Command::new(program);
    command.args(words);
    SERVICE_VARIABLES.iter().for_each(|name| {
        command.env_remove(name);
    });
    close_inherited();
    let done = restrictions
        .restrict_agent()
        .and_then(|()| restrictions.restrict_command().map_err(io::Error::from_raw_os_error));
    match done {
        Ok(()) => command.exec().into(),
        Err(error) => error.into(),
    }
}

/// Keeps unknown inherited descriptors from the command, as an agent does.
fn close_inherited() {
    const CLOSE_ON_EXEC: u32 = 4;
    // SAFETY: only sets a flag on descriptors; none is closed.
    unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, CLOSE_ON_EXEC) };
}

#[expect(clippy::print_stdout, reason = "this is a program for people")]
fn report(support: &Support) {
    println!(
        "{:?}: Landlock {:?}, bubblewrap {:?}",
        support.protection(),
        support.landlock,
        support.bubblewrap
    );
    support.obstacles.iter().for_each(|obstacle| println!("{obstacle}"));
}

#[expect(clippy::print_stdout, reason = "this is a program for people")]
fn show(arguments: &[OsString]) {
    arguments.iter().for_each(|argument| println!("{}", argument.display()));
}
