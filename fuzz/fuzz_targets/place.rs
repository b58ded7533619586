//! Any bytes, sent by a place that has greeted: the run there ends, and nothing panics.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    assert!(!mcpz_agent::play_place(bytes).0.is_empty());
});
