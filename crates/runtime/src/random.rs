//! Random names that cannot be guessed.

use std::io;
use std::sync::{Mutex, PoisonError};

use rustix::rand::{GetRandomFlags, getrandom};

/// Random bits for the next names. One system call fetches several.
static READY: Mutex<Vec<u128>> = Mutex::new(Vec::new());

/// 128 random bits as text.
pub fn random_name() -> io::Result<String> {
    Ok(format!("{:032x}", random_bits()?))
}

/// 128 random bits.
pub fn random_bits() -> io::Result<u128> {
    let mut ready = READY.lock().unwrap_or_else(PoisonError::into_inner);
    match ready.pop() {
        Some(bits) => Ok(bits),
        None => {
            let mut bytes = [0; 256];
            // The kernel returns up to 256 bytes at once.
            getrandom(&mut bytes, GetRandomFlags::empty())?;
            let (names, _) = bytes.as_chunks();
            ready.extend(names[1..].iter().map(|name| u128::from_ne_bytes(*name)));
            Ok(u128::from_ne_bytes(names[0]))
        }
    }
}
