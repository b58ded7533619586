//! Names nobody can guess.

use std::io;

use rustix::rand::{GetRandomFlags, getrandom};

/// 128 random bits as text.
pub fn random_name() -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}
