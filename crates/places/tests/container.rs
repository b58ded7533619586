//! Containers of real engines. The engine is the one that DOCKER_HOST or CONTAINER_HOST names, which must have the
//! images of `tests/places`. Without those variables, root starts podman and Docker here.

#![cfg(feature = "container")]
#![expect(clippy::print_stderr, clippy::unwrap_used, reason = "a test may say why, and panic")]

#[path = "support/engines.rs"]
mod engines;
mod support;

use std::time::{Duration, Instant};

use mcpz_agent::{Limits, Maker, Memory, OwnerLimits, Status};
use mcpz_places::{Access, Base, Container, Opened, PlaceError, Pull};

use engines::{Engine, engines};
use support::{BUSYBOX, IMAGE, end_of, eventually, is_running, long, printed, run, start, unique};

async fn refusal(engine: &Engine, container: &Container) -> String {
    match engine.open(container).await {
        Ok(_) => panic!("{container:?} was opened"),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn commands_run_in_a_container() {
    for engine in engines() {
        let folder = tempfile::tempdir().unwrap();
        let container = engine.container();
        let opened = engine.open_in(&container, folder.path(), &Limits::default()).await.unwrap();
        assert_eq!(run(&opened, "true").await, (Status::Code(0), Vec::new()));
        assert_eq!(run(&opened, "exit 7").await.0, Status::Code(7));
        assert_eq!(printed(&opened, "echo hello").await, "hello");
        let (status, zeros) = run(&opened, "head -c 20000000 /dev/zero").await;
        assert_eq!((status, zeros.len()), (Status::Code(0), 20_000_000));
        assert!(zeros.iter().all(|byte| *byte == 0));

        // The working directory is there, and nothing else of ours that was not asked for.
        assert_eq!(printed(&opened, "pwd").await, folder.path().to_str().unwrap());
        printed(&opened, "echo written >file").await;
        assert_eq!(std::fs::read_to_string(folder.path().join("file")).unwrap(), "written\n");
        assert_ne!(run(&opened, "touch /usr/x").await.0, Status::Code(0));
        assert_eq!(
            printed(&opened, "ls /sys/class/net; grep Cap /proc/self/status").await,
            concat!(
                "lo\nCapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n",
                "CapBnd:\t0000000000000000\nCapAmb:\t0000000000000000"
            )
        );
        assert_eq!(printed(&opened, "grep NoNewPrivs /proc/self/status").await, "NoNewPrivs:\t1");

        let long = long();
        let (mut sleeping, _output) = start(&opened, &format!("sleep {long}")).await;
        eventually("it runs", || is_running(&long)).await;
        sleeping.kill(Duration::from_millis(200));
        assert!(matches!(end_of(&mut sleeping).await, Status::Signal(_)));
        eventually("the command has ended", || !is_running(&long)).await;

        assert_eq!(engine.containers(), 1);
        opened.link.close().await;
        assert_eq!(opened.ending.end().await, "");
        assert_eq!(engine.containers(), 0);
    }
}

#[tokio::test]
async fn a_new_container_is_reached_by_a_socket_where_the_engine_is_here() {
    for engine in engines() {
        let by_socket = engine.open(&engine.container()).await.unwrap();
        assert_eq!(printed(&by_socket, "echo hello").await, "hello");
        assert_eq!(sockets(&by_socket).await, "1", "{}", engine.name);
        by_socket.link.close().await;
        assert_eq!(by_socket.ending.end().await, "");
        assert_eq!(engine.containers(), 0);

        // Nothing is left in the folder, and without one, the engine carries everything.
        let (folder, mut engine) = (tempfile::tempdir().unwrap(), engine);
        let missing = folder.path().join("missing");
        for (temporary, expected) in [(folder.path(), "1"), (&missing, "0")] {
            let mut variables = engine.variables.clone();
            variables.push(("TMPDIR".into(), temporary.into()));
            let before = std::mem::replace(&mut engine.variables, variables);
            let opened = engine.open(&engine.container()).await.unwrap();
            assert_eq!(printed(&opened, "echo hello").await, "hello");
            assert_eq!(sockets(&opened).await, expected, "{}", engine.name);
            assert_eq!(folder.path().read_dir().unwrap().count(), 0);
            opened.link.close().await;
            opened.ending.end().await;
            engine.variables = before;
        }
    }
}

#[tokio::test]
async fn an_engine_that_does_not_have_the_folder_carries_the_stream() {
    for engine in engines() {
        let folder = tempfile::tempdir().unwrap();
        let address = engine.refusing(folder.path(), "/.mcpz-stream");
        let container = Container { engine: Some(address), ..engine.container() };
        let opened = engine.open(&container).await.unwrap();
        assert_eq!(printed(&opened, "echo hello").await, "hello");
        assert_eq!(sockets(&opened).await, "0", "{}", engine.name);
        assert_eq!(engine.containers(), 1);
        opened.link.close().await;
        assert_eq!(opened.ending.end().await, "");
        assert_eq!(engine.containers(), 0);
    }
}

/// How many connections of relays there are, which count as sockets of the container that they come from.
async fn sockets(opened: &Opened) -> String {
    printed(opened, "grep -c '/socket$' /proc/net/unix || true").await
}

#[tokio::test]
async fn a_container_ends_with_its_stream() {
    for engine in engines() {
        let opened = engine.open(&engine.container()).await.unwrap();
        let long = long();
        let deaf = format!("trap '' TERM; setsid sleep {long} & sleep {long}");
        let (process, started) = start(&opened, &deaf).await;
        eventually("it runs", || is_running(&long)).await;
        // The stream ends, and nobody calls `end`.
        let closed = Instant::now();
        opened.link.hang_up();
        drop((opened, process, started));
        eventually("the container is gone", || engine.containers() == 0).await;
        eventually("its processes are gone", || !is_running(&long)).await;
        assert!(closed.elapsed() < Duration::from_secs(10));
    }
}

#[test]
fn a_container_ends_when_its_server_is_gone_without_a_word() {
    for engine in engines() {
        let long = long();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let opened = engine.open(&engine.container()).await.unwrap();
            let deaf = format!("trap '' TERM; sleep {long}");
            let (process, started) = start(&opened, &deaf).await;
            eventually("it runs", || is_running(&long)).await;
            // What is not dropped sends no goodbye. The runtime closes the socket, as the kernel would.
            std::mem::forget((opened, process, started));
        });
        drop(runtime);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            eventually("the container is gone", || engine.containers() == 0).await;
            eventually("its processes are gone", || !is_running(&long)).await;
        });
    }
}

#[tokio::test]
async fn nothing_is_left_of_a_container_that_nobody_waits_for() {
    for engine in engines() {
        for wait in [2, 20, 100, 200, 300, 500] {
            let _ =
                tokio::time::timeout(Duration::from_millis(wait), engine.open(&engine.container()))
                    .await;
        }
        // The last ones may just be made.
        tokio::time::sleep(Duration::from_secs(2)).await;
        eventually("no container is left", || engine.containers() == 0).await;
    }
}

#[tokio::test]
async fn a_container_that_was_there_stays() {
    for engine in engines() {
        let name = format!("there-{}", unique());
        let body = format!(
            r#"{{"Image": "{IMAGE}", "Entrypoint": ["/busybox", "sleep", "1000"], "User": "0",
                "HostConfig": {{"NetworkMode": "none", "Binds": ["/usr:/usr:ro"]}}}}"#
        );
        engine.request("POST", &format!("/containers/create?name={name}"), &body);
        let container = Container::new(Base::Container(name.clone()));
        let error = refusal(&engine, &container).await;
        assert_eq!(error, format!("the container `{name}` does not run; start it first"));
        engine.request("POST", &format!("/containers/{name}/start"), "");
        for user in [None, Some("dev".to_owned())] {
            let expected = user.as_deref().unwrap_or("root").to_owned();
            let opened = engine.open(&Container { user, ..container.clone() }).await.unwrap();
            assert_eq!(printed(&opened, "/busybox id -un").await, expected);
            let long = long();
            let (_process, _started) = start(&opened, &format!("sleep {long}")).await;
            eventually("it runs", || is_running(&long)).await;
            opened.link.close().await;
            assert_eq!(opened.ending.end().await, "");
            assert!(!is_running(&long));
        }
        let state = engine.request("GET", &format!("/containers/{name}/json"), "");
        assert!(state.contains("\"Running\":true"), "{state}");
        let processes = engine.request("GET", &format!("/containers/{name}/top"), "");
        assert!(!processes.contains("mcpz-agent"), "{processes}");
        engine.request("DELETE", &format!("/containers/{name}?force=1"), "");
    }
}

#[tokio::test]
async fn what_goes_wrong_is_told_with_what_to_do() {
    for engine in engines() {
        let container = engine.container();
        let image =
            |name: &str, pull| Container { pull, ..Container::new(Base::Image(name.to_owned())) };
        let cases = [
            (
                image("localhost/none:1", Pull::Never),
                "no image `localhost/none:1`; pull or load it",
            ),
            (
                image("localhost/none:1", Pull::Missing),
                "cannot pull the image `localhost/none:1`: ",
            ),
            (
                Container::new(Base::Container("nobody".to_owned())),
                "there is no container `nobody`",
            ),
            (image(BUSYBOX, Pull::Never), "name a statically linked agent with --place-agent"),
            (Container { runtime: Some("none".to_owned()), ..container.clone() }, "`runtime`"),
            (
                Container { user: Some("nobody-here".to_owned()), ..container.clone() },
                "nobody-here",
            ),
            (Container { network: Some("no-net".to_owned()), ..container.clone() }, "no-net"),
            (Container { capabilities: vec!["FLY".to_owned()], ..container.clone() }, "FLY"),
            (
                Container { engine: Some("/nowhere.sock".to_owned()), ..container.clone() },
                "is it running?",
            ),
        ];
        // Podman creates a folder that is missing.
        let mounts = ["/usr:/usr:ro", "/nowhere:/x"].map(|mount| mount.parse().unwrap()).to_vec();
        let missing = (
            Container { mounts, ..container.clone() },
            "a mount must be a path on the engine's machine",
        );
        for (container, told) in cases.into_iter().chain(engine.is_docker().then_some(missing)) {
            let error = refusal(&engine, &container).await;
            eprintln!("{error}");
            assert!(error.contains(told), "{error}");
        }
        assert_eq!(engine.containers(), 0);
    }
}

#[tokio::test]
async fn a_container_is_made_as_the_settings_say() {
    for engine in engines() {
        let per_owner =
            OwnerLimits { memory: Memory::Bytes(64 << 20), ..Limits::default().per_owner };
        let limits = Limits { per_owner, ..Limits::default() };
        let folder = tempfile::tempdir().unwrap();
        let container = Container {
            read_only: true,
            directory: Some(Access::ReadOnly),
            user: Some("dev".to_owned()),
            labels: vec![("com.example.team".to_owned(), "blue".to_owned())],
            ..engine.container()
        };
        let opened = engine.open_in(&container, folder.path(), &limits).await.unwrap();
        assert_eq!(printed(&opened, "id -un").await, "dev");
        assert_eq!(printed(&opened, "cp /busybox /tmp && /tmp/busybox echo ran").await, "ran");
        assert_eq!(
            printed(&opened, "touch x /home/dev/x /x /.mcpz/x 2>/dev/null || echo no").await,
            "no"
        );
        assert!(engine.request("GET", "/containers/json", "").contains("com.example.team"));
        // More than all may use together.
        let hungry = "head -c 99000000 /dev/zero | tail -c 99000000 >/dev/null";
        assert_ne!(run(&opened, hungry).await.0, Status::Code(0));
        opened.link.close().await;
        opened.ending.end().await;
        assert_eq!(engine.containers(), 0);
        assert!(engine.request("GET", "/volumes", "").contains("\"Volumes\":[]"));
    }
}

#[tokio::test]
async fn what_a_killed_server_left_is_swept() {
    for engine in engines() {
        let own = Maker::own().unwrap().to_string();
        let gone = format!("{}.1", own.rsplit_once('.').unwrap().0);
        for server in [&own, &gone] {
            let body = format!(
                r#"{{"Image": "{BUSYBOX}", "Entrypoint": ["/bin/true"], "Labels": {{"io.mcpz.server": "{server}"}},
                    "HostConfig": {{"NetworkMode": "none"}}}}"#
            );
            engine.request("POST", "/containers/create", &body);
        }
        assert_eq!(engine.containers(), 2);
        assert_eq!(engine.sweep(&engine.container()).await, 1);
        assert_eq!(engine.sweep(&engine.container()).await, 0);
        assert_eq!(engine.containers(), 1);
    }
}

#[tokio::test]
async fn a_runtime_is_used_or_refused() {
    for engine in engines() {
        let runtime = Some("runsc".to_owned());
        let container = Container { runtime, ..engine.container() };
        let podman = engine.variable("MCPZ_PODMAN_RUNSC");
        if !engine.is_docker() {
            let error = engine.open(&container).await.err().unwrap();
            let said = "containers with `runc`, and its API cannot choose `runsc`";
            assert!(
                matches!(error, PlaceError::Container(_)) && error.to_string().contains(said),
                "{error}"
            );
        }
        if podman.is_none() && engine.variable("MCPZ_DOCKER_RUNSC").is_none() {
            eprintln!("skipped: gVisor is not here");
            continue;
        }
        let opened = engine.open(&Container { engine: podman, ..container }).await.unwrap();
        assert!(printed(&opened, "dmesg").await.contains("gVisor"));
        opened.link.close().await;
        opened.ending.end().await;
        assert_eq!(engine.containers(), 0);
    }
}
