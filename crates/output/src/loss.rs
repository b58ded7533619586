//! Why output could not be kept.

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum Loss {
    #[error("not all output was kept: a command may have no more than `spill_per_run`")]
    OfRun,
    #[error("not all output was kept: a client may have no more than `spill_per_client`")]
    OfOwner,
    #[error("not all output was kept: all commands together may have no more than `spill_total`")]
    OfAll,
    #[error("not all output was kept: cannot write to {} (`TMPDIR` says where): {error}", folder.display())]
    Disk { folder: PathBuf, error: io::Error },
}
