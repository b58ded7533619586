//! A namespace of a real cluster, and what is in it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use mcpz_agent::Limits;
use mcpz_places::{Kind, Kubernetes, Opened, Opening, Place, PlaceError, PodSource, Pull};

use crate::support::{IMAGE, place, unique};

/// A namespace of its own.
pub struct Namespace {
    pub name: String,
    server: String,
    /// The variables of the user who opens places.
    pub variables: Vec<(OsString, OsString)>,
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set; tests/places/run sets it"))
}

/// The program without what debuggers need, as it is copied into every pod.
pub fn agent() -> PathBuf {
    variable("MCPZ_TEST_AGENT").into()
}

/// A new namespace, unless there is no cluster to test with.
pub fn namespace() -> Option<Namespace> {
    if std::env::var_os("MCPZ_TEST_KUBERNETES").is_none() {
        eprintln!("skipped: `tests/places/run kubernetes` starts a cluster for these");
        return None;
    }
    let name = format!("test-{}", unique());
    let (server, config) = (variable("MCPZ_KUBERNETES_SERVER"), variable("KUBECONFIG"));
    let variables = vec![("KUBECONFIG".into(), config.into())];
    let namespace = Namespace { name, server, variables };
    let body = format!(r#"{{"metadata": {{"name": "{}"}}}}"#, namespace.name);
    namespace.request("POST", "/api/v1/namespaces", &body);
    Some(namespace)
}

impl Namespace {
    /// The same with the rights of another user, who has none in the beginning.
    pub fn as_user(&self) -> Self {
        let variables = vec![("KUBECONFIG".into(), variable("MCPZ_KUBERNETES_USER").into())];
        Self { name: self.name.clone(), server: self.server.clone(), variables }
    }

    /// A pod that sees the machine's programs.
    pub fn kubernetes(&self) -> Kubernetes {
        Kubernetes {
            pull: Pull::Never,
            mounts: vec!["/usr:/usr:ro".parse().unwrap()],
            ..self.of(PodSource::Image(IMAGE.to_owned()))
        }
    }

    pub fn of(&self, source: PodSource) -> Kubernetes {
        Kubernetes { namespace: Some(self.name.clone()), ..Kubernetes::new(source) }
    }

    pub async fn open(&self, kubernetes: &Kubernetes) -> Result<Opened, PlaceError> {
        self.open_with(kubernetes, &Limits::default(), Duration::from_secs(30)).await
    }

    pub async fn open_with(
        &self,
        kubernetes: &Kubernetes,
        limits: &Limits,
        start_time: Duration,
    ) -> Result<Opened, PlaceError> {
        let children = &tokio::sync::watch::Sender::default();
        let program = agent();
        let opening = self.opening(&program, limits, children);
        let place = Place { start_time, ..place(Kind::Kubernetes(kubernetes.clone())) };
        let opened = place.open(&opening).await?;
        let path = ("PATH".into(), "/usr/bin:/bin".into());
        opened.link.prepare(vec![path], *limits);
        Ok(opened)
    }

    fn opening<'a>(
        &'a self,
        program: &'a Path,
        limits: &'a Limits,
        children: &'a tokio::sync::watch::Sender<()>,
    ) -> Opening<'a> {
        let working_directory = Path::new("/");
        Opening { program, variables: &self.variables, limits, working_directory, children }
    }

    pub async fn sweep(&self) -> usize {
        let (limits, children) = (Limits::default(), tokio::sync::watch::Sender::default());
        let program = agent();
        let opening = self.opening(&program, &limits, &children);
        self.kubernetes().sweep(&opening).await.unwrap()
    }

    /// Sends a request to the cluster as its administrator, and returns the answer.
    pub fn request(&self, method: &str, path: &str, body: &str) -> String {
        let mut curl = Command::new("curl");
        curl.args(["-sSk", "--max-time", "20", "--noproxy", "*", "-X", method]);
        curl.args(["-H", "Authorization: Bearer admin-token"]);
        // JSON is YAML too.
        curl.args(["-H", "Content-Type: application/yaml", "-H", "Accept: application/json"]);
        if !body.is_empty() {
            curl.args(["--data-binary", body]);
        }
        let output = curl.arg(format!("{}{path}", self.server)).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// Sends a request about something in the namespace.
    pub fn inside(&self, method: &str, path: &str, body: &str) -> String {
        self.request(method, &format!("/api/v1/namespaces/{}/{path}", self.name), body)
    }

    /// The pods that were made for places, as the cluster prints them.
    pub fn pods(&self) -> String {
        self.inside("GET", "pods?labelSelector=app.kubernetes.io/managed-by=mcpz", "")
    }

    /// How many those are.
    pub fn count(&self) -> usize {
        self.pods().matches("\"io.mcpz.server\": ").count()
    }

    /// Waits until a pod is in a phase.
    pub fn has_phase(&self, phase: &str) -> bool {
        self.pods().contains(&format!("\"phase\": \"{phase}\""))
    }

    /// The name of the only pod.
    pub fn pod_name(&self) -> String {
        let pods = self.pods();
        let (_, rest) = pods.split_once("\"name\": \"mcpz-").unwrap();
        format!("mcpz-{}", rest.split_once('"').unwrap().0)
    }

    /// Makes a pod that has nothing to do with places.
    pub fn make_pod(&self, name: &str, more: &str) {
        let body = format!(
            r#"{{"metadata": {{"name": "{name}"{more}}}, "spec": {{"volumes": [{{"name": "usr", "hostPath": {{"path":
                "/usr"}}}}], "terminationGracePeriodSeconds": 1, "restartPolicy": "Never", "containers": [
                {{"name": "first", "image": "{IMAGE}", "imagePullPolicy": "Never", "command": ["/busybox", "sleep",
                "1000"], "volumeMounts": [{{"name": "usr", "mountPath": "/usr"}}]}},
                {{"name": "second", "image": "{IMAGE}", "imagePullPolicy": "Never", "command": ["/busybox", "sleep",
                "1000"], "volumeMounts": [{{"name": "usr", "mountPath": "/usr"}}], "env": [{{"name": "SECOND",
                "value": "yes"}}]}}]}}}}"#
        );
        let made = self.inside("POST", "pods", &body);
        assert!(made.contains("\"uid\""), "{made}");
    }

    /// Gives a subject the role of the manual, and returns that.
    pub fn grant_role(&self, subject: &str) -> String {
        let manual = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/places.md");
        let manual = std::fs::read_to_string(manual).unwrap();
        let (_, role) = manual.split_once("kind: Role\n").unwrap();
        let (role, _) = role.split_once("---").unwrap();
        let role = format!("apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\n{role}");
        let role = role.replace("namespace: agents", &format!("namespace: {}", self.name));
        let api = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{}", self.name);
        let made = self.request("POST", &format!("{api}/roles"), &role);
        assert!(made.contains("\"uid\""), "{made}");
        let binding = format!(
            r#"{{"metadata": {{"name": "mcpz"}}, "roleRef": {{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role",
                "name": "mcpz"}}, "subjects": [{subject}]}}"#
        );
        let made = self.request("POST", &format!("{api}/rolebindings"), &binding);
        assert!(made.contains("\"uid\""), "{made}");
        role
    }

    /// Starts a pod with the service account `mcpz` and a folder of this machine at `/mcpz`. It has what the cluster's
    /// controllers would add: the account's token, the certificate, and where the cluster is.
    pub fn make_server(&self, name: &str, folder: &Path, command: &str) {
        let config = PathBuf::from(variable("KUBECONFIG"));
        let certificate = config.with_file_name("certificates/apiserver.crt");
        let certificate = std::fs::read_to_string(certificate).unwrap().replace('\n', "\\n");
        let body =
            format!(r#"{{"metadata": {{"name": "ca"}}, "data": {{"ca.crt": "{certificate}"}}}}"#);
        self.inside("POST", "configmaps", &body);
        let (_, address) = self.server.split_once("//").unwrap();
        let (host, port) = address.split_once(':').unwrap();
        let body = format!(
            r#"{{"metadata": {{"name": "{name}"}}, "spec": {{"serviceAccountName": "mcpz", "restartPolicy": "Never",
                "containers": [{{"name": "server", "image": "{IMAGE}", "imagePullPolicy": "Never", "command": {command},
                "env": [{{"name": "KUBERNETES_SERVICE_HOST", "value": "{host}"}}, {{"name": "KUBERNETES_SERVICE_PORT",
                "value": "{port}"}}], "volumeMounts": [{{"name": "usr", "mountPath": "/usr"}}, {{"name": "mcpz",
                "mountPath": "/mcpz"}}, {{"name": "account",
                "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}}]}}],
                "volumes": [{{"name": "usr", "hostPath": {{"path": "/usr"}}}}, {{"name": "mcpz", "hostPath":
                {{"path": "{}"}}}}, {{"name": "account", "projected": {{"sources": [{{"serviceAccountToken": {{"path":
                "token"}}}}, {{"configMap": {{"name": "ca"}}}}, {{"downwardAPI": {{"items": [{{"path": "namespace",
                "fieldRef": {{"fieldPath": "metadata.namespace"}}}}]}}}}]}}}}]}}}}"#,
            folder.display()
        );
        let made = self.inside("POST", "pods", &body);
        assert!(made.contains("\"uid\""), "{made}");
    }
}
