//! The helper that keeps the homes of a sandbox up to date (`mcpz_sandbox::serve_homes`).

use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use mcpz_agent::Link;
use mcpz_runtime::spawn_blocking;
use mcpz_sandbox::{Home, HomesLook, HomesOrder, Layout};

pub struct Homes {
    look: Mutex<HomesLook>,
    helper: Arc<Mutex<Helper>>,
}

/// The helper's input and output. It ends with its input, and then this process reaps it like an orphan.
struct Helper {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Homes {
    /// Replaces the homes in a sandbox in which no command has run yet. `None` if there are none, or if this machine
    /// cannot do it: then the secrets in them are covered one by one.
    pub async fn start(program: &Path, link: &Link, layout: &Layout) -> Option<Self> {
        let homes: Vec<Home> =
            layout.homes.iter().filter(|home| !home.secrets.is_empty()).cloned().collect();
        let process = link.confined_process()?;
        if homes.is_empty() {
            return None;
        }
        // Before the helper looks, so that nothing is missed.
        let mut look = HomesLook::new(&homes);
        look.has_changed();
        let (program, order) = (program.to_owned(), HomesOrder { process, homes });
        let started = spawn_blocking(move || Helper::start(&program, &order)).await;
        match started.map_err(io::Error::other).flatten() {
            Ok(helper) => {
                Some(Self { look: Mutex::new(look), helper: Arc::new(Mutex::new(helper)) })
            }
            Err(error) => {
                tracing::info!("cannot make homes of mounts: {error}");
                None
            }
        }
    }

    /// Mounts what is new or was replaced. False if the helper is gone.
    pub async fn renew(&self) -> bool {
        if !self.look().has_changed() {
            return true;
        }
        let helper = self.helper.clone();
        let answered = spawn_blocking(move || {
            let mut helper = helper.lock().unwrap_or_else(PoisonError::into_inner);
            helper.ask("renew\n")
        });
        match answered.await.map_err(io::Error::other).flatten().as_deref() {
            Ok("ok") => true,
            // Something is too new to be mounted.
            Ok("later") => {
                self.look().forget();
                true
            }
            _ => false,
        }
    }

    fn look(&self) -> std::sync::MutexGuard<'_, HomesLook> {
        // No code panics while it holds the lock.
        self.look.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Helper {
    fn start(program: &Path, order: &HomesOrder) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.arg("homes").env_clear().current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let mut helper = Self { input, output: BufReader::new(output) };
        let order = serde_json::to_string(order)? + "\n";
        match helper.ask(&order)?.as_str() {
            "ok" => Ok(helper),
            said => Err(io::Error::other(said.to_owned())),
        }
    }

    /// Sends a line and returns the line that answers it.
    fn ask(&mut self, line: &str) -> io::Result<String> {
        self.input.write_all(line.as_bytes())?;
        let mut answer = String::new();
        match self.output.read_line(&mut answer)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(answer.trim_end().to_owned()),
        }
    }
}
