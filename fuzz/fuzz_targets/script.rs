//! Any text, read as a script: judging it ends, never panics, and what is denied in front of it stays
//! denied.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mcpz_policy::{Policy, Rule, Scene, Verdict};

fuzz_target!(|text: &str| {
    let scene = Scene { home: Some("/home/dev"), ..Scene::at("/srv/proj") };
    let deny = Policy { deny: vec![Rule::new("rm").expect("a rule")], ..Policy::default() };
    let allow = Policy {
        allow: Rule::list("ls,git,sed,awk,find,bash,env").expect("rules"),
        write_dirs: vec!["/srv/proj".into()],
        ..Policy::default()
    };
    for shell in ["sh", "bash"] {
        let _ = deny.judge(text, shell, &scene);
        let _ = allow.judge(text, shell, &scene);
        let before = format!("rm x; {text}");
        assert_ne!(deny.judge(&before, shell, &scene).verdict, Verdict::Allow);
    }
});
