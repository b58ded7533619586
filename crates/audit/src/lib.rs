//! The audit trail: a tamper-evident record of every command that was requested, run or refused.
//!
//! One JSON line is written before each run, one after it, and one before each input typed into it, in a folder
//! that only our user can read. A run whose first line cannot be written does not start. Each line contains the MAC
//! of the line before and its own, made with a key, and the head beside the file names the last line. A line that
//! is changed, removed or moved therefore shows ([`verify`]).
//!
//!     gate ─▶ Audit::record_start ─▶ RecordedRun ─▶ run ─▶ RecordedRun::end
//!       └───▶ Audit::record_refusal (on the disk before the caller is told)
//!
//!     audit.jsonl    audit.head   audit.key           the trail, its last line, the key
//!     audit.N.jsonl                                   older parts of the trail
//!     waiting-NAME.jsonl                              records of a process that could not get the lock
//!     writer-NAME.lock                                locked by a process that has ends to record
//!
//! A command waits for three system calls on the server's own thread. The head, and the line after a run, are
//! written when the server has nothing else to do (`Later`), in any case before it ends.
//!
//! Every run gets an end. Ends that a full disk refuses are retried, after one second at first and every 30 seconds
//! later. If a process is killed before it records an end, another one records the run as lost.
//!
//! The MACs protect against those who cannot read the key. A command that runs as the same user can read it, unless
//! a sandbox hides the folder.

mod audit;
mod clock;
mod error;
mod escape;
mod files;
mod head;
mod input;
mod line;
mod mac;
mod reader;
mod record;
mod refused_peer;
mod settings;
mod trail;
mod verify;
mod waiting;
mod writer;

pub use audit::{Audit, RecordedRun};
pub use clock::rfc3339;
pub use error::Error;
pub use escape::{Escaping, visible};
pub use input::TypedInput;
pub use mac::sha256;
pub use reader::{AuditFile, AuditTail, audit_files, audit_lines};
pub use record::{Command, Permit, Reason, Redaction, RequestedRun, RunEnd, Source};
pub use refused_peer::RefusedPeer;
pub use settings::AuditSettings;
pub use trail::trail_was_removed;
pub use verify::{Defect, Fault, Verified, verify};
pub use writer::living_writers;
