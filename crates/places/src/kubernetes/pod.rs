//! What a pod is made with.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{
    Capabilities, Container, EmptyDirVolumeSource, HostPathVolumeSource, LocalObjectReference,
    PersistentVolumeClaimVolumeSource, Pod, PodSecurityContext, PodSpec, ResourceRequirements,
    SeccompProfile, SecurityContext, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use mcpz_agent::{Limits, Maker, Memory};

use super::{Kubernetes, MountSource};
use crate::container::{Access, Pull};

/// Tells the pods that servers made from all others.
pub const MADE_LABEL: (&str, &str) = ("app.kubernetes.io/managed-by", "mcpz");

/// Tells which server made a pod. It is too long for a label.
pub const SERVER_ANNOTATION: &str = "io.mcpz.server";

/// The container that the agent runs in.
pub const CONTAINER: &str = "place";

/// A folder for the agent, and for the FIFO by which the first process sees that the agent is there.
pub const FOLDER: &str = "/.mcpz";

/// How a shell that starts the agent holds the pod: the agent and its commands do not, so it ends with the agent.
/// Without something left to do, the shell of busybox would become the agent, and nobody would hold the pod.
pub const HOLD: &str = "exec 3>/.mcpz/held; \"$f\" agent --stream 3>&-; exit $?";

/// How long a first process may take that does not end by itself, in seconds.
const GRACE: i64 = 1;

/// What a pod is made for.
pub struct Making<'a> {
    pub name: String,
    pub image: &'a str,
    pub limits: &'a Limits,
    /// How long it waits for an agent.
    pub start_time: Duration,
    pub owner: Option<OwnerReference>,
}

/// The first process. It waits until nobody holds the pod anymore, or nobody has come in time: to open a FIFO waits for
/// somebody at its other end, and to read from it for the last one to leave.
fn waiting(start_time: Duration) -> String {
    let seconds = start_time.as_secs().max(1);
    format!(
        "f={FOLDER}/held; mkfifo -m 600 $f || exit; (sleep {seconds}; : >$f) & read -r _ <$f; exit 0"
    )
}

pub fn pod(kubernetes: &Kubernetes, making: &Making<'_>) -> Pod {
    let maker = Maker::own().map(|maker| maker.to_string()).unwrap_or_default();
    let (key, value) = MADE_LABEL;
    let own = [(key.to_owned(), value.to_owned())];
    let labels = kubernetes.labels.iter().cloned().chain(own).collect();
    Pod {
        metadata: ObjectMeta {
            name: Some(making.name.clone()),
            labels: Some(labels),
            annotations: Some([(SERVER_ANNOTATION.to_owned(), maker)].into_iter().collect()),
            owner_references: making.owner.clone().map(|owner| vec![owner]),
            ..Default::default()
        },
        spec: Some(spec(kubernetes, making)),
        ..Default::default()
    }
}

fn spec(kubernetes: &Kubernetes, making: &Making<'_>) -> PodSpec {
    let secret = |name: String| vec![LocalObjectReference { name }];
    let selector: BTreeMap<_, _> = kubernetes.node_selector.iter().cloned().collect();
    let (volumes, volume_mounts) = volumes(kubernetes);
    let group = kubernetes.user.and_then(|user| user.group).map(i64::from);
    PodSpec {
        containers: vec![Container {
            name: CONTAINER.to_owned(),
            image: Some(making.image.to_owned()),
            image_pull_policy: Some(pull_policy(kubernetes.pull).to_owned()),
            command: Some(vec!["sh".to_owned(), "-c".to_owned(), waiting(making.start_time)]),
            args: Some(Vec::new()),
            resources: resources(making.limits),
            security_context: Some(security(kubernetes)),
            volume_mounts: Some(volume_mounts),
            ..Default::default()
        }],
        volumes: Some(volumes),
        restart_policy: Some("Never".to_owned()),
        termination_grace_period_seconds: Some(GRACE),
        active_deadline_seconds: kubernetes.deadline.map(|it| whole(it.as_secs())),
        service_account_name: kubernetes.service_account.clone(),
        automount_service_account_token: Some(false),
        // Else every service of the namespace would be among the variables.
        enable_service_links: Some(false),
        runtime_class_name: kubernetes.runtime_class.clone(),
        image_pull_secrets: kubernetes.image_pull_secret.clone().map(secret),
        node_selector: Some(selector).filter(|selector| !selector.is_empty()),
        security_context: Some(PodSecurityContext {
            fs_group: group,
            seccomp_profile: Some(SeccompProfile {
                type_: "RuntimeDefault".to_owned(),
                localhost_profile: None,
            }),
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn security(kubernetes: &Kubernetes) -> SecurityContext {
    let user = kubernetes.user;
    SecurityContext {
        allow_privilege_escalation: Some(false),
        capabilities: Some(Capabilities {
            drop: Some(vec!["ALL".to_owned()]),
            add: Some(kubernetes.capabilities.clone()).filter(|added| !added.is_empty()),
        }),
        read_only_root_filesystem: Some(kubernetes.read_only),
        run_as_user: user.map(|user| user.user.into()),
        run_as_group: user.and_then(|user| user.group).map(i64::from),
        run_as_non_root: user.map(|user| user.user != 0),
        ..Default::default()
    }
}

fn pull_policy(pull: Pull) -> &'static str {
    match pull {
        Pull::Never => "Never",
        Pull::Missing => "IfNotPresent",
        Pull::Always => "Always",
    }
}

/// The memory of all commands in it together, which is that of an owner. Other limits of an owner have no counterpart:
/// how many processes a pod may have is a setting of nodes, and without a request it only gets processors that
/// others leave.
fn resources(limits: &Limits) -> Option<ResourceRequirements> {
    let Memory::Bytes(bytes) = limits.per_owner.memory else { return None };
    let memory = [("memory".to_owned(), Quantity(bytes.to_string()))];
    Some(ResourceRequirements { limits: Some(memory.into_iter().collect()), ..Default::default() })
}

fn volumes(kubernetes: &Kubernetes) -> (Vec<Volume>, Vec<VolumeMount>) {
    let empty = |name: &str, path: &str, medium: Option<&str>| {
        let medium = medium.map(str::to_owned);
        let empty_dir = Some(EmptyDirVolumeSource { medium, ..Default::default() });
        let volume = Volume { name: name.to_owned(), empty_dir, ..Default::default() };
        (
            volume,
            VolumeMount {
                name: name.to_owned(),
                mount_path: path.to_owned(),
                ..Default::default()
            },
        )
    };
    let agent = empty("mcpz", FOLDER, None);
    let temporary = kubernetes.read_only.then(|| empty("tmp", "/tmp", Some("Memory")));
    let mounts = kubernetes.mounts.iter().enumerate().map(|(number, mount)| {
        let (name, read_only) = (format!("mount-{number}"), mount.access == Access::ReadOnly);
        let mut volume = Volume { name: name.clone(), ..Default::default() };
        match &mount.source {
            MountSource::Claim(claim_name) => {
                let claim_name = claim_name.clone();
                volume.persistent_volume_claim = Some(PersistentVolumeClaimVolumeSource {
                    claim_name,
                    read_only: Some(read_only),
                });
            }
            MountSource::Node(path) => {
                let path = path.display().to_string();
                volume.host_path = Some(HostPathVolumeSource { path, type_: None });
            }
        }
        let mount_path = mount.target.display().to_string();
        let mounted =
            VolumeMount { name, mount_path, read_only: Some(read_only), ..Default::default() };
        (volume, mounted)
    });
    [agent].into_iter().chain(temporary).chain(mounts).unzip()
}

fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use mcpz_agent::OwnerLimits;

    use super::*;
    use crate::kubernetes::PodSource;

    fn made(kubernetes: &Kubernetes, limits: Limits) -> (ObjectMeta, PodSpec) {
        let making = Making {
            name: "mcpz-1".to_owned(),
            image: "image",
            limits: &limits,
            start_time: Duration::from_secs(60),
            owner: None,
        };
        let pod = pod(kubernetes, &making);
        (pod.metadata, pod.spec.unwrap())
    }

    fn kubernetes() -> Kubernetes {
        Kubernetes::new(PodSource::Image("image".to_owned()))
    }

    #[test]
    fn a_pod_is_closed_unless_it_is_opened() {
        let (metadata, spec) = made(&kubernetes(), Limits::default());
        assert_eq!(metadata.labels.unwrap()["app.kubernetes.io/managed-by"], "mcpz");
        assert!(metadata.annotations.unwrap()[SERVER_ANNOTATION].parse::<Maker>().is_ok());
        assert_eq!(spec.automount_service_account_token, Some(false));
        assert_eq!(spec.restart_policy.as_deref(), Some("Never"));
        assert_eq!((spec.host_network, spec.host_pid), (None, None));
        assert_eq!((spec.active_deadline_seconds, spec.node_selector), (None, None));
        let [container] = &spec.containers[..] else { panic!("{:?}", spec.containers) };
        let security = container.security_context.clone().unwrap();
        assert_eq!(security.allow_privilege_escalation, Some(false));
        let capabilities = security.capabilities.unwrap();
        assert_eq!((capabilities.drop, capabilities.add), (Some(vec!["ALL".to_owned()]), None));
        assert_eq!((security.run_as_user, security.run_as_non_root), (None, None));
        assert_eq!(container.resources, None);
        let mounted = container.volume_mounts.as_ref().unwrap().iter().map(|it| &it.mount_path[..]);
        assert_eq!(mounted.collect::<Vec<_>>(), ["/.mcpz"]);
    }

    #[test]
    fn it_has_what_is_asked_for() {
        let per_owner =
            OwnerLimits { memory: Memory::Bytes(1 << 30), ..Limits::default().per_owner };
        let text = str::to_owned;
        let kubernetes = Kubernetes {
            user: "1000:100".parse().ok(),
            mounts: vec!["work:/work".parse().unwrap(), "/usr:/usr:ro".parse().unwrap()],
            read_only: true,
            capabilities: vec![text("CHOWN")],
            runtime_class: Some(text("gvisor")),
            service_account: Some(text("builder")),
            pull: Pull::Never,
            image_pull_secret: Some(text("login")),
            node_selector: vec![(text("disk"), text("ssd"))],
            deadline: Some(Duration::from_secs(3600)),
            labels: vec![(text("team"), text("a")), (text(MADE_LABEL.0), text("mine"))],
            ..kubernetes()
        };
        let (metadata, spec) = made(&kubernetes, Limits { per_owner, ..Limits::default() });
        let labels = metadata.labels.unwrap();
        assert_eq!((&labels["team"][..], &labels[MADE_LABEL.0][..]), ("a", "mcpz"));
        assert_eq!(spec.runtime_class_name.as_deref(), Some("gvisor"));
        assert_eq!(spec.service_account_name.as_deref(), Some("builder"));
        assert_eq!(spec.automount_service_account_token, Some(false));
        assert_eq!(spec.image_pull_secrets.unwrap()[0].name, "login");
        assert_eq!(spec.node_selector.unwrap()["disk"], "ssd");
        assert_eq!(spec.active_deadline_seconds, Some(3600));
        assert_eq!(spec.security_context.unwrap().fs_group, Some(100));
        let container = &spec.containers[0];
        assert_eq!(container.image_pull_policy.as_deref(), Some("Never"));
        let security = container.security_context.clone().unwrap();
        assert_eq!((security.run_as_user, security.run_as_group), (Some(1000), Some(100)));
        assert_eq!(security.run_as_non_root, Some(true));
        assert_eq!(security.read_only_root_filesystem, Some(true));
        assert_eq!(security.capabilities.unwrap().add, Some(vec![text("CHOWN")]));
        let limits = container.resources.as_ref().unwrap().limits.as_ref().unwrap();
        assert_eq!(limits["memory"].0, (1 << 30).to_string());
        let mounted = container.volume_mounts.as_ref().unwrap().iter();
        let mounted: Vec<_> = mounted.map(|it| (&it.mount_path[..], it.read_only)).collect();
        let expected =
            [("/.mcpz", None), ("/tmp", None), ("/work", Some(false)), ("/usr", Some(true))];
        assert_eq!(mounted, expected);
        let volumes = spec.volumes.unwrap();
        assert_eq!(volumes[1].empty_dir.as_ref().unwrap().medium.as_deref(), Some("Memory"));
        assert_eq!(volumes[2].persistent_volume_claim.as_ref().unwrap().claim_name, "work");
        assert_eq!(volumes[3].host_path.as_ref().unwrap().path, "/usr");
    }

    #[test]
    fn the_first_process_ends_when_nobody_holds_the_pod() {
        for shell in [&["sh"][..], &["bash"], &["busybox", "sh"]] {
            let works = Command::new(shell[0]).args(&shell[1..]).args(["-c", "exit 7"]).status();
            if works.is_ok_and(|status| status.code() == Some(7)) {
                ends_when_nobody_holds_it(shell);
            }
        }
    }

    fn ends_when_nobody_holds_it(program: &[&str]) {
        let folder = tempfile::tempdir().unwrap();
        let here = |script: &str| script.replace(FOLDER, folder.path().to_str().unwrap());
        let shell = |script: &str| {
            Command::new(program[0]).args(&program[1..]).args(["-c", script]).spawn().unwrap()
        };
        let mut first = shell(&here(&waiting(Duration::from_secs(1))));
        let fifo = folder.path().join("held");
        while !fifo.exists() {
            std::thread::sleep(Duration::from_millis(10));
        }
        let mut holding =
            shell(&here(&format!("f=sleep; {}", HOLD.replace("agent --stream", "3"))));
        // It has outlived the time in which somebody has to come.
        std::thread::sleep(Duration::from_secs(2));
        assert_eq!(first.try_wait().unwrap(), None, "{program:?}");
        assert!(holding.wait().unwrap().success());
        assert!(first.wait().unwrap().success());

        std::fs::remove_file(&fifo).unwrap();
        let mut alone = shell(&here(&waiting(Duration::from_secs(1))));
        assert!(alone.wait().unwrap().success());
    }
}
