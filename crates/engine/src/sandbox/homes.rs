//! The helper that keeps the homes of a sandbox up to date (`mcpz_sandbox::serve_homes`).

use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use mcpz_agent::{Link, keep_awake};
use mcpz_runtime::spawn_blocking;
use mcpz_sandbox::{HIDE, Home, HomesLook, HomesOrder, Layout, PROTECT};
use tokio::task::AbortHandle;

pub struct Homes {
    look: Mutex<HomesLook>,
    helper: Arc<Mutex<Helper>>,
    /// Wakes the helper if somebody stops it.
    awake: AbortHandle,
    /// The caches that commands can write.
    pub writable: Vec<PathBuf>,
}

impl Drop for Homes {
    fn drop(&mut self) {
        self.awake.abort();
    }
}

/// The helper, which ends with its input. If nobody waits for that, this process reaps it like an orphan.
struct Helper {
    process: Child,
    input: Option<ChildStdin>,
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
        match Self::start_helper(program, HomesOrder { process, homes }).await {
            Ok((helper, awake, writable)) => {
                if !writable.is_empty() {
                    link.allow_writing(writable.clone()).await;
                }
                let helper = Arc::new(Mutex::new(helper));
                Some(Self { look: Mutex::new(look), helper, awake, writable })
            }
            Err(error) => {
                tracing::info!("cannot make homes of mounts: {error}");
                None
            }
        }
    }

    /// Starts the helper, which ends with this thread, and has it do its work.
    async fn start_helper(
        program: &Path,
        order: HomesOrder,
    ) -> io::Result<(Helper, AbortHandle, Vec<PathBuf>)> {
        let mut helper = Helper::start(program)?;
        let awake = tokio::spawn(keep_awake(helper.process.id() as i32)).abort_handle();
        let order = serde_json::to_string(&order)? + "\n";
        let asked = spawn_blocking(move || helper.ask(&order).map(|said| (helper, said))).await;
        match asked.map_err(io::Error::other).flatten() {
            Ok((helper, said)) if said.starts_with("ok ") => {
                Ok((helper, awake, serde_json::from_str(&said[3..])?))
            }
            answered => {
                awake.abort();
                Err(answered.map_or_else(|error| error, |(_, said)| io::Error::other(said)))
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

    /// Makes a folder read-only for commands. False if one could still write there.
    pub async fn protect(&self, folder: &Path) -> bool {
        self.order(PROTECT, folder).await
    }

    /// Hides a file from commands. False if that is not possible.
    pub async fn hide(&self, path: &Path) -> bool {
        self.order(HIDE, path).await
    }

    async fn order(&self, order: &str, path: &Path) -> bool {
        let Ok(path) = serde_json::to_string(path) else { return false };
        let (helper, order) = (self.helper.clone(), format!("{order}{path}\n"));
        let answered = spawn_blocking(move || {
            helper.lock().unwrap_or_else(PoisonError::into_inner).ask(&order)
        });
        matches!(answered.await.map_err(io::Error::other).flatten().as_deref(), Ok("ok"))
    }

    /// Ends the helper, and waits until it is gone. The sandbox stays as it is.
    pub async fn close(&self) {
        let helper = self.helper.clone();
        let end = move || helper.lock().unwrap_or_else(PoisonError::into_inner).end();
        let _ = spawn_blocking(end).await;
    }

    fn look(&self) -> std::sync::MutexGuard<'_, HomesLook> {
        // No code panics while it holds the lock.
        self.look.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Helper {
    /// Starts the process. Must be called on a thread that outlives it.
    fn start(program: &Path) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.arg("homes").env_clear().current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn()?;
        let (Some(input), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        Ok(Self { process, input: Some(input), output: BufReader::new(output) })
    }

    /// Ends it. Blocks until it is gone.
    fn end(&mut self) {
        self.input = None;
        let _ = self.process.wait();
    }

    /// Sends a line and returns the line that answers it.
    fn ask(&mut self, line: &str) -> io::Result<String> {
        self.input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?.write_all(line.as_bytes())?;
        let mut answer = String::new();
        match self.output.read_line(&mut answer)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(answer.trim_end().to_owned()),
        }
    }
}
