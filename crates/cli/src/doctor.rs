//! `mcpz doctor`: what this machine offers to a server, and how to fix what it lacks.

use std::error::Error;
use std::fs::DirBuilder;
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use mcpz_agent::AgentCgroups;
use mcpz_engine::{Closing, Engine};
use mcpz_runtime::{Later, with_causes};
use mcpz_sandbox::{Mode, Protection, Support, limit_caches};
use serde::Serialize;

use crate::args::DoctorFlags;
use crate::cache;
use crate::sandbox::{self, SandboxError};
use crate::settings::{self, Settings};
use crate::setup::Setup;
use crate::{colours, environment, process};

/// Shells that models write commands for.
const SHELLS: &[&str] = &["bash", "sh", "zsh", "fish"];

/// Programs that many commands use.
const TOOLS: &[&str] = &["git", "python3", "node", "curl", "make", "rg", "jq"];

/// Less room than this for spilled output is worth a warning.
const LITTLE_ROOM: u64 = 1 << 30;

/// How good a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Mark {
    Good,
    /// It works, but less well than it could.
    Fair,
    Bad,
}

#[derive(Debug, Serialize)]
struct Finding {
    about: &'static str,
    mark: Mark,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn good(&mut self, about: &'static str, found: impl Into<String>) {
        self.0.push(Finding { about, mark: Mark::Good, found: found.into(), fix: None });
    }

    fn fair(&mut self, about: &'static str, found: impl Into<String>, fix: impl Into<String>) {
        let (found, fix) = (found.into(), Some(fix.into()));
        self.0.push(Finding { about, mark: Mark::Fair, found, fix });
    }

    fn bad(&mut self, about: &'static str, found: impl Into<String>, fix: impl Into<String>) {
        let (found, fix) = (found.into(), Some(fix.into()));
        self.0.push(Finding { about, mark: Mark::Bad, found, fix });
    }
}

pub fn run(flags: &DoctorFlags) -> Result<ExitCode, Box<dyn Error>> {
    let mut findings = Findings::default();
    findings.good("mcpz", format!("version {}, {}", env!("CARGO_PKG_VERSION"), kernel()));
    let mut in_place = false;
    if let Some(setup) = check_settings(flags, &mut findings) {
        check_state(&setup, &mut findings);
        check_lock(&setup, &mut findings);
        check_sandbox(&setup, &mut findings);
        check_limits(&setup, &mut findings);
        in_place = check_place(setup, &mut findings)?;
    }
    // The programs of this machine are not those of a place.
    if !in_place {
        check_programs(&mut findings);
    }
    check_prompts(&mut findings);
    let failed = findings.0.iter().any(|finding| finding.mark == Mark::Bad);
    match flags.json {
        true => writeln!(io::stdout(), "{}", serde_json::to_string_pretty(&findings.0)?)?,
        false => print(&findings.0)?,
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn print(findings: &[Finding]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    let coloured = colours::enabled(&stdout);
    for Finding { about, mark, found, fix } in findings {
        let (sign, colour) = match mark {
            Mark::Good => ("ok", 32),
            Mark::Fair => ("--", 33),
            Mark::Bad => ("!!", 31),
        };
        match coloured {
            true => write!(stdout, "\x1b[{colour}m{sign}\x1b[0m")?,
            false => write!(stdout, "{sign}")?,
        }
        writeln!(stdout, " {about:<10} {found}")?;
        if let Some(fix) = fix {
            writeln!(stdout, "   {:<10} → {fix}", "")?;
        }
    }
    Ok(())
}

fn kernel() -> String {
    let name = rustix::system::uname();
    format!("{} {}", name.sysname().to_string_lossy(), name.release().to_string_lossy())
}

fn check_settings(flags: &DoctorFlags, findings: &mut Findings) -> Option<Setup> {
    let flags = &flags.shell.settings;
    match settings::file_path(flags.startup.config()) {
        Some(path) => findings.good("settings", path.display().to_string()),
        None => findings.good("settings", "no configuration file; using defaults"),
    }
    match load(flags) {
        Ok(setup) => {
            findings.good("shell", setup.engine.environment.shell.display().to_string());
            findings.good("directory", setup.engine.working_directory.display().to_string());
            Some(setup)
        }
        Err(error) => {
            findings.bad(
                "settings",
                with_causes(error.as_ref()),
                "no server can start with these settings; fix the file or the flags",
            );
            None
        }
    }
}

fn load(flags: &Settings) -> Result<Setup, Box<dyn Error>> {
    Ok(Setup::new(&Settings::load(flags)?, None)?)
}

/// Whether the folders we write to can be written.
fn check_state(setup: &Setup, findings: &mut Findings) {
    let audit = &setup.engine.audit.folder;
    match try_writing(audit) {
        Ok(()) => findings.good("records", format!("{} is writable", audit.display())),
        Err(error) => findings.bad(
            "records",
            format!("{} is not writable: {error}", audit.display()),
            "no command runs without a record; make it writable, or set folder in [audit]",
        ),
    }
    match environment::jobs_folder() {
        Some(jobs) => match try_writing(&jobs) {
            Ok(()) => findings.good("jobs", format!("{} is writable", jobs.display())),
            Err(error) => findings.fair(
                "jobs",
                format!("{} is not writable: {error}", jobs.display()),
                "detached jobs and `mcpz jobs` need it; make it writable, or set XDG_STATE_HOME",
            ),
        },
        None => findings.fair(
            "jobs",
            "no folder for detached jobs",
            "set HOME or XDG_STATE_HOME for the server",
        ),
    }
    let spill = &setup.engine.spill.parent;
    let room = rustix::fs::statvfs(spill).map_or(0, |found| found.f_bavail * found.f_frsize);
    let gigabytes = room as f64 / 1e9;
    let found = format!("{} has {gigabytes:.1} GB free", spill.display());
    match (try_writing(spill), room >= LITTLE_ROOM) {
        (Ok(()), true) => findings.good("output", found),
        (Ok(()), false) => findings.fair(
            "output",
            found,
            "long output goes there, and is lost if it does not fit; free some space, or set TMPDIR",
        ),
        (Err(error), _) => findings.fair(
            "output",
            format!("{} is not writable: {error}", spill.display()),
            "output over 64 KiB would be lost; set TMPDIR for the server",
        ),
    }
}

/// Creates and removes a file in a folder, which is created if it does not exist.
fn try_writing(folder: &Path) -> io::Result<()> {
    // Private, as the server would create it.
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let path = folder.join(format!(".mcpz-doctor-{}", std::process::id()));
    std::fs::write(&path, "")?;
    std::fs::remove_file(path)
}

/// Whether the kernel can hold commands to the policy.
fn check_lock(setup: &Setup, findings: &mut Findings) {
    if setup.engine.lock {
        return findings.good("policy", "the kernel holds commands to it (lock)");
    }
    if let Some(error) = &setup.no_lock {
        findings.fair(
            "policy",
            format!("the kernel cannot hold commands to it (lock): {error}"),
            "use Linux 5.19 or later, and a container that allows the `seccomp` call",
        );
    }
}

/// How much of a sandbox this machine can enforce: of the one in the settings, or of the one to recommend.
fn check_sandbox(setup: &Setup, findings: &mut Findings) {
    if let Some(folder) = environment::cache_folder() {
        let usage = cache::described(limit_caches(&folder, u64::MAX));
        findings.good("caches", format!("{} for sandboxes: {usage}", folder.display()));
    }
    let wanted = setup.sandbox.mode().is_some();
    let mode = setup.sandbox.mode().unwrap_or(Mode::Workspace);
    match sandbox::probe(&setup.sandbox.view(mode, "off", &setup.engine)) {
        Ok((support, _)) => {
            report_support(&support, wanted, findings);
            if wanted && let Err(error) = setup.sandbox.confining(&setup.engine) {
                findings.bad(
                    "sandbox",
                    with_causes(&error),
                    "the server does not start with these settings",
                );
            }
        }
        Err(SandboxError::View(error)) => {
            let fix = "start the server in a project folder (-w), not in a folder above it";
            match wanted {
                true => findings.bad("sandbox", error.to_string(), fix),
                false => findings.fair("sandbox", error.to_string(), fix),
            }
        }
        Err(error @ SandboxError::Trial(_)) => {
            let fix = "try it in a project folder (-w), which you can write to";
            findings.fair("sandbox", with_causes(&error), fix);
        }
        Err(error) => findings.fair("sandbox", with_causes(&error), "fix what the error says"),
    }
}

fn report_support(support: &Support, wanted: bool, findings: &mut Findings) {
    let landlock = support.landlock.map(|abi| format!("Landlock {abi:?}"));
    let bwrap = support.bubblewrap.as_ref().map(|ring| format!("bubblewrap {}", ring.version));
    let parts: Vec<_> = landlock.into_iter().chain(bwrap).chain(["seccomp".to_owned()]).collect();
    let parts = parts.join(", ");
    match support.protection() {
        Protection::Both => {
            let advice = match wanted {
                true => "",
                false => "; off, turn it on with --sandbox workspace",
            };
            findings.good("sandbox", format!("fully supported ({parts}){advice}"));
        }
        Protection::RestrictionsOnly => {
            let fix =
                "commands would have no network and could see other processes; for full support:";
            findings.fair("sandbox", format!("partly supported ({parts})"), fix);
        }
        Protection::Nothing => {
            findings.fair("sandbox", "not supported on this machine", "missing:");
        }
    }
    for obstacle in &support.obstacles {
        findings.fair("sandbox", obstacle.cause.clone(), obstacle.fix.clone());
    }
}

/// Whether limits can apply to all processes of a command together.
fn check_limits(setup: &Setup, findings: &mut Findings) {
    let paths = AgentCgroups::create(&setup.engine.limits).paths();
    match paths.first() {
        Some(path) => {
            let parent = path.parent().unwrap_or(path).display();
            findings
                .good("limits", format!("apply to whole commands, through cgroups in {parent}"));
        }
        None => findings.fair(
            "limits",
            "cannot create a cgroup: memory is limited per process, and only if `memory` is set",
            "run the server as a systemd service with Delegate=yes and DelegateSubgroup=server",
        ),
    }
}

/// Whether commands run in a place. Tries to make it.
fn check_place(setup: Setup, findings: &mut Findings) -> io::Result<bool> {
    let Some(Ok(Some(place))) = setup.engine.places.as_ref().map(|places| places.find(None)) else {
        return Ok(false);
    };
    let (name, kind) = (place.name.clone(), place.description());
    let later = Later::default();
    let runtime = process::runtime(&later)?;
    let began = Instant::now();
    let tried = runtime.block_on(async {
        let engine = Engine::new(setup.engine, later);
        let tried = engine.try_place().await;
        engine.close(Closing::ClientLeft).await;
        tried
    });
    let seconds = began.elapsed().as_secs_f64();
    match tried {
        Some(Err(error)) => findings.bad(
            "place",
            format!("{name} ({kind}): {}", error.chain()),
            "commands there fail until this is fixed",
        ),
        _ => {
            findings.good("place", format!("{name} ({kind}) was made and ended in {seconds:.1} s"))
        }
    }
    Ok(true)
}

fn check_programs(findings: &mut Findings) {
    let folders = environment::path_folders();
    let has = |name: &&&str| folders.iter().any(|folder| folder.join(name).is_file());
    let (found, missing): (Vec<_>, Vec<_>) = SHELLS.iter().chain(TOOLS).partition(has);
    let list = |names: &[&&str]| names.iter().map(|name| **name).collect::<Vec<_>>().join(", ");
    findings.good("programs", list(&found));
    let (home, is_short) = (environment::home(), folders.len() <= 4);
    let local = home.map(|home| home.join(".local/bin"));
    let lacks = |folder: &PathBuf| folder.is_dir() && !folders.contains(folder);
    if !missing.is_empty() {
        findings.good("programs", format!("not on PATH: {}", list(&missing)));
    }
    if is_short && local.as_ref().is_some_and(lacks) {
        findings.fair(
            "PATH",
            format!("{} folders, without ~/.local/bin", folders.len()),
            "servers started by a desktop program have a short PATH; see --login-env",
        );
    }
}

/// Whether we can see that a program waits for input.
fn check_prompts(findings: &mut Findings) {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    match scope.trim() {
        "2" | "3" if !rustix::process::geteuid().is_root() => findings.fair(
            "prompts",
            "the kernel does not show whether a program waits for input",
            "run sysctl kernel.yama.ptrace_scope=1 to detect commands that wait for input",
        ),
        _ => findings.good("prompts", "programs that wait for input are detected"),
    }
}
