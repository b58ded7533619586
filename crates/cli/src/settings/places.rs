//! `[places.NAME]`: where commands can run besides this machine.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::choice::{DirectoryMount, PlaceKind, PlacePer, PullPolicy};
use super::seconds::Seconds;
use super::section::table;

table! {
    /// A place named NAME that commands can run in.
    pub struct PlaceTable {
        /// What kind of place it is.
        kind: Option<PlaceKind> = None, words: "required";

        /// Who shares it: all commands of the server, of a client, or of a session.
        per: PlacePer = PlacePer::Server;

        /// Seconds that it may be unused before it is ended.
        idle: Seconds<1> = Seconds(900);

        /// How many there may be at once.
        max: usize = 100;

        /// How many are made before a client or session needs one.
        ready: usize = 0;

        /// Where commands start there.
        directory: Option<PathBuf> = None, words: "the working directory, or the home of the user there";

        /// The program that becomes the agent there, if it is not this one.
        agent: Option<PathBuf> = None, words: "this program";

        /// Seconds that it may take to make.
        start_time: Seconds<1> = Seconds(60);

        /// Seconds between two signs of life. What runs in a place ends after three that are missing.
        beat: Seconds<1> = Seconds(5);

        /// For `container` and `kubernetes`: the image to make one from.
        image: Option<String> = None;

        /// For `container`: one that runs already, by its name or id, instead of an image. For `kubernetes`: which
        /// container of `pod`.
        container: Option<String> = None;

        /// For `kubernetes`: a pod that runs already, instead of an image.
        pod: Option<String> = None;

        /// For `kubernetes`: the namespace.
        namespace: Option<String> = None, words: "that of the context";

        /// For `kubernetes`: the context of the kubeconfig.
        context: Option<String> = None, words: "the current one";

        /// For `container`: the address of the engine, if it is not where Docker's or podman's client looks.
        engine: Option<String> = None;

        /// For `container`: the user there, by name or number. For `kubernetes`: its number, or `UID:GID`.
        user: Option<String> = None, words: "that of the image";

        /// For `container`: how the working directory is mounted, at the same path.
        mount_directory: DirectoryMount = DirectoryMount::ReadWrite;

        /// For `container` and `kubernetes`: more mounts, as `SOURCE:TARGET` or `SOURCE:TARGET:ro`. The source is a
        /// path, or for `kubernetes` the name of a PersistentVolumeClaim.
        mounts: Vec<String> = Vec::new();

        /// For `container`: a network that the engine knows, such as `bridge`.
        network: Option<String> = None, words: "none";

        /// For `container` and `kubernetes`: whether only mounts and `/tmp` can be written to.
        read_only: bool = false;

        /// For `container` and `kubernetes`: the capabilities that its root has.
        capabilities: Vec<String> = Vec::new();

        /// For `container`: more security options of the engine.
        security: Vec<String> = Vec::new();

        /// For `container`: a runtime that the engine knows, such as `runsc` for gVisor.
        runtime: Option<String> = None, words: "the engine's own";

        /// For `kubernetes`: the RuntimeClass, such as one for gVisor.
        runtime_class: Option<String> = None, words: "the cluster's own";

        /// For `kubernetes`: the service account. The pod never gets its token.
        service_account: Option<String> = None, words: "that of the namespace";

        /// For `kubernetes`: the secret that has the login of the image's registry.
        image_pull_secret: Option<String> = None;

        /// For `kubernetes`: the labels of nodes that it may run on.
        node_selector: BTreeMap<String, String> = BTreeMap::new();

        /// For `kubernetes`: seconds after which the cluster ends the pod, whatever it does.
        deadline: Option<Seconds<1>> = None, words: "none";

        /// For `container` and `kubernetes`: when to get the image from its registry.
        pull: PullPolicy = PullPolicy::Missing;

        /// For `container` and `kubernetes`: more labels.
        labels: BTreeMap<String, String> = BTreeMap::new();

        /// For `ssh`: the host, as `[USER@]HOST[:PORT]` or as your `ssh` configuration calls it.
        host: Option<String> = None;

        /// For `slurm`: the partition.
        partition: Option<String> = None;

        /// For `slurm`: the account.
        account: Option<String> = None;

        /// For `slurm`: the time limit, as `srun` takes it.
        time: Option<String> = None;

        /// For `ssh` and `slurm`: more options of `ssh` or `srun`.
        options: Vec<String> = Vec::new();
    }
}
