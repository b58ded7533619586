//! `[places.NAME]`: where commands can run besides this machine.

use std::path::PathBuf;

use super::choice::{PlaceKind, PlacePer};
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
