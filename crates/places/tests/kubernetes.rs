//! Pods of a real cluster, which `tests/places/run kubernetes` starts.

#![cfg(feature = "kubernetes")]
#![expect(clippy::print_stderr, clippy::unwrap_used, reason = "a test may say why, and panic")]

#[path = "support/cluster.rs"]
mod cluster;
mod support;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use mcpz_agent::{Limits, Maker, Memory, OwnerLimits, ProcessEvent, Status};
use mcpz_places::{Kubernetes, PodSource, Pull};

use cluster::{Namespace, agent, namespace};
use support::{BUSYBOX, IMAGE, end_of, eventually, is_running, long, printed, run, start};

async fn refusal(namespace: &Namespace, kubernetes: &Kubernetes) -> String {
    let start_time = Duration::from_secs(10);
    match namespace.open_with(kubernetes, &Limits::default(), start_time).await {
        Ok(_) => panic!("{kubernetes:?} was opened"),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn commands_run_in_a_pod() {
    let Some(namespace) = namespace() else { return };
    let opened = namespace.open(&namespace.kubernetes()).await.unwrap();
    assert_eq!(run(&opened, "true").await, (Status::Code(0), Vec::new()));
    assert_eq!(run(&opened, "exit 7").await.0, Status::Code(7));
    let (status, zeros) = run(&opened, "head -c 20000000 /dev/zero").await;
    assert_eq!((status, zeros.len()), (Status::Code(0), 20_000_000));
    assert!(zeros.iter().all(|byte| *byte == 0));
    assert_eq!(
        printed(&opened, "grep -e Cap -e NoNew /proc/self/status").await,
        concat!(
            "CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n",
            "CapBnd:\t0000000000000000\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1"
        )
    );
    assert_ne!(run(&opened, "ls /var/run/secrets").await.0, Status::Code(0));
    // Nothing that commands print is in the logs of the cluster.
    assert_eq!(printed(&opened, "echo in private").await, "in private");
    let log = namespace.inside("GET", &format!("pods/{}/log", namespace.pod_name()), "");
    assert_eq!(log, "");

    let long = long();
    let (mut sleeping, _output) = start(&opened, &format!("sleep {long}")).await;
    eventually("the command runs", || is_running(&long)).await;
    sleeping.kill(Duration::from_millis(200));
    assert!(matches!(end_of(&mut sleeping).await, Status::Signal(_)));
    eventually("the command has ended", || !is_running(&long)).await;

    assert_eq!(namespace.count(), 1);
    opened.link.close().await;
    assert_eq!(opened.ending.end().await, "");
    eventually("the pod is gone", || namespace.count() == 0).await;
}

#[tokio::test]
async fn a_pod_ends_with_its_stream() {
    let Some(namespace) = namespace() else { return };
    let opened = namespace.open(&namespace.kubernetes()).await.unwrap();
    let long = long();
    let deaf = format!("trap '' TERM; setsid sleep {long} & sleep {long}");
    let (process, started) = start(&opened, &deaf).await;
    eventually("the command runs", || is_running(&long)).await;
    // The stream ends, and nobody calls `end`.
    let closed = Instant::now();
    opened.link.hang_up();
    drop((opened, process, started));
    eventually("its processes are gone", || !is_running(&long)).await;
    eprintln!("gone after {:?}", closed.elapsed());
    assert!(closed.elapsed() < Duration::from_secs(10), "{:?}", closed.elapsed());
    eventually("the pod is gone", || namespace.count() == 0).await;
}

#[test]
fn everything_in_a_pod_ends_when_its_server_is_gone_without_a_word() {
    let Some(namespace) = namespace() else { return };
    let (long, new) =
        (long(), || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap());
    let runtime = new();
    runtime.block_on(async {
        let opened = namespace.open(&namespace.kubernetes()).await.unwrap();
        let deaf = format!("trap '' TERM; setsid sleep {long} & sleep {long}");
        let (process, started) = start(&opened, &deaf).await;
        eventually("the command runs", || is_running(&long)).await;
        // What is not dropped sends no goodbye. The runtime closes the socket, as the kernel would.
        std::mem::forget((opened, process, started));
    });
    let closed = Instant::now();
    drop(runtime);
    new().block_on(async {
        eventually("its processes are gone", || !is_running(&long)).await;
        eprintln!("gone after {:?}", closed.elapsed());
        assert!(closed.elapsed() < Duration::from_secs(10), "{:?}", closed.elapsed());
        eventually("the pod has ended", || namespace.has_phase("Succeeded")).await;
        // Its server lives, as far as others can tell.
        assert_eq!(namespace.sweep().await, 0);
    });
}

#[tokio::test]
async fn what_a_killed_server_left_is_swept() {
    let Some(namespace) = namespace() else { return };
    let (folder, long) = (tempfile::tempdir().unwrap(), long());
    let config = folder.path().join("config.toml");
    let place = format!(
        "[places.pod]\nkind = \"kubernetes\"\nimage = \"{IMAGE}\"\npull = \"never\"\nmounts = [\"/usr:/usr:ro\"]\n\
         namespace = \"{}\"\n[shell_tool]\nplace = \"pod\"\n",
        namespace.name
    );
    std::fs::write(&config, place).unwrap();
    let call = r#"{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "execute_command",
        "arguments": {"command": "setsid sleep LONG & sleep LONG"}}}"#;
    let call = call.replace('\n', " ").replace("LONG", &long);
    let hello = r#"{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
        "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}"#;
    let ready = r#"{"jsonrpc": "2.0", "method": "notifications/initialized"}"#;
    let input = folder.path().join("input");
    std::fs::write(&input, format!("{}\n{ready}\n{call}\n", hello.replace('\n', " "))).unwrap();
    let mut server = Command::new("sh");
    server.args(["-c", "{ cat \"$1\"; sleep 100; } | exec \"$0\" server shell --config \"$2\""]);
    server.arg(agent()).arg(&input).arg(&config).stdout(Stdio::null()).stderr(Stdio::null());
    let mut server = server.spawn().unwrap();
    eventually("the command runs", || is_running(&long)).await;
    let servers = processes_with(config.to_str().unwrap());
    assert!(!servers.is_empty());
    let killed = Instant::now();
    for pid in servers {
        assert!(Command::new("kill").args(["-9", &pid]).status().unwrap().success());
    }
    eventually("its processes are gone", || !is_running(&long)).await;
    eprintln!("gone after {:?}", killed.elapsed());
    assert!(killed.elapsed() < Duration::from_secs(10), "{:?}", killed.elapsed());
    eventually("the pod has ended", || namespace.has_phase("Succeeded")).await;
    assert_eq!(namespace.sweep().await, 1);
    eventually("the pod is gone", || namespace.count() == 0).await;
    let _ = server.kill();
    let _ = server.wait();
}

/// The processes that have this among their arguments.
fn processes_with(argument: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let found = processes.filter(|process| {
        let arguments = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        let mut arguments = arguments.split(|byte| *byte == 0);
        arguments.any(|it| it == b"server") && arguments.any(|it| it == argument.as_bytes())
    });
    found.map(|process| process.file_name().into_string().unwrap()).collect()
}

#[tokio::test]
async fn pods_of_other_servers_are_left_alone() {
    let Some(namespace) = namespace() else { return };
    let own = Maker::own().unwrap().to_string();
    let gone = format!("{}.1", own.rsplit_once('.').unwrap().0);
    let made = r#", "labels": {"app.kubernetes.io/managed-by": "mcpz"}, "annotations": {"io.mcpz.server": "X"}"#;
    namespace.make_pod("own", &made.replace('X', &own));
    namespace.make_pod("gone", &made.replace('X', &gone));
    namespace.make_pod("elsewhere", &made.replace('X', "another.1.2.3"));
    namespace.make_pod("foreign", r#", "labels": {"app.kubernetes.io/managed-by": "mcpz"}"#);
    assert_eq!(namespace.sweep().await, 1);
    assert_eq!(namespace.sweep().await, 0);
    eventually("one is gone", || !namespace.pods().contains("\"name\": \"gone\"")).await;
    for name in ["own", "elsewhere", "foreign"] {
        assert!(namespace.pods().contains(&format!("\"name\": \"{name}\"")), "{name}");
        namespace.inside("DELETE", &format!("pods/{name}"), "");
    }
}

#[tokio::test]
async fn nothing_is_left_of_a_pod_that_nobody_waits_for() {
    let Some(namespace) = namespace() else { return };
    let kubernetes = namespace.kubernetes();
    for wait in [2, 100, 500, 1000, 2000] {
        let opening = namespace.open(&kubernetes);
        let _ = tokio::time::timeout(Duration::from_millis(wait), opening).await;
    }
    // The last ones may just be made.
    tokio::time::sleep(Duration::from_secs(4)).await;
    eventually("no pod is left", || namespace.count() == 0).await;
}

#[tokio::test]
async fn a_pod_that_was_there_stays() {
    let Some(namespace) = namespace() else { return };
    namespace.make_pod("there", "");
    let runs = || namespace.inside("GET", "pods/there", "").contains("\"phase\": \"Running\"");
    eventually("it runs", runs).await;
    for container in [None, Some("second".to_owned())] {
        let expected = if container.is_some() { "yes" } else { "" };
        let source = PodSource::Pod { name: "there".to_owned(), container };
        let opened = namespace.open(&namespace.of(source)).await.unwrap();
        assert_eq!(
            printed(&opened, "tr '\\0' '\\n' </proc/1/environ | sed -n s/^SECOND=//p").await,
            expected
        );
        let long = long();
        let (_process, _started) = start(&opened, &format!("sleep {long}")).await;
        eventually("the command runs", || is_running(&long)).await;
        opened.link.close().await;
        assert_eq!(opened.ending.end().await, "");
        eventually("its processes are gone", || !is_running(&long)).await;
    }
    assert!(runs());
    namespace.inside("DELETE", "pods/there", "");
}

#[tokio::test]
async fn commands_are_lost_with_a_pod_that_is_deleted() {
    let Some(namespace) = namespace() else { return };
    let mut opened = namespace.open(&namespace.kubernetes()).await.unwrap();
    let long = long();
    let (mut process, _started) = start(&opened, &format!("sleep {long}")).await;
    let pod = namespace.pod_name();
    namespace.inside("DELETE", &format!("pods/{pod}"), "");
    let end = tokio::time::timeout(Duration::from_secs(20), process.next()).await.unwrap();
    assert!(matches!(end, ProcessEvent::Lost), "{end:?}");
    eventually("its processes are gone", || !is_running(&long)).await;
    assert_eq!(opened.ending.reason().await.as_deref(), Some("somebody deleted the pod"));
    opened.link.close().await;
    opened.ending.end().await;
}

#[tokio::test]
async fn why_a_pod_ended_is_told() {
    let Some(namespace) = namespace() else { return };
    // Long enough to copy the agent in, on a busy machine.
    let deadline = Some(Duration::from_secs(20));
    let kubernetes = Kubernetes { deadline, ..namespace.kubernetes() };
    let mut opened = namespace.open(&kubernetes).await.unwrap();
    let (mut process, _started) = start(&opened, "sleep 1000").await;
    let end = tokio::time::timeout(Duration::from_secs(60), process.next()).await.unwrap();
    assert!(matches!(end, ProcessEvent::Lost), "{end:?}");
    let reason = opened.ending.reason().await.unwrap();
    assert!(reason.starts_with("the pod has ended: DeadlineExceeded"), "{reason}");
    opened.link.close().await;
    opened.ending.end().await;
}

#[tokio::test]
async fn a_runtime_class_isolates_a_pod() {
    let Some(namespace) = namespace() else { return };
    if !namespace.request("GET", "/apis/node.k8s.io/v1/runtimeclasses", "").contains("\"gvisor\"") {
        eprintln!("skipped: gVisor cannot be installed here");
        return;
    }
    let runtime_class = Some("gvisor".to_owned());
    let kubernetes = Kubernetes { runtime_class, ..namespace.kubernetes() };
    let opened = namespace.open(&kubernetes).await.unwrap();
    assert!(printed(&opened, "dmesg").await.contains("Starting gVisor"));
    let (status, zeros) = run(&opened, "head -c 20000000 /dev/zero").await;
    assert_eq!((status, zeros.len()), (Status::Code(0), 20_000_000));
    opened.link.close().await;
    assert_eq!(opened.ending.end().await, "");
    eventually("the pod is gone", || namespace.count() == 0).await;
}

#[tokio::test]
async fn a_pod_is_made_as_the_settings_say() {
    let Some(namespace) = namespace() else { return };
    let per_owner = OwnerLimits { memory: Memory::Bytes(128 << 20), ..Limits::default().per_owner };
    let limits = Limits { per_owner, ..Limits::default() };
    let kubernetes = Kubernetes {
        read_only: true,
        user: "1000:1000".parse().ok(),
        labels: vec![("example.com/team".to_owned(), "blue".to_owned())],
        deadline: Some(Duration::from_secs(600)),
        ..namespace.kubernetes()
    };
    let opened = namespace.open_with(&kubernetes, &limits, Duration::from_secs(30)).await.unwrap();
    assert_eq!(printed(&opened, "id -un").await, "dev");
    assert_eq!(printed(&opened, "cp /busybox /tmp && /tmp/busybox echo ran").await, "ran");
    assert_eq!(printed(&opened, "touch /home/dev/x /x 2>/dev/null || echo no").await, "no");
    let pods = namespace.pods();
    assert!(pods.contains("\"example.com/team\": \"blue\""), "{pods}");
    assert!(pods.contains("\"activeDeadlineSeconds\": 600"), "{pods}");
    // More than all may use together.
    let hungry = "head -c 199000000 /dev/zero | tail -c 199000000 >/dev/null";
    assert_ne!(run(&opened, hungry).await.0, Status::Code(0));
    opened.link.close().await;
    opened.ending.end().await;
}

#[tokio::test]
async fn what_goes_wrong_is_told_with_what_to_do() {
    let Some(namespace) = namespace() else { return };
    let image =
        |name: &str, pull| Kubernetes { pull, ..namespace.of(PodSource::Image(name.to_owned())) };
    let pod = |name: &str| namespace.of(PodSource::Pod { name: name.to_owned(), container: None });
    let own = namespace.kubernetes();
    let selector = vec![("disk".to_owned(), "none".to_owned())];
    for (kubernetes, told) in [
        (image("localhost/none:1", Pull::Never), "load it on the nodes"),
        (image("127.0.0.1:1/none:1", Pull::Missing), "`image_pull_secret`"),
        (image("NOT AN IMAGE", Pull::Missing), "is its name right?"),
        (
            image("localhost/pause:1", Pull::Never),
            "name a statically linked agent with --place-agent",
        ),
        (image(BUSYBOX, Pull::Never), "name a statically linked agent with --place-agent"),
        // There is no shell without /usr.
        (image(IMAGE, Pull::Never), "it needs `sh`"),
        (pod("nobody"), "there is no pod `nobody` in the namespace"),
        (
            Kubernetes { runtime_class: Some("none".to_owned()), ..own.clone() },
            "the cluster has no RuntimeClass `none`",
        ),
        (
            Kubernetes { node_selector: selector, ..own.clone() },
            "did not start within 9 seconds: Unschedulable",
        ),
        (
            Kubernetes { context: Some("none".to_owned()), ..own.clone() },
            "cannot use the kubeconfig",
        ),
        (
            Kubernetes { mounts: vec!["none:/x".parse().unwrap()], ..own.clone() },
            "persistentvolumeclaim \"none\" not found",
        ),
        (
            Kubernetes { namespace: Some("nowhere".to_owned()), ..own.clone() },
            "\"nowhere\" not found",
        ),
    ] {
        let error = refusal(&namespace, &kubernetes).await;
        eprintln!("{error}");
        assert!(error.contains(told), "{error}");
    }
    let mut nowhere = namespace.as_user();
    nowhere.variables = vec![("KUBECONFIG".into(), "/nowhere".into())];
    let error = refusal(&nowhere, &own).await;
    assert!(error.contains("there is no /nowhere"), "{error}");
    eventually("no pod is left", || namespace.count() == 0).await;
}

#[tokio::test]
async fn a_quota_that_is_used_up_is_told() {
    let Some(namespace) = namespace() else { return };
    let quota = r#"{"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}, "status": {"hard": {"pods": "0"},
        "used": {"pods": "0"}}}"#;
    namespace.inside("POST", "resourcequotas", quota);
    // What a controller would do, which is not here.
    let set = namespace.inside("PUT", "resourcequotas/none/status", quota);
    assert!(set.contains("\"used\""), "{set}");
    let mut error = String::new();
    for _ in 0..20 {
        match namespace.open(&namespace.kubernetes()).await {
            Ok(opened) => drop(opened),
            Err(refused) => {
                error = refused.to_string();
                break;
            }
        }
    }
    assert!(error.contains("is used up: "), "{error}");
}

#[tokio::test]
async fn the_role_of_the_manual_is_enough_and_what_it_lacks_is_told() {
    let Some(namespace) = namespace() else { return };
    let user = namespace.as_user();
    let error = refusal(&user, &user.kubernetes()).await;
    let told = format!("does not let this user create pods in the namespace `{}`", namespace.name);
    assert!(error.contains(&told), "{error}");

    let role = namespace.grant_role(r#"{"kind": "User", "name": "user"}"#);
    let opened = user.open(&user.kubernetes()).await.unwrap();
    assert_eq!(printed(&opened, "echo hello").await, "hello");
    assert_eq!(user.sweep().await, 0);
    opened.link.close().await;
    assert_eq!(opened.ending.end().await, "");
    eventually("the pod is gone", || namespace.count() == 0).await;

    // Without the right to start something in a pod, nothing is left of it.
    let less = role.replace("pods/exec", "pods/log");
    let api = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{}", namespace.name);
    namespace.request("PUT", &format!("{api}/roles/mcpz"), &less);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let error = refusal(&user, &user.kubernetes()).await;
    assert!(error.contains("pods/exec in the namespace"), "{error}");
    eventually("the pod is gone", || namespace.count() == 0).await;
}

#[tokio::test]
async fn a_server_in_a_pod_needs_no_more_than_its_service_account_and_owns_its_pods() {
    let Some(namespace) = namespace() else { return };
    let account = r#"{"kind": "ServiceAccount", "name": "mcpz"}"#;
    namespace.grant_role(account);
    namespace.inside("POST", "serviceaccounts", r#"{"metadata": {"name": "mcpz"}}"#);
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let place = format!(
        "[places.pod]\nkind = \"kubernetes\"\nimage = \"{IMAGE}\"\npull = \"never\"\nmounts = [\"/usr:/usr:ro\"]\n\
         directory = \"/\"\n[shell_tool]\nplace = \"pod\"\n"
    );
    std::fs::write(folder.path().join("config.toml"), place).unwrap();
    std::fs::copy(agent(), folder.path().join("mcpz")).unwrap();
    let command = r#"["/mcpz/mcpz", "call", "execute_command", "command=sleep 3; echo from a pod", "--config",
        "/mcpz/config.toml"]"#;
    namespace.make_server("server", folder.path(), command);
    eventually("it has made a pod", || namespace.count() == 1).await;
    let uid = |pod: &str| {
        let (_, rest) = pod.split_once("\"uid\": \"").unwrap();
        rest.split_once('"').unwrap().0.to_owned()
    };
    let server = uid(&namespace.inside("GET", "pods/server", ""));
    let pods = namespace.pods();
    let (_, owners) = pods.split_once("\"ownerReferences\": [").expect("it has an owner");
    assert_eq!(uid(owners), server, "{pods}");
    let has_ended =
        || namespace.inside("GET", "pods/server", "").contains("\"phase\": \"Succeeded\"");
    eventually("it has ended", has_ended).await;
    assert_eq!(namespace.inside("GET", "pods/server/log", ""), "from a pod\n");
    assert_eq!(namespace.count(), 0);
    namespace.inside("DELETE", "pods/server", "");
}
