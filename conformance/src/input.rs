//! Tools that need something from the client before they can answer, from 2026-07-28 on: they answer
//! with what they need, and the client calls again with it.

use rmcp::model::{
    CallToolResponse, ClientCapabilities, ErrorData, InputRequest, InputRequiredResult,
    InputResponses,
};
use serde_json::{Value, json};

use crate::content::text;
use crate::requests::{elicitation, sampling};
use crate::seal::Seal;

type Answer = Result<CallToolResponse, ErrorData>;

/// What a client brings along when it calls again.
pub struct Retry<'a> {
    pub responses: Option<&'a InputResponses>,
    pub state: Option<&'a str>,
}

impl Retry<'_> {
    /// What was answered to one thing, if it can be an answer at all.
    pub fn answer(&self, key: &str) -> Option<&Value> {
        self.responses?.get(key).filter(|answer| answer.is_object())
    }
}

/// An answer that asks for something.
pub fn need<const N: usize>(
    requests: [(&str, InputRequest); N],
    state: Option<String>,
) -> InputRequiredResult {
    let requests = requests.into_iter().map(|(key, request)| (key.to_owned(), request));
    InputRequiredResult::new(Some(requests.collect()), state)
}

pub fn ask_for_name(retry: &Retry<'_>) -> Answer {
    Ok(match retry.answer("user_name") {
        Some(answer) => {
            let name = answer["content"]["name"].as_str().unwrap_or("whoever you are");
            text(format!("Hello, {name}!"))
        }
        None => need([("user_name", name("What is your name?")?)], None).into(),
    })
}

pub fn ask_model(retry: &Retry<'_>) -> Answer {
    Ok(match retry.answer("capital_question") {
        Some(answer) => {
            text(answer["content"]["text"].as_str().unwrap_or("something that is no text"))
        }
        None => {
            need([("capital_question", model("What is the capital of France?", 100))], None).into()
        }
    })
}

pub fn ask_for_roots(retry: &Retry<'_>) -> Answer {
    Ok(match retry.answer("client_roots") {
        Some(answer) => text(answer["roots"].to_string()),
        None => need([("client_roots", roots())], None).into(),
    })
}

/// Goes on only with the state that was given along with the question.
pub fn ask_with_state(retry: &Retry<'_>, seal: &Seal) -> Answer {
    if retry.answer("confirm").is_none() {
        let form = form("Please confirm", "ok", "boolean")?;
        return Ok(need([("confirm", form)], Some(seal.close("confirming"))).into());
    }
    seal.open(retry.state)?;
    Ok(text("state-ok"))
}

/// Asks for one thing of each kind at once.
pub fn ask_for_several(retry: &Retry<'_>, seal: &Seal) -> Answer {
    if ["user_name", "greeting", "client_roots"].iter().any(|key| retry.answer(key).is_none()) {
        let requests = [
            ("user_name", name("What is your name?")?),
            ("greeting", model("Generate a greeting", 50)),
            ("client_roots", roots()),
        ];
        return Ok(need(requests, Some(seal.close("several"))).into());
    }
    seal.open(retry.state)?;
    Ok(text("everything was answered"))
}

/// Asks twice, one after the other. Where it is, only the state says.
pub fn ask_twice(retry: &Retry<'_>, seal: &Seal) -> Answer {
    let round = retry.state.map(|_| seal.open(retry.state)).transpose()?;
    Ok(match round {
        Some("second") if retry.answer("step2").is_some() => text("both rounds are done"),
        Some("first") if retry.answer("step1").is_some() => {
            let form = form("Step 2: What is your favorite color?", "color", "string")?;
            need([("step2", form)], Some(seal.close("second"))).into()
        }
        _ => {
            let form = name("Step 1: What is your name?")?;
            need([("step1", form)], Some(seal.close("first"))).into()
        }
    })
}

/// Asks for no more than the client can give.
pub fn ask_within(capabilities: &ClientCapabilities) -> Answer {
    let asks_model = capabilities.sampling.is_some();
    let asks_people = capabilities.elicitation.is_some();
    Ok(match (asks_model, asks_people) {
        (true, _) => need([("greeting", model("Generate a greeting", 50))], None).into(),
        (false, true) => need([("user_name", name("What is your name?")?)], None).into(),
        (false, false) => text("there is nobody to ask"),
    })
}

fn name(message: &str) -> Result<InputRequest, ErrorData> {
    form(message, "name", "string")
}

fn form(message: &str, field: &str, kind: &str) -> Result<InputRequest, ErrorData> {
    elicitation(message, json!({field: {"type": kind}}), &[field]).map(InputRequest::Elicitation)
}

fn model(text: &str, max_tokens: u32) -> InputRequest {
    InputRequest::CreateMessage(sampling(text, max_tokens))
}

fn roots() -> InputRequest {
    InputRequest::ListRoots(Default::default())
}
