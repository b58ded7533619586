//! What is mounted, as the kernel tells in `/proc/self/mountinfo`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// One line of it.
#[derive(Debug, PartialEq, Eq)]
pub struct Mount {
    pub device: Vec<u8>,
    /// The folder of the file system that is mounted at `point`.
    pub root: PathBuf,
    pub point: PathBuf,
    /// The kind of the file system, such as `tmpfs`.
    pub kind: Vec<u8>,
}

/// All mounts that this process sees.
pub fn mounts() -> Vec<Mount> {
    parse(&std::fs::read("/proc/self/mountinfo").unwrap_or_default()).collect()
}

pub fn parse(text: &[u8]) -> impl Iterator<Item = Mount> {
    text.split(|byte| *byte == b'\n').filter_map(Mount::parse)
}

impl Mount {
    fn parse(line: &[u8]) -> Option<Self> {
        let mut fields = line.split(|byte| *byte == b' ');
        let device = fields.nth(2)?.to_vec();
        let (root, point) = (unescaped(fields.next()?), unescaped(fields.next()?));
        fields.find(|field| field == b"-")?;
        Some(Self { device, root, point, kind: fields.next()?.to_vec() })
    }
}

/// Decodes a field, in which the kernel writes blanks, newlines and backslashes as three octal digits.
fn unescaped(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match (first, code) {
            (b'\\', Some(code)) => {
                bytes.push(code);
                rest = &after[3..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_any_number_of_optional_fields_is_understood() {
        let text = b"20 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
            35 24 0:31 /a /srv/with\\040blank rw,relatime shared:16 master:2 - binfmt_misc none rw\n\
            not a mount\n";
        let found: Vec<_> = parse(text).map(|it| (it.root, it.point, it.kind)).collect();
        let expected = [("/", "/", "ext4"), ("/a", "/srv/with blank", "binfmt_misc")]
            .map(|(root, point, kind)| (root.into(), point.into(), kind.into()));
        assert_eq!(found, expected);
    }
}
