//! The places that commands can run in.
//!
//!     [places.NAME], --place ─▶ Place        checked: its keys belong to its kind, and nothing rules it out

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mcpz_agent::PlaceFacts;
use mcpz_engine::PlaceSettings;
use mcpz_places::{
    Access, Base, Container, InvalidHost, InvalidMount, InvalidPodMount, InvalidUser, Kind,
    Kubernetes, Per, Place, PodSource, Pull, Slurm, Ssh,
};

use crate::command_environment::{CommandEnvironment, VariableFilter};
use crate::environment;
use crate::settings::{
    DirectoryMount, PlaceKind, PlacePer, PlaceTable, PullPolicy, SandboxMode, Settings,
};

#[derive(Debug, thiserror::Error)]
pub enum PlacesError {
    #[error(
        "[places.{name}] has no kind; set it to \"container\", \"kubernetes\", \"ssh\" or \"slurm\""
    )]
    NoKind { name: String },
    #[error("[places.{name}] has no {key}, which its kind needs")]
    Missing { name: String, key: &'static str },
    #[error("{key} in [places.{name}] does not belong to its kind")]
    Foreign { name: String, key: &'static str },
    #[error("{key} in [places.{name}] is 0, but must be at least 1")]
    Zero { name: String, key: &'static str },
    #[error("the name of [places.{name:?}] must consist of letters, digits, `-` and `_`")]
    Name { name: String },
    #[error(
        "there is no place `{name}`; add a table [places.{name}], or write container:IMAGE, \
         kubernetes:[NAMESPACE/]IMAGE, ssh:HOST or slurm"
    )]
    Unknown { name: String },
    #[error(
        "`{name}` is not a place; write container:IMAGE, kubernetes:[NAMESPACE/]IMAGE, ssh:HOST or slurm:PARTITION"
    )]
    UnknownKind { name: String },
    #[error(transparent)]
    Host(#[from] InvalidHost),
    #[error(transparent)]
    Mount(#[from] InvalidMount),
    #[error(transparent)]
    PodMount(#[from] InvalidPodMount),
    #[error(transparent)]
    User(#[from] InvalidUser),
    #[error("[places.{name}] has an image and a {key}; leave out one of them")]
    Two { name: String, key: &'static str },
    #[error("{key} in [places.{name}] is for pods that are made, but its pod is there already")]
    Made { name: String, key: &'static str },
    #[error(
        "commands cannot run both in a sandbox of this machine and in the place `{name}`; leave out --sandbox or \
         --place"
    )]
    Sandbox { name: String },
    #[error(
        "commands in the place `{name}` get the variables of that place; leave out --login-env or --place"
    )]
    LoginEnv { name: String },
}

/// The places of the settings, if there are any.
pub fn places(
    settings: &Settings,
    environment: &Arc<CommandEnvironment>,
) -> Result<Option<PlaceSettings>, PlacesError> {
    let mut tables = settings.places.clone();
    let default =
        settings.shell_tool.place().map(|place| resolve(&place, &mut tables)).transpose()?;
    if let Some(name) = default.clone() {
        if settings.sandbox.mode() != SandboxMode::Off {
            return Err(PlacesError::Sandbox { name });
        }
        if settings.shell_tool.login_env() {
            return Err(PlacesError::LoginEnv { name });
        }
    }
    if tables.is_empty() {
        return Ok(None);
    }
    let agent = settings.shell_tool.place_agent();
    let place = |(name, table): (&String, &PlaceTable)| {
        let place = place(name, table)?;
        let agent = place.agent.clone().or(agent.clone());
        Ok(Place { agent, ..place })
    };
    let all = tables.iter().map(place).collect::<Result<_, PlacesError>>()?;
    let environment = environment.clone();
    let resolve =
        move |facts: &PlaceFacts| environment.build(&facts.variables, environment.shell_there());
    let variables = VariableFilter::without_ours(environment::variables());
    Ok(Some(PlaceSettings { all, default, variables, resolve: Arc::new(resolve) }))
}

/// The name of the place that is meant: one that has a table, or one in short, which gets a table.
fn resolve(place: &str, tables: &mut BTreeMap<String, PlaceTable>) -> Result<String, PlacesError> {
    if tables.contains_key(place) {
        return Ok(place.to_owned());
    }
    let (kind, rest) =
        place.split_once(':').map_or((place, None), |(kind, rest)| (kind, Some(rest)));
    let rest = rest.map(str::to_owned);
    let table = match kind {
        "container" if rest.is_some() => PlaceTable {
            kind: Some(Some(PlaceKind::Container)),
            image: Some(rest),
            ..PlaceTable::default()
        },
        "kubernetes" if rest.is_some() => {
            let (namespace, image) = namespace_and_image(rest.as_deref().unwrap_or_default());
            PlaceTable {
                kind: Some(Some(PlaceKind::Kubernetes)),
                namespace: Some(namespace),
                image: Some(Some(image)),
                ..PlaceTable::default()
            }
        }
        "ssh" if rest.is_some() => PlaceTable {
            kind: Some(Some(PlaceKind::Ssh)),
            host: Some(rest),
            ..PlaceTable::default()
        },
        "slurm" => PlaceTable {
            kind: Some(Some(PlaceKind::Slurm)),
            partition: Some(rest),
            ..PlaceTable::default()
        },
        "process" if rest.is_none() => {
            PlaceTable { kind: Some(Some(PlaceKind::Process)), ..PlaceTable::default() }
        }
        _ if place.contains(':') => {
            return Err(PlacesError::UnknownKind { name: place.to_owned() });
        }
        _ => return Err(PlacesError::Unknown { name: place.to_owned() }),
    };
    tables.insert(kind.to_owned(), table);
    Ok(kind.to_owned())
}

/// What comes before the first slash is a namespace, unless it can be the host of a registry.
fn namespace_and_image(text: &str) -> (Option<String>, String) {
    match text.split_once('/') {
        Some((namespace, image)) if !namespace.contains(['.', ':']) && namespace != "localhost" => {
            (Some(namespace.to_owned()), image.to_owned())
        }
        _ => (None, text.to_owned()),
    }
}

fn place(name: &str, table: &PlaceTable) -> Result<Place, PlacesError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    if name.is_empty() || !name.chars().all(is_plain) {
        return Err(PlacesError::Name { name: name.to_owned() });
    }
    let missing = |key| PlacesError::Missing { name: name.to_owned(), key };
    let kind = table.kind().ok_or_else(|| PlacesError::NoKind { name: name.to_owned() })?;
    check_keys(name, kind, table)?;
    let kind = match kind {
        PlaceKind::Process => Kind::Process,
        PlaceKind::Container => Kind::Container(container(name, table)?),
        PlaceKind::Kubernetes => Kind::Kubernetes(kubernetes(name, table)?),
        PlaceKind::Ssh => {
            let host = table.host().ok_or_else(|| missing("host"))?;
            Kind::Ssh(Ssh::new(&host, table.options())?)
        }
        PlaceKind::Slurm => Kind::Slurm(Slurm {
            partition: table.partition(),
            account: table.account(),
            time: table.time(),
            options: table.options(),
        }),
    };
    let counts = [
        ("idle", table.idle().0),
        ("max", table.max() as u64),
        ("start_time", table.start_time().0),
        ("beat", table.beat().0),
        ("deadline", table.deadline().map_or(1, |deadline| deadline.0)),
    ];
    if let Some((key, _)) = counts.into_iter().find(|(_, value)| *value == 0) {
        return Err(PlacesError::Zero { name: name.to_owned(), key });
    }
    Ok(Place {
        name: name.to_owned(),
        kind,
        per: match table.per() {
            PlacePer::Server => Per::Server,
            PlacePer::Owner => Per::Owner,
            PlacePer::Session => Per::Session,
        },
        idle: Duration::from_secs(table.idle().0),
        max: table.max(),
        ready: table.ready(),
        directory: table.directory(),
        agent: table.agent(),
        start_time: Duration::from_secs(table.start_time().0),
        beat: Duration::from_secs(table.beat().0),
    })
}

fn container(name: &str, table: &PlaceTable) -> Result<Container, PlacesError> {
    let base = match (table.image(), table.container()) {
        (Some(image), None) => Base::Image(image),
        (None, Some(container)) => Base::Container(container),
        (None, None) => return Err(PlacesError::Missing { name: name.to_owned(), key: "image" }),
        (Some(_), Some(_)) => {
            return Err(PlacesError::Two { name: name.to_owned(), key: "container" });
        }
    };
    Ok(Container {
        base,
        engine: table.engine(),
        user: table.user(),
        directory: match table.mount_directory() {
            DirectoryMount::ReadWrite => Some(Access::ReadWrite),
            DirectoryMount::ReadOnly => Some(Access::ReadOnly),
            DirectoryMount::Off => None,
        },
        mounts: table.mounts().iter().map(|mount| mount.parse()).collect::<Result<_, _>>()?,
        network: table.network(),
        read_only: table.read_only(),
        capabilities: table.capabilities(),
        security: table.security(),
        runtime: table.runtime(),
        pull: pull(table),
        labels: table.labels().into_iter().collect(),
    })
}

fn pull(table: &PlaceTable) -> Pull {
    match table.pull() {
        PullPolicy::Never => Pull::Never,
        PullPolicy::Missing => Pull::Missing,
        PullPolicy::Always => Pull::Always,
    }
}

fn kubernetes(name: &str, table: &PlaceTable) -> Result<Kubernetes, PlacesError> {
    let named = || name.to_owned();
    let source = match (table.image(), table.pod()) {
        (Some(_), None) if table.container.is_some() => {
            return Err(PlacesError::Missing { name: named(), key: "pod" });
        }
        (Some(image), None) => PodSource::Image(image),
        (None, Some(pod)) => PodSource::Pod { name: pod, container: table.container() },
        (None, None) => return Err(PlacesError::Missing { name: named(), key: "image" }),
        (Some(_), Some(_)) => return Err(PlacesError::Two { name: named(), key: "pod" }),
    };
    if let PodSource::Pod { .. } = source
        && let Some((key, _)) = of_made_pods(table).into_iter().find(|(_, is_set)| *is_set)
    {
        return Err(PlacesError::Made { name: named(), key });
    }
    Ok(Kubernetes {
        source,
        context: table.context(),
        namespace: table.namespace(),
        user: table.user().map(|user| user.parse()).transpose()?,
        mounts: table.mounts().iter().map(|mount| mount.parse()).collect::<Result<_, _>>()?,
        read_only: table.read_only(),
        capabilities: table.capabilities(),
        runtime_class: table.runtime_class(),
        service_account: table.service_account(),
        pull: pull(table),
        image_pull_secret: table.image_pull_secret(),
        node_selector: table.node_selector().into_iter().collect(),
        deadline: table.deadline().map(|seconds| Duration::from_secs(seconds.0)),
        labels: table.labels().into_iter().collect(),
    })
}

/// The keys that say how a pod is made, and whether they are set.
fn of_made_pods(table: &PlaceTable) -> [(&'static str, bool); 11] {
    [
        ("user", table.user.is_some()),
        ("mounts", table.mounts.is_some()),
        ("read_only", table.read_only.is_some()),
        ("capabilities", table.capabilities.is_some()),
        ("runtime_class", table.runtime_class.is_some()),
        ("service_account", table.service_account.is_some()),
        ("pull", table.pull.is_some()),
        ("image_pull_secret", table.image_pull_secret.is_some()),
        ("node_selector", table.node_selector.is_some()),
        ("deadline", table.deadline.is_some()),
        ("labels", table.labels.is_some()),
    ]
}

/// Refuses keys of other kinds: what is set has to have an effect.
fn check_keys(name: &str, kind: PlaceKind, table: &PlaceTable) -> Result<(), PlacesError> {
    const CONTAINER: &[PlaceKind] = &[PlaceKind::Container];
    const KUBERNETES: &[PlaceKind] = &[PlaceKind::Kubernetes];
    const BOTH: &[PlaceKind] = &[PlaceKind::Container, PlaceKind::Kubernetes];
    const SSH: &[PlaceKind] = &[PlaceKind::Ssh];
    const SLURM: &[PlaceKind] = &[PlaceKind::Slurm];
    let keys = [
        ("image", table.image.is_some(), BOTH),
        ("container", table.container.is_some(), BOTH),
        ("engine", table.engine.is_some(), CONTAINER),
        ("user", table.user.is_some(), BOTH),
        ("mount_directory", table.mount_directory.is_some(), CONTAINER),
        ("mounts", table.mounts.is_some(), BOTH),
        ("network", table.network.is_some(), CONTAINER),
        ("read_only", table.read_only.is_some(), BOTH),
        ("capabilities", table.capabilities.is_some(), BOTH),
        ("security", table.security.is_some(), CONTAINER),
        ("runtime", table.runtime.is_some(), CONTAINER),
        ("pull", table.pull.is_some(), BOTH),
        ("labels", table.labels.is_some(), BOTH),
        ("pod", table.pod.is_some(), KUBERNETES),
        ("namespace", table.namespace.is_some(), KUBERNETES),
        ("context", table.context.is_some(), KUBERNETES),
        ("runtime_class", table.runtime_class.is_some(), KUBERNETES),
        ("service_account", table.service_account.is_some(), KUBERNETES),
        ("image_pull_secret", table.image_pull_secret.is_some(), KUBERNETES),
        ("node_selector", table.node_selector.is_some(), KUBERNETES),
        ("deadline", table.deadline.is_some(), KUBERNETES),
        ("host", table.host.is_some(), SSH),
        ("partition", table.partition.is_some(), SLURM),
        ("account", table.account.is_some(), SLURM),
        ("time", table.time.is_some(), SLURM),
        ("options", table.options.is_some(), &[PlaceKind::Ssh, PlaceKind::Slurm]),
    ];
    match keys.into_iter().find(|(_, is_set, kinds)| *is_set && !kinds.contains(&kind)) {
        Some((key, ..)) => Err(PlacesError::Foreign { name: name.to_owned(), key }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_before_an_image_is_a_namespace_unless_it_is_a_registry() {
        for (text, namespace, image) in [
            ("debian:13", None, "debian:13"),
            ("team/debian:13", Some("team"), "debian:13"),
            ("docker.io/library/debian", None, "docker.io/library/debian"),
            ("localhost/image", None, "localhost/image"),
            ("registry:5000/image", None, "registry:5000/image"),
            ("team/docker.io/library/debian", Some("team"), "docker.io/library/debian"),
        ] {
            let expected = (namespace.map(str::to_owned), image.to_owned());
            assert_eq!(namespace_and_image(text), expected, "{text}");
        }
    }
}
