//! Finds the cluster as `kubectl` would, and tells what its refusals mean.
//!
//!     KUBECONFIG ─▶ ~/.kube/config ─▶ the service account of the pod that we run in

use std::error::Error as _;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::client::{ClientBuilder, ConfigExt};
use kube::config::{ExecInteractiveMode, KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, Error};
use mcpz_runtime::{spawn_blocking, with_causes};
use tokio::runtime::Handle;
use tower::BoxError;
use tower::util::MapErrLayer;

use super::Kubernetes;
use crate::kubernetes_error::KubernetesError;

/// How long it may take until the cluster takes a connection.
const CONNECT_TIME: Duration = Duration::from_secs(20);

/// One namespace of a cluster.
#[derive(Clone)]
pub struct Cluster {
    pub pods: Api<Pod>,
    pub namespace: String,
    address: String,
    /// The pod that we run in, if that is in the same namespace.
    pub own_pod: Option<String>,
}

/// Where to look for a cluster.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    Files(Vec<PathBuf>),
    /// The name of our own pod.
    Inside(Option<String>),
}

impl Cluster {
    pub async fn find(
        kubernetes: &Kubernetes,
        variables: &[(OsString, OsString)],
    ) -> Result<Self, KubernetesError> {
        let (context, namespace) = (kubernetes.context.clone(), kubernetes.namespace.clone());
        let (variables, runtime) = (variables.to_vec(), Handle::current());
        // Reads files, and may start a program that gets credentials.
        let found = spawn_blocking(move || {
            let _entered = runtime.enter();
            let found = find(&variables)?;
            let config = runtime.block_on(config(&found, context))?;
            Self::new(config, namespace, found)
        });
        let interrupted = |_| KubernetesError::Config { said: "it was not read".to_owned() };
        found.await.map_err(interrupted)?
    }

    fn new(
        config: Config,
        namespace: Option<String>,
        found: Found,
    ) -> Result<Self, KubernetesError> {
        let address = config.cluster_url.to_string();
        let own_namespace = config.default_namespace.clone();
        let namespace = namespace.unwrap_or_else(|| own_namespace.clone());
        let own_pod = match found {
            Found::Inside(name) => name.filter(|_| namespace == own_namespace),
            Found::Files(_) => None,
        };
        let failed = |error: Error| KubernetesError::Config { said: with_causes(&error) };
        let client = client(config).map_err(failed)?;
        Ok(Self { pods: Api::namespaced(client, &namespace), namespace, address, own_pod })
    }

    /// The pod that we run in, as the owner of those that we make: they are removed with it.
    pub async fn owner(&self) -> Option<OwnerReference> {
        let pod = self.pods.get_opt(self.own_pod.as_deref()?).await.ok()??;
        Some(OwnerReference {
            api_version: "v1".to_owned(),
            kind: "Pod".to_owned(),
            name: pod.metadata.name?,
            uid: pod.metadata.uid?,
            ..Default::default()
        })
    }

    /// What it means that the cluster could not do something.
    pub fn refused(&self, action: &'static str, error: Error) -> KubernetesError {
        let namespace = self.namespace.clone();
        match error {
            Error::Api(status) => {
                let said = status.message.clone();
                match (status.code, forbidden(&said)) {
                    (401, _) => KubernetesError::Unauthorized { said },
                    (403, Some((verb, resource))) => {
                        KubernetesError::Forbidden { verb, resource, namespace }
                    }
                    (403, None) if said.contains("quota") => {
                        KubernetesError::Quota { namespace, said }
                    }
                    (403, None) if said.contains("RuntimeClass") => {
                        let name = said.split('"').rev().nth(1).unwrap_or_default().to_owned();
                        KubernetesError::RuntimeClass { name }
                    }
                    _ => KubernetesError::Refused { action, said },
                }
            }
            Error::Service(_) | Error::HyperError(_) => KubernetesError::Unreachable {
                address: self.address.clone(),
                said: last_cause(&error),
            },
            other => KubernetesError::Refused { action, said: with_causes(&other) },
        }
    }
}

/// A client whose connections do not hold back what is short: that would cost 40 ms for each command. Through a proxy,
/// it is as the library makes it.
fn client(config: Config) -> Result<Client, Error> {
    if config.proxy_url.is_some() {
        return Client::try_from(config);
    }
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT_TIME));
    let connector = config.rustls_https_connector_with_connector(connector)?;
    let http = HttpClient::builder(TokioExecutor::new()).build(connector);
    let builder = ClientBuilder::new(http, config.default_namespace.clone())
        .with_layer(&MapErrLayer::new(BoxError::from))
        .with_layer(&config.extra_headers_layer()?);
    let base = config.base_uri_layer();
    Ok(match config.auth_layer()? {
        Some(auth) => builder.with_layer(&auth).with_layer(&base).build(),
        None => builder.with_layer(&base).build(),
    })
}

/// Whether the cluster does not know what it was asked about.
pub fn is_missing(error: &Error) -> bool {
    matches!(error, Error::Api(status) if status.code == 404)
}

/// What the error at the bottom says: those above it only tell which layers it went through.
fn last_cause(error: &Error) -> String {
    let mut cause = error.source();
    let mut said = error.to_string();
    while let Some(error) = cause {
        said = error.to_string();
        cause = error.source();
    }
    said
}

/// The verb and the resource in `… cannot create resource "pods/exec" in API group …`.
fn forbidden(said: &str) -> Option<(String, String)> {
    let (verb, rest) = said.split_once(" cannot ")?.1.split_once(" resource \"")?;
    let (resource, _) = rest.split_once('"')?;
    Some((verb.to_owned(), resource.to_owned()))
}

fn find(variables: &[(OsString, OsString)]) -> Result<Found, KubernetesError> {
    let variable = |name: &str| {
        let found = variables.iter().rev().find(|(it, _)| it == name)?;
        Some(&found.1).filter(|value| !value.is_empty())
    };
    if let Some(paths) = variable("KUBECONFIG") {
        let paths = paths.to_string_lossy();
        let paths = paths.split(':').filter(|path| !path.is_empty()).map(PathBuf::from);
        return Ok(Found::Files(paths.collect()));
    }
    let usual = variable("HOME").map(|home| Path::new(home).join(".kube/config"));
    match usual {
        Some(path) if path.is_file() => Ok(Found::Files(vec![path])),
        _ if variable("KUBERNETES_SERVICE_HOST").is_some() => Ok(Found::Inside(
            variable("HOSTNAME").and_then(|name| name.to_str().map(str::to_owned)),
        )),
        usual => {
            let tried = usual.unwrap_or_else(|| "~/.kube/config".into()).display().to_string();
            Err(KubernetesError::NoCluster { tried })
        }
    }
}

async fn config(found: &Found, context: Option<String>) -> Result<Config, KubernetesError> {
    let failed = |said| KubernetesError::Config { said };
    let Found::Files(paths) = found else {
        return Config::incluster().map_err(|error| failed(with_causes(&error)));
    };
    let mut merged = Kubeconfig::default();
    // As for kubectl, files that are missing do not matter if another one is there.
    let mut there = paths.iter().filter(|path| path.is_file()).peekable();
    if there.peek().is_none() {
        let tried = paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>();
        return Err(KubernetesError::NoCluster { tried: tried.join(", ") });
    }
    for path in there {
        let read = Kubeconfig::read_from(path).and_then(|next| merged.merge(next));
        merged = read.map_err(|error| failed(with_causes(&error)))?;
    }
    let options = KubeConfigOptions { context, ..Default::default() };
    let mut config = Config::from_custom_kubeconfig(merged, &options)
        .await
        .map_err(|error| failed(with_causes(&error)))?;
    // Nobody is there to answer a question, and our standard input belongs to a client.
    if let Some(exec) = &mut config.auth_info.exec {
        exec.interactive_mode = Some(ExecInteractiveMode::Never);
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variables: &[(&str, &str)]) -> Result<Found, KubernetesError> {
        let variables: Vec<_> =
            variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
        find(&variables)
    }

    #[test]
    fn a_cluster_is_where_kubectl_would_look() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().to_str().unwrap();
        let inside = ("KUBERNETES_SERVICE_HOST", "10.0.0.1");
        let both = found(&[("KUBECONFIG", "/a:/b"), ("HOME", home), inside]).unwrap();
        assert_eq!(both, Found::Files(vec!["/a".into(), "/b".into()]));
        let own = found(&[("HOME", home), inside, ("HOSTNAME", "server-0")]).unwrap();
        assert_eq!(own, Found::Inside(Some("server-0".to_owned())));
        let error = found(&[("HOME", home)]).unwrap_err().to_string();
        assert!(error.contains(&format!("there is no {home}/.kube/config")), "{error}");
        std::fs::create_dir(Path::new(home).join(".kube")).unwrap();
        let usual = Path::new(home).join(".kube/config");
        std::fs::write(&usual, "").unwrap();
        assert_eq!(found(&[("HOME", home), inside]).unwrap(), Found::Files(vec![usual]));
    }

    #[tokio::test]
    async fn a_kubeconfig_that_is_wrong_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config");
        let clusters = "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\n";
        let contexts = "contexts: [{name: x, context: {cluster: c, user: u, namespace: team}}]\n";
        let users = "users: [{name: u, user: {token: secret}}]\ncurrent-context: x\n";
        std::fs::write(&file, format!("{clusters}{contexts}{users}")).unwrap();
        let read = |context: Option<&str>| {
            let (file, context) = (file.clone(), context.map(str::to_owned));
            async { config(&Found::Files(vec!["/nowhere".into(), file]), context).await }
        };
        assert_eq!(read(None).await.unwrap().default_namespace, "team");
        let error = read(Some("none")).await.unwrap_err().to_string();
        assert!(error.starts_with("cannot use the kubeconfig: "), "{error}");
        let error = config(&Found::Files(vec!["/nowhere".into()]), None).await.unwrap_err();
        assert!(error.to_string().contains("there is no /nowhere"), "{error}");
    }

    #[test]
    fn a_role_that_is_not_enough_is_told_from_its_message() {
        let said = "pods \"x\" is forbidden: User \"mcpz\" cannot get resource \"pods/exec\" in API group \"\" in \
                    the namespace \"team\"";
        assert_eq!(forbidden(said), Some(("get".to_owned(), "pods/exec".to_owned())));
        assert_eq!(forbidden("pods \"x\" is forbidden: exceeded quota: q"), None);
    }
}
