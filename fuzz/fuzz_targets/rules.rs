//! Any text as a rule, on the first line, and as arguments, on those that follow.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mcpz_policy::{Policy, Rule, Scene};

fuzz_target!(|text: &str| {
    let mut lines = text.lines();
    let Some(Ok(rule)) = lines.next().map(Rule::new) else { return };
    let words: Vec<_> = lines.map(str::to_owned).collect();
    let scene = Scene::at("/srv/proj");
    let deny = Policy { deny: vec![rule.clone()], ..Policy::default() };
    let allow = Policy { allow: vec![rule], ..Policy::default() };
    let _ = deny.judge_words(&words, &scene);
    let _ = allow.judge_words(&words, &scene);
    let _ = deny.judge(&words.join(" "), "bash", &scene);
});
