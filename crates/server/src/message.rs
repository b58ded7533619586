//! Reads JSON-RPC messages from lines, and says what is wrong with a line that is not one.
//!
//! A line that is broken, too long or not UTF-8 is answered to its id, if that can be found at either end of the line.
//! So is one with a key that occurs twice in an object.

use std::cell::RefCell;
use std::marker::PhantomData;

use rmcp::RoleServer;
use rmcp::model::{
    ClientRequest, CustomRequest, ErrorCode, ErrorData, GetMeta, JsonRpcRequest, JsonRpcVersion2_0,
    RequestId,
};
use rmcp::service::RxJsonRpcMessage;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::lines::{Line, MAX_LINE};
use crate::repeated_key::RepeatedKey;
use crate::task_methods;

pub type Message = RxJsonRpcMessage<RoleServer>;

/// The most messages of one line: each takes many times as much memory as on the line.
const MAX_BATCH: usize = 100;

/// How many characters of a key an error shows.
const MAX_NAMED: usize = 100;

/// A longer line is parsed on another thread: 8 MiB of numbers take a fifth of a second.
pub const LARGE: usize = 256 << 10;

/// What is wrong with a line, and the request to answer.
#[derive(Debug, PartialEq)]
pub struct Fault {
    /// Boxed because it is large and rare.
    pub error: Box<ErrorData>,
    pub id: Option<RequestId>,
}

impl Fault {
    pub fn new(error: ErrorData, id: Option<RequestId>) -> Self {
        Self { error: Box::new(error), id }
    }
}

const METHODS: &[&str] = &[
    "completion/complete",
    "initialize",
    "logging/setLevel",
    "ping",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/subscribe",
    "resources/templates/list",
    "resources/unsubscribe",
    "server/discover",
    "subscriptions/listen",
    "tools/call",
    "tools/list",
];

/// Whether the protocol has this method, whether or not this server answers it.
pub fn is_known_method(method: &str) -> bool {
    METHODS.contains(&method)
}

/// The messages of one line: one, or several in a batch, each readable or faulty.
pub fn read(line: Line) -> Vec<Result<Message, Fault>> {
    let bytes = match line {
        Line::Whole(bytes) => bytes,
        Line::TooLong { start, end } => {
            let id = id_at_start(&start).or_else(|| id_at_end(&end));
            let message = format!("Parse error: the message is longer than {MAX_LINE} bytes");
            return vec![Err(Fault::new(parse_error(message), id))];
        }
    };
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes).trim_ascii();
    match bytes.first() {
        None => Vec::new(),
        Some(b'[') => read_batch(bytes),
        Some(_) => vec![read_one(bytes)],
    }
}

/// Each message of a batch is answered on its own. Only revision 2025-03-26 has batches.
fn read_batch(bytes: &[u8]) -> Vec<Result<Message, Fault>> {
    match serde_json::from_slice::<Batch<Value>>(bytes).map(|batch| batch.0) {
        Ok(values) if values.is_empty() => {
            let error = ErrorData::invalid_request("Invalid Request: the batch is empty", None);
            vec![Err(Fault::new(error, None))]
        }
        Ok(values) if values.len() > MAX_BATCH => {
            let text = format!("Invalid Request: the batch has more than {MAX_BATCH} messages");
            vec![Err(Fault::new(ErrorData::invalid_request(text, None), None))]
        }
        Ok(values) => {
            let repeated = serde_json::from_slice::<Batch<RepeatedKey>>(bytes);
            let repeated = repeated.map(|batch| batch.0).unwrap_or_default();
            let of_each = repeated.into_iter().chain(std::iter::repeat(RepeatedKey(None)));
            values.into_iter().zip(of_each).map(|(value, key)| from_value(value, key)).collect()
        }
        Err(error) => {
            vec![Err(Fault::new(parse_error(format!("Parse error: {error}")), None))]
        }
    }
}

/// Something of each message of a batch, up to one more than it may have.
struct Batch<T>(Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Batch<T> {
    fn deserialize<D: Deserializer<'de>>(batch: D) -> Result<Self, D::Error> {
        struct Values<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Values<T> {
            type Value = Batch<T>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a batch")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Batch<T>, A::Error> {
                let mut values = Vec::new();
                while values.len() <= MAX_BATCH
                    && let Some(value) = elements.next_element()?
                {
                    values.push(value);
                }
                while elements.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Batch(values))
            }
        }

        batch.deserialize_seq(Values(PhantomData))
    }
}

fn from_value(value: Value, repeated: RepeatedKey) -> Result<Message, Fault> {
    let id = value.get("id").cloned().and_then(|id| serde_json::from_value(id).ok());
    match repeated.0 {
        // Which id is meant is just what nobody can tell.
        Some(key) if key == "id" => Err(invalid(&twice(&key), None)),
        Some(key) => Err(invalid(&twice(&key), id)),
        None => serde_json::from_value(value).map_err(|error| invalid(&error, id)),
    }
}

fn read_one(bytes: &[u8]) -> Result<Message, Fault> {
    // What is not JSON is left to code that can say so.
    if let Ok(RepeatedKey(Some(key))) = serde_json::from_slice(bytes) {
        return Err(invalid(&twice(&key), id_at_start(bytes)));
    }
    if let Some(request) = read_directly(bytes) {
        return Ok(request);
    }
    let error = match serde_json::from_slice(bytes) {
        Ok(message) => return Ok(message),
        Err(error) => error,
    };
    // Only now, because few lines need it: is the line not JSON, or JSON but not a message?
    let not_json = match std::str::from_utf8(bytes) {
        Ok(text) => serde_json::from_str::<IgnoredAny>(text).err().map(|error| error.to_string()),
        Err(error) => Some(error.to_string()),
    };
    let id = id_at_start(bytes);
    match not_json {
        None => Err(invalid(&error, id)),
        Some(why) => {
            let error = parse_error(format!("Parse error: {why}"));
            Err(Fault::new(error, id.or_else(|| id_at_end(bytes))))
        }
    }
}

/// Reads the requests that are not left to the library: tool calls, because the library tries every other kind of
/// message first, which takes longer than everything else we do for a call; and requests about tasks, because the
/// library offers tasks to clients of all revisions or to none, and its subscriptions know no tasks. Everything else,
/// and every message that does not quite fit, is left to code that can say what is wrong.
fn read_directly(bytes: &[u8]) -> Option<Message> {
    #[derive(Deserialize)]
    struct Head<'a> {
        #[serde(rename = "jsonrpc")]
        _version: JsonRpcVersion2_0,
        id: RequestId,
        method: &'a str,
    }
    let head: Head<'_> = serde_json::from_slice(bytes).ok()?;
    let request = match head.method {
        "tools/call" => ClientRequest::CallToolRequest(serde_json::from_slice(bytes).ok()?),
        "tasks/get" | "tasks/update" | "tasks/cancel" | "subscriptions/listen" => {
            let request: CustomRequest = serde_json::from_slice(bytes).ok()?;
            let ours = task_methods::is_about_tasks(&request, request.get_meta());
            ClientRequest::CustomRequest(ours.then_some(request)?)
        }
        _ => return None,
    };
    Some(Message::Request(JsonRpcRequest::new(head.id, request)))
}

/// Two readers of a message could take one value each: the one that checks it, and the one that acts on it.
fn twice(key: &str) -> String {
    let key: String = key.chars().take(MAX_NAMED).collect();
    format!("the key `{}` occurs twice in an object", key.escape_debug())
}

fn invalid(error: &impl std::fmt::Display, id: Option<RequestId>) -> Fault {
    Fault::new(ErrorData::invalid_request(format!("Invalid Request: {error}"), None), id)
}

fn parse_error(message: String) -> ErrorData {
    ErrorData::new(ErrorCode::PARSE_ERROR, message, None)
}

/// The id of a message that is broken behind it.
fn id_at_start(bytes: &[u8]) -> Option<RequestId> {
    let found = RefCell::new(None);
    let text = String::from_utf8_lossy(bytes);
    let mut json = serde_json::Deserializer::from_str(&text);
    // It fails where the message is broken; an id before that is found.
    let _ = json.deserialize_map(IdFinder(&found));
    found.into_inner()
}

/// The id of a message that is broken before it. Many clients write it last.
fn id_at_end(bytes: &[u8]) -> Option<RequestId> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_end().strip_suffix('}')?;
    let (_, id) = text.rsplit_once("\"id\"")?;
    serde_json::from_str(id.trim_start().strip_prefix(':')?).ok()
}

struct IdFinder<'a>(&'a RefCell<Option<RequestId>>);

impl<'de> Visitor<'de> for IdFinder<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if key == "id" && self.0.take().is_some() {
                // A second one: which is meant?
                return Ok(());
            } else if key == "id" {
                *self.0.borrow_mut() = Some(map.next_value::<RequestId>()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fault(line: &[u8]) -> (ErrorCode, Option<RequestId>) {
        let mut messages = read(Line::Whole(line.to_vec()));
        assert_eq!(messages.len(), 1);
        let fault = messages.remove(0).expect_err("the line is faulty");
        (fault.error.code, fault.id)
    }

    fn number(id: i64) -> Option<RequestId> {
        Some(RequestId::Number(id))
    }

    #[test]
    fn a_broken_message_is_answered_to_its_id_wherever_that_stands() {
        let parse = ErrorCode::PARSE_ERROR;
        assert_eq!(fault(br#"{"jsonrpc":"2.0","id":7,"method":"#), (parse, number(7)));
        assert_eq!(fault(br#"{"method":nonsense,"id":7}"#), (parse, number(7)));
        assert_eq!(fault(b"{\"method\":\"\xff\",\"id\":7}"), (parse, number(7)));
        let text = Some(RequestId::String("a}".into()));
        assert_eq!(fault(br#"{"method":,"id" : "a}"}"#), (parse, text));
        assert_eq!(fault(b"garbage"), (parse, None));
        assert_eq!(fault(br#"{"params":{"id":9},"#), (parse, None));
    }

    #[test]
    fn a_call_is_read_as_the_library_reads_it() {
        for call in [
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}"#,
            r#"{"params":{"_meta":{"progressToken":7,"a":1},"arguments":{"b":[1]},"name":"x"},
                "method":"tools/call","id":"s","jsonrpc":"2.0"}"#,
        ] {
            let quickly = read_directly(call.as_bytes()).unwrap();
            let usually: Message = serde_json::from_str(call).unwrap();
            let shown = |message: &Message| format!("{message:?}");
            assert_eq!(shown(&quickly), shown(&usually));
        }
        for other in [
            r#"{"jsonrpc":"1.0","id":1,"method":"tools/call","params":{"name":"x"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#,
            r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"x"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
        ] {
            assert!(read_directly(other.as_bytes()).is_none(), "{other}");
        }
    }

    #[test]
    fn requests_about_tasks_are_not_left_to_the_library() {
        let request = |method: &str, version: &str, params: &str| {
            let meta =
                format!(r#""_meta":{{"io.modelcontextprotocol/protocolVersion":"{version}"}}"#);
            let text = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params},{meta}}}}}"#
            );
            read_directly(text.as_bytes()).is_some()
        };
        let (id, new) = (r#""taskId":"x""#, "2026-07-28");
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            assert!(request(method, new, id) && !request(method, "2025-11-25", id), "{method}");
        }
        assert!(!request("tasks/result", new, id));
        let listen = "subscriptions/listen";
        assert!(request(listen, new, r#""notifications":{"taskIds":["x"]}"#));
        assert!(!request(listen, new, r#""notifications":{"resourceSubscriptions":["x"]}"#));
    }

    #[test]
    fn json_that_is_not_a_message_is_an_invalid_request() {
        let invalid = ErrorCode::INVALID_REQUEST;
        assert_eq!(fault(br#"{"id":3}"#), (invalid, number(3)));
        assert_eq!(fault(br#"{"jsonrpc":"1.0","id":3,"method":"ping"}"#), (invalid, number(3)));
        assert_eq!(fault(b"42"), (invalid, None));
        assert_eq!(fault(b"[]"), (invalid, None));
    }

    #[test]
    fn a_key_that_occurs_twice_is_named_and_answered_to_the_id() {
        let told = |line: &str| match read(Line::Whole(line.into())).remove(0) {
            Err(fault) => (fault.error.message.into_owned(), fault.error.code, fault.id),
            Ok(message) => panic!("{message:?}"),
        };
        let text =
            |key: &str| format!("Invalid Request: the key `{key}` occurs twice in an object");
        let code = ErrorCode::INVALID_REQUEST;
        let line = r#"{"jsonrpc":"2.0","id":4,"method":"tools/call",
            "params":{"name":"x","arguments":{"command":"ls","comm\u0061nd":"rm"}}}"#;
        assert_eq!(told(line), (text("command"), code, number(4)));
        let line = r#"{"jsonrpc":"2.0","method":"ping","id":4,"x":[[{"a":{"b":1,"b":1}}]]}"#;
        assert_eq!(told(line), (text("b"), code, number(4)));
        // Nobody can tell which one is meant.
        let line = r#"{"jsonrpc":"2.0","id":4,"method":"ping","id":5}"#;
        assert_eq!(told(line), (text("id"), code, None));
        assert_eq!(told(&format!("[{line}]")), (text("id"), code, None));
        let same =
            r#"{"jsonrpc":"2.0","id":4,"method":"ping","params":{"a":{"a":[{"a":1},{"a":1}]}}}"#;
        assert!(read(Line::Whole(same.into()))[0].is_ok());
    }

    #[test]
    fn only_the_message_of_a_batch_that_repeats_a_key_is_refused() {
        let batch = br#"[{"jsonrpc":"2.0","id":1,"method":"ping"},
            {"jsonrpc":"2.0","id":2,"method":"ping","method":"ping"}]"#;
        let messages = read(Line::Whole(batch.to_vec()));
        assert!(messages[0].is_ok());
        assert!(matches!(&messages[1], Err(fault) if fault.id == number(2)));
    }

    #[test]
    fn nesting_without_end_is_a_parse_error() {
        let deep = [b"{\"id\":1,\"params\":".as_slice(), &b"[".repeat(10_000)].concat();
        assert_eq!(fault(&deep), (ErrorCode::PARSE_ERROR, number(1)));
    }

    #[test]
    fn the_messages_of_a_batch_are_read_one_by_one() {
        let batch = br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}, 5, {"id":2}]"#;
        let messages = read(Line::Whole(batch.to_vec()));
        assert!(matches!(messages[0], Ok(Message::Request(_))));
        assert!(matches!(&messages[1], Err(fault) if fault.id.is_none()));
        assert!(matches!(&messages[2], Err(fault) if fault.id == number(2)));
    }

    #[test]
    fn an_empty_line_has_no_message() {
        assert!(read(Line::Whole(b"  ".to_vec())).is_empty());
    }

    proptest! {
        #[test]
        fn no_line_is_too_strange_to_be_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            read(Line::Whole(bytes));
        }
    }
}
