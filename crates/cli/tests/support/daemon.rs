//! A daemon of a place that is really there, which can be killed and started again.

use std::fs::{File, read, read_dir, read_link};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use super::kills::folder;
use super::{kill, name, parent, wait_until};

pub struct Daemon {
    pub pid: u32,
    /// The first process of the namespaces that it is in.
    pub first: u32,
    command: Vec<String>,
    environment: Vec<(String, String)>,
}

impl Daemon {
    pub fn find(is_it: impl Fn(u32) -> bool) -> Self {
        let pid = processes().find(|pid| is_it(*pid)).expect("there is such a daemon");
        let strings = |file: &str| {
            let bytes = read(format!("/proc/{pid}/{file}")).unwrap();
            let text = String::from_utf8(bytes).unwrap();
            text.split_terminator('\0').map(str::to_owned).collect::<Vec<_>>()
        };
        let pair = |entry: String| entry.split_once('=').map(|(a, b)| (a.to_owned(), b.to_owned()));
        let environment = strings("environ").into_iter().filter_map(pair).collect();
        // One that was started again has a parent outside.
        let first = wait_until("its namespace is known", || {
            let own = read_link(format!("/proc/{pid}/ns/pid")).unwrap();
            let is_inside =
                |it: &u32| read_link(format!("/proc/{it}/ns/pid")).is_ok_and(|it| it == own);
            let mut inside = processes().filter(is_inside);
            inside.find(|it| parent(*it).is_some_and(|parent| name(parent) == "unshare"))
        });
        Self { pid, first, command: strings("cmdline"), environment }
    }

    pub fn kill(&self) -> Instant {
        kill("KILL", self.pid);
        Instant::now()
    }

    /// Starts it again in the same namespaces, with the same files.
    pub fn restart(&self) {
        let folder = folder();
        let log = Path::new(&folder).join("log/again");
        let log = File::options().create(true).append(true).open(log).unwrap();
        let mut command = Command::new("nsenter");
        command.args([&format!("--target={}", self.first), "--pid", "--mount", "--net", "--"]);
        command.args(["env", "-C", &folder]).args(&self.command);
        command.env_clear().envs(self.environment.clone());
        command.process_group(0).stdin(Stdio::null());
        let mut started = command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        std::thread::spawn(move || started.wait());
    }
}

fn processes() -> impl Iterator<Item = u32> {
    let all = read_dir("/proc").unwrap().flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}
