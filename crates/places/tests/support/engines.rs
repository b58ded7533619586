//! Real container engines.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use mcpz_agent::Limits;
use mcpz_places::{Base, Container, Kind, Opened, Opening, PlaceError};
use tempfile::TempDir;

use crate::support::{IMAGE, place};

/// An engine of its own, which ends with it; or the one that the caller's variables name.
pub struct Engine {
    pub name: &'static str,
    folder: TempDir,
    pub variables: Vec<(OsString, OsString)>,
    is_ours: bool,
}

impl Drop for Engine {
    fn drop(&mut self) {
        if self.is_ours {
            script("down", self.name, self.folder.path());
        }
    }
}

fn script(name: &str, engine: &str, folder: &Path) -> bool {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/places").join(name);
    let status = Command::new(script).arg(engine).arg(folder).status();
    status.is_ok_and(|status| status.success())
}

/// The engines to test with. Says so if there are none.
pub fn engines() -> Vec<Engine> {
    if std::env::var_os("MCPZ_TEST_ENGINES").is_none() {
        eprintln!("skipped: tests/places/run starts engines for these");
        return Vec::new();
    }
    if !agent().is_file() {
        eprintln!("skipped: {} is missing; build it first", agent().display());
        return Vec::new();
    }
    let names = ["DOCKER_HOST", "CONTAINER_HOST", "MCPZ_DOCKER_RUNSC", "MCPZ_PODMAN_RUNSC"];
    let given = names.map(|name| Some((OsString::from(name), std::env::var_os(name)?)));
    let given: Vec<_> = given.into_iter().flatten().collect();
    if !given.is_empty() {
        let folder = tempfile::tempdir().unwrap();
        return vec![Engine { name: "given", folder, variables: given, is_ours: false }];
    }
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can start container engines");
        return Vec::new();
    }
    ["podman", "docker"].into_iter().filter_map(Engine::start).collect()
}

impl Engine {
    fn start(name: &'static str) -> Option<Self> {
        let folder = tempfile::Builder::new().prefix("mcpz-").tempdir().unwrap();
        let mut engine = Self { name, folder, variables: Vec::new(), is_ours: true };
        let path = engine.folder.path().to_owned();
        if !script("up", name, &path) {
            eprintln!("skipped: {name} cannot be started here");
            return None;
        }
        let settings = std::fs::read_to_string(path.join("env")).unwrap();
        let settings = settings.lines().filter_map(|line| line.split_once('='));
        engine.variables = settings.map(|(name, value)| (name.into(), value.into())).collect();
        Some(engine)
    }

    pub fn variable(&self, name: &str) -> Option<String> {
        let found = self.variables.iter().find(|(it, _)| it == name)?;
        Some(found.1.to_str().unwrap().to_owned())
    }

    pub fn is_docker(&self) -> bool {
        self.variable("DOCKER_HOST").is_some()
    }

    /// A container that sees the machine's programs, and a working directory.
    pub fn container(&self) -> Container {
        Container {
            mounts: vec!["/usr:/usr:ro".parse().unwrap()],
            ..Container::new(Base::Image(IMAGE.to_owned()))
        }
    }

    pub async fn open(&self, container: &Container) -> Result<Opened, PlaceError> {
        self.open_in(container, Path::new("/tmp"), &Limits::default()).await
    }

    pub async fn open_in(
        &self,
        container: &Container,
        working_directory: &Path,
        limits: &Limits,
    ) -> Result<Opened, PlaceError> {
        let (program, variables) = (&agent(), &self.variables[..]);
        let children = &tokio::sync::watch::Sender::default();
        let opening = Opening { program, variables, limits, working_directory, children };
        let opened = place(Kind::Container(container.clone())).open(&opening).await?;
        let path = ("PATH".into(), "/usr/bin:/bin".into());
        opened.link.prepare(vec![path], *limits);
        Ok(opened)
    }

    pub async fn sweep(&self, container: &Container) -> usize {
        let opening = Opening {
            program: &agent(),
            variables: &self.variables,
            limits: &Limits::default(),
            working_directory: Path::new("/"),
            children: &tokio::sync::watch::Sender::default(),
        };
        container.sweep(&opening).await.unwrap()
    }

    /// Sends a request to the engine, and returns its whole answer.
    pub fn request(&self, method: &str, path: &str, body: &str) -> String {
        let host = self.variable("DOCKER_HOST").or(self.variable("CONTAINER_HOST")).unwrap();
        let mut socket = UnixStream::connect(host.strip_prefix("unix://").unwrap()).unwrap();
        let length = body.len();
        write!(
            socket,
            "{method} {path} HTTP/1.0\r\nHost: engine\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        answer
    }

    /// The address of an engine that refuses to create what has a certain text, and passes all else on to this one.
    pub fn refusing(&self, folder: &Path, text: &'static str) -> String {
        let address = folder.join("engine.sock");
        let listener = UnixListener::bind(&address).unwrap();
        let host = self.variable("DOCKER_HOST").or(self.variable("CONTAINER_HOST")).unwrap();
        let host = host.strip_prefix("unix://").unwrap().to_owned();
        std::thread::spawn(move || {
            while let Ok((mut client, _)) = listener.accept() {
                let mut request = vec![0; 64 << 10];
                // A request to create something is sent at once.
                let length = client.read(&mut request).unwrap();
                let shown = String::from_utf8_lossy(&request[..length]);
                if shown.contains("/containers/create") && shown.contains(text) {
                    let answer =
                        "HTTP/1.1 400 No\r\nContent-Length: 21\r\n\r\n{\"message\":\"no such\"}";
                    client.write_all(answer.as_bytes()).unwrap();
                    continue;
                }
                let mut engine = UnixStream::connect(&host).unwrap();
                engine.write_all(&request[..length]).unwrap();
                pass_on(client.try_clone().unwrap(), engine.try_clone().unwrap());
                pass_on(engine, client);
            }
        });
        format!("unix://{}", address.display())
    }

    /// How many containers of ours there are.
    pub fn containers(&self) -> usize {
        let filter = "%7B%22label%22%3A%5B%22io.mcpz.server%22%5D%7D";
        let listed = self.request("GET", &format!("/containers/json?all=1&filters={filter}"), "");
        listed.matches("\"io.mcpz.server\"").count()
    }
}

fn pass_on(mut from: UnixStream, mut to: UnixStream) {
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
}

/// The program as it was built last.
pub fn agent() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().and_then(Path::parent).unwrap().join("mcpz")
}
