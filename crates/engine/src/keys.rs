pub const KEY_NAMES: &str = "enter";
pub fn key_bytes(name: &str, _application: bool) -> Option<Vec<u8>> {
    (name == "enter").then(|| b"\r".to_vec())
}
