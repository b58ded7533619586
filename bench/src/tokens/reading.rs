//! An output as a client reads it: the answer to a command, and what `read_job` says of the same command later.

use serde_json::{Value, json};

use crate::client::Client;

/// Everything a model is given for one form of an output, in as many answers as it takes.
#[derive(Default)]
pub struct Reading {
    /// The text of the answers.
    pub answer: String,
    structures: Vec<Value>,
}

/// A job that has ended, and whose output is kept.
pub struct Job(Value);

/// Runs a command twice: once as it is run by default, and once as a job.
pub fn run(client: &mut Client, command: &str) -> (Reading, Job) {
    let mut default = Reading::default();
    default.add(client.call("execute_command", &json!({"command": command})));
    let started = client.call("execute_command", &json!({"command": command, "background": true}));
    let job = Job(started["result"]["structuredContent"]["job_id"].clone());
    client.call("read_job", &json!({"job_id": job.0, "wait_for": "exit", "timeout": 600}));
    (default, job)
}

impl Job {
    /// The whole output in a view, page by page.
    pub fn view(&self, client: &mut Client, view: &str) -> Reading {
        let mut reading = Reading::default();
        let mut cursor = json!("bytes:0");
        loop {
            let arguments = json!({"job_id": self.0, "view": view, "cursor": cursor});
            let answer = client.call("read_job", &arguments);
            let next = answer["result"]["structuredContent"]["next_cursor"].clone();
            // A job that has ended still says where more would be.
            if next == cursor {
                break;
            }
            reading.add(answer);
            cursor = next;
        }
        reading
    }

    /// What changed since the command ran by default, in one answer: it is not read in pages.
    pub fn changes(&self, client: &mut Client) -> Reading {
        let mut reading = Reading::default();
        reading.add(client.call("read_job", &json!({"job_id": self.0, "view": "changes"})));
        reading
    }

    pub fn extraction(&self, client: &mut Client, kind: &str) -> Reading {
        let mut reading = Reading::default();
        let answer = client.call("read_job", &json!({"job_id": self.0, "extract": kind}));
        let found = reading.add(answer);
        assert!(!found["extracted"].is_null(), "{kind} in {found}");
        reading
    }
}

impl Reading {
    fn add(&mut self, answer: Value) -> &Value {
        let text = answer["result"]["content"][0]["text"].as_str();
        self.answer.push_str(text.expect("answers have a text"));
        self.structures.push(answer["result"]["structuredContent"].clone());
        &self.structures[self.structures.len() - 1]
    }

    /// What is shown of the output.
    pub fn shown(&self) -> String {
        let outputs = self.structures.iter().filter_map(|structure| structure["output"].as_str());
        outputs.collect()
    }

    /// Whether the output, or what was extracted from it, has a fact.
    pub fn says(&self, fact: &str) -> bool {
        self.shown().contains(fact)
            || self.structures.iter().any(|structure| has(&structure["extracted"], fact))
    }
}

fn has(value: &Value, fact: &str) -> bool {
    match value {
        Value::String(text) => text.contains(fact),
        Value::Array(values) => values.iter().any(|value| has(value, fact)),
        Value::Object(fields) => fields.values().any(|value| has(value, fact)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_is_found_in_what_is_shown_and_in_what_was_extracted_but_not_in_the_command() {
        let mut reading = Reading::default();
        let structure = json!({
            "command": "grep x", "output": "say \"a\"\n", "extracted": [{"message": "is \"b\""}],
        });
        let content = json!([{"type": "text", "text": structure.to_string()}]);
        reading.add(json!({"result": {"content": content, "structuredContent": structure}}));
        assert!(reading.says("say \"a\"") && reading.says("is \"b\""));
        assert!(!reading.says("grep"));
    }
}
