//! Checks the policy against a corpus of commands, most of which were run once against stub programs to see
//! what they do.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;

use mcpz_policy::{Policy, Rule, Scene, Verdict};
use serde_json::Value;

fn strings(value: &Value) -> Vec<String> {
    let all = value.as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

fn rules(value: &Value) -> Vec<Rule> {
    strings(value).iter().map(|text| Rule::new(text).unwrap()).collect()
}

fn verdict(case: &Value) -> Verdict {
    let policy = Policy {
        allow: rules(&case["policy"]["allow"]),
        deny: rules(&case["policy"]["deny"]),
        write_dirs: strings(&case["policy"]["write_dirs"]),
        ..Policy::default()
    };
    let scene =
        Scene { directory: "/srv/proj", home: Some("/home/dev"), variables: &[], typed: false };
    let (command, shell) = (case["command"].as_str().unwrap(), case["shell"].as_str().unwrap());
    policy.judge(command, shell, &scene).verdict
}

#[test]
fn the_corpus_is_judged_right() {
    let corpus = include_str!("corpus.jsonl");
    let mut counts: BTreeMap<(String, String), (u32, u32)> = BTreeMap::new();
    let mut wrong = Vec::new();
    for line in corpus.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let verdict = verdict(&case);
        let (tier, expect) = (case["tier"].as_str().unwrap(), case["expect"].as_str().unwrap());
        let right = (expect == "allow") == (verdict == Verdict::Allow);
        let count = counts.entry((tier.to_owned(), expect.to_owned())).or_default();
        count.0 += u32::from(right);
        count.1 += 1;
        if !right {
            wrong.push(format!("{tier} {expect} {} {}: {verdict:?}", case["id"], case["command"]));
        }
    }
    let share = |tier: &str, expect: &str| {
        let (right, all) =
            counts.get(&(tier.to_owned(), expect.to_owned())).copied().unwrap_or((1, 1));
        f64::from(right) / f64::from(all)
    };
    let all = wrong.join("\n");
    assert_eq!(share("core", "deny"), 1.0, "{counts:?}\n{all}");
    assert!(share("core", "allow") >= 0.98, "{counts:?}\n{all}");
    assert!(share("extended", "deny") >= 0.95, "{counts:?}\n{all}");
    assert!(share("extended", "allow") >= 0.95, "{counts:?}\n{all}");
    println!("{counts:?}\n{all}");
}
