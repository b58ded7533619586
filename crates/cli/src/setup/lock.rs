//! Whether the kernel holds commands to what the policy understood.

use std::io;

use mcpz_policy::Policy;

use super::SetupError;

/// Whether it does and, if it should but does not, why.
#[derive(Debug)]
pub struct LockSetup {
    pub on: bool,
    /// What the kernel lacks.
    pub missing: Option<io::Error>,
}

/// `wanted` is what the settings say, if they do.
pub fn lock(policy: &Policy, wanted: Option<bool>) -> Result<LockSetup, SetupError> {
    // Without rules about commands there is nothing to hold.
    if wanted == Some(false) || policy.lock_of_session().is_none() {
        return Ok(LockSetup { on: false, missing: None });
    }
    match mcpz_agent::can_lock() {
        Ok(()) => Ok(LockSetup { on: true, missing: None }),
        Err(source) if wanted == Some(true) => Err(SetupError::NoLock { source }),
        Err(error) => Ok(LockSetup { on: false, missing: Some(error) }),
    }
}
