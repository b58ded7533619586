//! Paths to what this process has open.

use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;

/// A path to what a descriptor of this process has open, whatever its own name is by now.
pub fn path_of(descriptor: impl AsFd) -> PathBuf {
    format!("/proc/self/fd/{}", descriptor.as_fd().as_raw_fd()).into()
}
