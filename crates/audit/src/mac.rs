//! The key of a trail, and the MACs made with it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac::{self, HMAC_SHA256};
use rustix::fs::OFlags;
use rustix::rand::{GetRandomFlags, getrandom};

use mcpz_runtime::random_name;

const KEY_FILE: &str = "audit.key";

/// An HMAC-SHA256. Nobody can make one without the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mac(pub [u8; 32]);

impl Mac {
    /// What the first line has in place of a MAC of the line before.
    pub const NONE: Self = Self([0; 32]);

    /// Its length as text.
    pub const TEXT_LENGTH: usize = 64;

    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut bytes = [0; 32];
        if text.len() != Self::TEXT_LENGTH {
            return None;
        }
        for (byte, digits) in bytes.iter_mut().zip(text.chunks(2)) {
            *byte = digit(digits[0])? << 4 | digit(digits[1])?;
        }
        Some(Self(bytes))
    }
}

/// The value of a digit. Upper case is refused: each MAC has only one form.
fn digit(text: u8) -> Option<u8> {
    match text {
        b'0'..=b'9' => Some(text - b'0'),
        b'a'..=b'f' => Some(text - b'a' + 10),
        _ => None,
    }
}

impl std::fmt::Display for Mac {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

/// The SHA-256 of some bytes, as text.
pub fn sha256(bytes: &[u8]) -> String {
    hex(digest(&SHA256, bytes).as_ref())
}

/// The key of one folder.
pub struct Key(hmac::Key);

impl Key {
    pub fn path(folder: &Path) -> PathBuf {
        folder.join(KEY_FILE)
    }

    pub fn read(folder: &Path) -> io::Result<Self> {
        let mut bytes = Vec::new();
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(OFlags::NOFOLLOW.bits() as i32);
        options.open(Self::path(folder))?.take(100).read_to_end(&mut bytes)?;
        match bytes.len() {
            32 => Ok(Self(hmac::Key::new(HMAC_SHA256, &bytes))),
            _ => {
                Err(io::Error::new(io::ErrorKind::InvalidData, "audit.key does not contain a key"))
            }
        }
    }

    /// Creates the key, after `begin` has prepared what must be there once the key is. If several processes do, the
    /// first one wins.
    pub fn create(folder: &Path, begin: impl FnOnce(&Self) -> io::Result<()>) -> io::Result<Self> {
        let mut bytes = [0; 32];
        getrandom(&mut bytes, GetRandomFlags::empty())?;
        begin(&Self(hmac::Key::new(HMAC_SHA256, &bytes)))?;
        // Link a complete file: a process that is killed here must not leave half a key.
        let unfinished = folder.join(format!("audit.key.new-{}", random_name()?));
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(&unfinished)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        let made = fs::hard_link(&unfinished, Self::path(folder));
        let _ = fs::remove_file(&unfinished);
        match made {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            other => other?,
        }
        File::open(folder)?.sync_all()?;
        Self::read(folder)
    }

    pub fn sign(&self, bytes: &[u8]) -> Mac {
        let tag = hmac::sign(&self.0, bytes);
        Mac(tag.as_ref().try_into().expect("SHA-256 has 32 bytes"))
    }

    pub fn verifies(&self, bytes: &[u8], mac: Mac) -> bool {
        verify_slices_are_equal(&self.sign(bytes).0, &mac.0).is_ok()
    }
}
