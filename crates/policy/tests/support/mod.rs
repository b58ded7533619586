//! Policies and checks in one line.

pub mod developer;
pub mod programs;

use mcpz_policy::{Judgement, Policy, Rule, Scene, Verdict};

pub fn allow(list: &str) -> Policy {
    Policy { allow: Rule::list(list).unwrap(), ..Policy::default() }
}

pub fn deny(list: &str) -> Policy {
    Policy { deny: Rule::list(list).unwrap(), ..Policy::default() }
}

pub const SCENE: Scene<'_> = Scene { home: Some("/home/dev"), ..Scene::at("/srv/proj") };

pub fn judge(policy: &Policy, command: &str) -> Judgement {
    policy.judge(command, "bash", &SCENE)
}

pub fn is_allowed(policy: &Policy, command: &str) -> bool {
    judge(policy, command).verdict == Verdict::Allow
}

pub fn all_allowed(policy: &Policy, commands: &[&str]) {
    for command in commands {
        let judgement = judge(policy, command);
        assert_eq!(judgement.verdict, Verdict::Allow, "{command}");
    }
}

pub fn all_denied(policy: &Policy, commands: &[&str]) {
    for command in commands {
        assert!(!is_allowed(policy, command), "{command}");
    }
}

/// The message of a refusal.
pub fn refusal(policy: &Policy, command: &str) -> String {
    match judge(policy, command).verdict {
        Verdict::Allow => panic!("{command} is allowed"),
        Verdict::Deny(denial) => denial.to_string(),
    }
}
