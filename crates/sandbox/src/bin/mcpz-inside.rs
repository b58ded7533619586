//! Runs one command inside both rings: for tests, and for looking around.
//!
//!     mcpz-inside [OPTIONS] COMMAND [ARGUMENT …]
//!
//! Calls itself inside the ring, with the terms of the seal in the place of options.

#![expect(unsafe_code, reason = "descriptors are closed by a system call")]

use std::error::Error;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use mcpz_sandbox::{Ground, Mode, Network, Ring, Seal, Terms, Version, View, WAYS_OUT, trial};

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
            Some("--sealed") => {
                let terms: Terms = serde_json::from_slice(value()?.as_encoded_bytes())?;
                return Err(sealed(&terms, words));
            }
            Some("--workspace") => view.mode = Mode::Workspace,
            Some("--trial") => {
                let terms: Terms = serde_json::from_slice(value()?.as_encoded_bytes())?;
                let holes = trial(&terms)?;
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
        return Err(sealed(&layout.terms_alone(&tmp)?, words));
    }
    let _placeholders = layout.occupy()?;
    let own = std::env::current_exe()?;
    let terms: OsString = serde_json::to_string(&layout.terms())?.into();
    if probe {
        let trial = ["--trial".into(), terms];
        report(&Ground::probe(Some("/usr/bin/bwrap".as_ref()), &mut layout, (&own, &trial)));
        return Ok(ExitCode::SUCCESS);
    }
    let ring = Ring { bwrap: "bwrap".into(), version: Version::WITHOUT_NESTING };
    if print {
        show(&ring.options(&layout, &own));
        return Ok(ExitCode::SUCCESS);
    }
    let arguments: Vec<_> = ["--sealed".into(), terms].into_iter().chain(words).collect();
    let mut status = ring.enter(&layout, &own, &arguments)?.command.status()?;
    while !status.success() && layout.uncover_gone() {
        status = ring.enter(&layout, &own, &arguments)?.command.status()?;
    }
    Ok(ExitCode::from(status.code().unwrap_or(126) as u8))
}

/// Becomes the command; returns why not.
fn sealed(terms: &Terms, mut words: impl Iterator<Item = OsString>) -> Box<dyn Error> {
    let seal = match Seal::prepare(terms) {
        Ok(seal) => seal,
        Err(error) => return error.into(),
    };
    let Some(program) = words.next() else { return "no command".into() };
    let mut command = Command::new(program);
    command.args(words);
    WAYS_OUT.iter().for_each(|name| {
        command.env_remove(name);
    });
    close_inherited();
    let sealed = seal.enclose().and_then(|()| seal.apply().map_err(io::Error::from_raw_os_error));
    match sealed {
        Ok(()) => command.exec().into(),
        Err(error) => error.into(),
    }
}

/// Neither we nor `bwrap` know what inherited descriptors are for. An agent does the same.
fn close_inherited() {
    const CLOSE_ON_EXEC: u32 = 4;
    // SAFETY: only sets a flag on descriptors; none is closed.
    unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, CLOSE_ON_EXEC) };
}

#[expect(clippy::print_stdout, reason = "this is a program for people")]
fn report(ground: &Ground) {
    println!("{:?}: Landlock {:?}, ring {:?}", ground.rung(), ground.landlock, ground.ring);
    ground.obstacles.iter().for_each(|obstacle| println!("{obstacle}"));
}

#[expect(clippy::print_stdout, reason = "this is a program for people")]
fn show(arguments: &[OsString]) {
    arguments.iter().for_each(|argument| println!("{}", argument.display()));
}
