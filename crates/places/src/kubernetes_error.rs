//! What can go wrong with a pod, and what to do then.

#[derive(Debug, thiserror::Error)]
pub enum KubernetesError {
    #[error("this build cannot use Kubernetes; build it with the cargo feature `kubernetes`")]
    NotBuilt,
    #[error(
        "found no Kubernetes cluster: there is no {tried}, and this server does not run in a pod with a service \
         account; set KUBECONFIG"
    )]
    NoCluster { tried: String },
    #[error("cannot use the kubeconfig: {said}; does `kubectl get pods` work?")]
    Config { said: String },
    #[error(
        "cannot reach the Kubernetes cluster at {address}: {said}; does `kubectl get pods` work?"
    )]
    Unreachable { address: String, said: String },
    #[error("the Kubernetes cluster does not accept these credentials: {said}; log in to it again")]
    Unauthorized { said: String },
    #[error(
        "the cluster does not let this user {verb} {resource} in the namespace `{namespace}`; a role has to allow \
         that (`kubectl auth can-i {verb} {resource} -n {namespace}`)"
    )]
    Forbidden { verb: String, resource: String, namespace: String },
    #[error(
        "the quota of the namespace `{namespace}` is used up: {said}; end other pods, or ask for more"
    )]
    Quota { namespace: String, said: String },
    #[error(
        "the cluster has no RuntimeClass `{name}`; `runtime_class` must be one that `kubectl get runtimeclass` lists"
    )]
    RuntimeClass { name: String },
    #[error("cannot get the image `{image}` ({said}); {}", image_advice(.said))]
    Image { image: String, said: String },
    #[error(
        "the image `{image}` cannot be used: {said}; it needs `sh` and the usual small programs, such as `head`, \
         `mkfifo` and `sha256sum`"
    )]
    NoShell { image: String, said: String },
    #[error(
        "there is no pod `{name}` in the namespace `{namespace}`; `kubectl get pods` lists those that run"
    )]
    NoPod { name: String, namespace: String },
    #[error("the pod `{name}` cannot be used: its container does not run{}", with(.said))]
    NotRunning { name: String, said: String },
    #[error(
        "the pod did not start within {seconds} seconds: {said}; `start_time` sets how long to wait"
    )]
    Slow { seconds: u64, said: String },
    #[error("the pod ended before the agent started in it: {said}")]
    Ended { said: String },
    #[error("the cluster could not {action}: {said}")]
    Refused { action: &'static str, said: String },
}

fn with(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!(": {said}") }
}

fn image_advice(said: &str) -> &'static str {
    match said.contains("ErrImageNeverPull") {
        true => "load it on the nodes, or allow it with `pull = \"missing\"`",
        false => {
            "is its name right? If its registry needs a login, name a secret for it with `image_pull_secret`"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_what_to_do() {
        let (image, namespace) = ("debian:13".to_owned(), "team".to_owned());
        let said = String::new;
        let forbidden = KubernetesError::Forbidden {
            verb: "create".to_owned(),
            resource: "pods/exec".to_owned(),
            namespace: namespace.clone(),
        };
        for (error, told) in [
            (KubernetesError::NotBuilt, "cargo feature `kubernetes`"),
            (KubernetesError::NoCluster { tried: "~/.kube/config".to_owned() }, "set KUBECONFIG"),
            (forbidden, "create pods/exec in the namespace `team`"),
            (KubernetesError::Quota { namespace, said: said() }, "end other pods"),
            (
                KubernetesError::Image {
                    image: image.clone(),
                    said: "ErrImageNeverPull".to_owned(),
                },
                "`pull = \"missing\"`",
            ),
            (KubernetesError::Image { image, said: said() }, "`image_pull_secret`"),
            (KubernetesError::Slow { seconds: 60, said: said() }, "`start_time`"),
        ] {
            assert!(error.to_string().contains(told), "{error}");
        }
    }
}
