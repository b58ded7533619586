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
    let scene = Scene { home: Some("/home/dev"), ..Scene::at("/srv/proj") };
    let (command, shell) = (case["command"].as_str().unwrap(), case["shell"].as_str().unwrap());
    policy.judge(command, shell, &scene).verdict
}

/// The share of cases that are judged right, by their tier and what is expected.
struct Score {
    counts: BTreeMap<(String, String), (u32, u32)>,
    wrong: Vec<String>,
}

impl Score {
    fn of(cases: &str) -> Self {
        let mut score = Self { counts: BTreeMap::new(), wrong: Vec::new() };
        for line in cases.lines() {
            let case: Value = serde_json::from_str(line).unwrap();
            let verdict = verdict(&case);
            let (tier, expect) = (case["tier"].as_str().unwrap(), case["expect"].as_str().unwrap());
            let right = (expect == "allow") == (verdict == Verdict::Allow);
            let count = score.counts.entry((tier.to_owned(), expect.to_owned())).or_default();
            count.0 += u32::from(right);
            count.1 += 1;
            if !right {
                let (id, command) = (&case["id"], &case["command"]);
                score.wrong.push(format!("{tier} {expect} {id} {command}: {verdict:?}"));
            }
        }
        score
    }

    fn assert(&self, tier: &str, expect: &str, least: f64) {
        let known = self.counts.get(&(tier.to_owned(), expect.to_owned()));
        let (right, all) = known.copied().unwrap_or((1, 1));
        let (counts, wrong) = (&self.counts, self.wrong.join("\n"));
        assert!(f64::from(right) / f64::from(all) >= least, "{counts:?}\n{wrong}");
    }
}

#[test]
fn the_corpus_is_judged_right() {
    let score = Score::of(include_str!("corpus.jsonl"));
    score.assert("core", "deny", 1.0);
    score.assert("core", "allow", 0.98);
    score.assert("extended", "deny", 0.95);
    score.assert("extended", "allow", 0.95);
}

#[test]
fn attacks_that_once_ran_are_refused() {
    let score = Score::of(include_str!("attacks.jsonl"));
    score.assert("core", "deny", 1.0);
    // One of them passes a folder with other programs to man, and only the run told that it does not use them.
    score.assert("core", "allow", 0.87);
    score.assert("extended", "deny", 1.0);
    score.assert("extended", "allow", 1.0);
}
