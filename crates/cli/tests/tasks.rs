//! Tasks: calls that are answered with a handle, and asked about later.

#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a test may panic")]

mod support;

use serde_json::{Value, json};
use support::http::{Events, HttpServer, Request, call};
use support::{Gate, Server, mark, meta, survivors, wait_until};

const TASKS: &str = "io.modelcontextprotocol/tasks";

/// Makes calls tasks before long.
const SOON: [&str; 2] = ["--background-after", "1"];

/// What a request says about itself that can be answered with a task.
fn declared() -> Value {
    let mut meta = meta();
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({"extensions": {TASKS: {}}});
    meta
}

fn ask(server: &mut Server, method: &str, mut params: Value) -> Value {
    params["_meta"] = declared();
    server.request(method, params)
}

fn execute(server: &mut Server, arguments: Value) -> Value {
    ask(server, "tools/call", json!({"name": "execute_command", "arguments": arguments}))["result"]
        .clone()
}

/// Runs a command that takes long and returns the id of its task.
fn begin(server: &mut Server, command: &str) -> Value {
    let handle = execute(server, json!({"command": command}));
    assert_eq!(handle["resultType"], "task", "{handle}");
    handle["taskId"].clone()
}

fn get(server: &mut Server, id: &Value) -> Value {
    ask(server, "tasks/get", json!({"taskId": id}))["result"].clone()
}

/// A task once it has ended.
fn ended(server: &mut Server, id: &Value) -> Value {
    wait_until("the task ends", || Some(get(server, id)).filter(|task| task["status"] != "working"))
}

#[test]
fn a_call_of_a_few_seconds_is_answered_as_usual() {
    let mut server = Server::start_silent(&[]);
    let answer = execute(&mut server, json!({"command": "sleep 3; echo done"}));
    assert_eq!(answer["structuredContent"]["output"], "done\n", "{answer}");
}

#[test]
fn a_call_that_takes_long_is_a_task_and_its_answer_is_fetched_later() {
    let mut server = Server::start_silent(&SOON);
    let gate = Gate::new();
    let command = format!("echo begun; {}; echo done; exit 3", gate.wait());
    let handle = execute(&mut server, json!({"command": command}));
    assert_eq!((&handle["resultType"], &handle["status"]), (&json!("task"), &json!("working")));
    assert_eq!((&handle["ttlMs"], &handle["statusMessage"]), (&Value::Null, &json!("begun")));
    assert_eq!(handle["pollIntervalMs"], 500);
    assert!(handle["createdAt"].as_str().unwrap().ends_with('Z'));
    let id = handle["taskId"].clone();
    assert_eq!(id.as_str().unwrap().len(), 32);
    let working = get(&mut server, &id);
    assert_eq!(
        (&working["resultType"], &working["status"]),
        (&json!("complete"), &json!("working"))
    );
    drop(gate);
    let task = ended(&mut server, &id);
    assert_eq!((&task["status"], &task["taskId"]), (&json!("completed"), &id));
    let reply = &task["result"]["structuredContent"];
    assert_eq!((&reply["output"], &reply["return_code"]), (&json!("begun\ndone\n"), &json!(3)));
    assert_eq!(task["result"]["isError"], false);
    assert!(task["ttlMs"].as_u64().unwrap() > 3_600_000, "{task}");
    assert_eq!(get(&mut server, &id), task, "what has ended stays as it is");
}

#[test]
fn a_call_that_ends_soon_is_answered_as_ever() {
    let mut server = Server::start_silent(&SOON);
    let answer = execute(&mut server, json!({"command": "echo hi"}));
    assert_eq!(answer["resultType"], "complete");
    assert_eq!(answer["structuredContent"]["output"], "hi\n");
}

#[test]
fn cancelling_a_task_ends_everything_it_started() {
    let mark = mark();
    let mut server = Server::start_silent(&SOON);
    let command = format!(
        "export MARK={mark}; trap '' TERM; (setsid sleep 300 &); sleep 300 & while :; do sleep 1; done"
    );
    let id = begin(&mut server, &command);
    wait_until("its processes", || (survivors(&mark).len() >= 3).then_some(()));
    let ack = ask(&mut server, "tasks/cancel", json!({"taskId": id}))["result"].clone();
    assert_eq!(ack, json!({"resultType": "complete"}));
    let task = ended(&mut server, &id);
    assert_eq!((&task["status"], &task["result"]), (&json!("cancelled"), &Value::Null));
    assert!(survivors(&mark).is_empty());
    let again = ask(&mut server, "tasks/cancel", json!({"taskId": id}))["result"].clone();
    assert_eq!(again, ack);
    assert_eq!(get(&mut server, &id)["status"], "cancelled");
}

#[test]
fn a_task_that_has_ended_is_not_cancelled_any_more() {
    let mut server = Server::start_silent(&SOON);
    let gate = Gate::new();
    let id = begin(&mut server, &gate.wait());
    drop(gate);
    ended(&mut server, &id);
    ask(&mut server, "tasks/cancel", json!({"taskId": id}));
    assert_eq!(get(&mut server, &id)["status"], "completed");
}

#[test]
fn a_command_that_is_ended_at_its_timeout_is_a_completed_task_with_an_error() {
    let mut server = Server::start_silent(&SOON);
    let handle = execute(&mut server, json!({"command": "sleep 300", "timeout": 4}));
    let task = ended(&mut server, &handle["taskId"]);
    assert_eq!((&task["status"], &task["result"]["isError"]), (&json!("completed"), &json!(true)));
    assert_eq!(task["result"]["structuredContent"]["timed_out"], true);
}

#[test]
fn other_tools_and_sessions_have_tasks_as_well() {
    let mut server = Server::start_silent(&[&SOON[..], &["--tools", "default,shell"]].concat());
    let gate = Gate::new();
    let command = format!("cd /; {}; pwd", gate.wait());
    let shell = json!({"name": "shell", "arguments": {"command": command}});
    let shell = ask(&mut server, "tools/call", shell)["result"]["taskId"].clone();
    let session =
        execute(&mut server, json!({"command": command, "session": "a"}))["taskId"].clone();
    drop(gate);
    let shell = ended(&mut server, &shell);
    assert_eq!(shell["result"]["structuredContent"]["stdout"], "/\n");
    assert_eq!(ended(&mut server, &session)["result"]["structuredContent"]["cwd"], "/");
}

#[test]
fn a_command_that_asks_for_input_completes_its_task_with_a_job() {
    let mut server = Server::start_silent(&SOON);
    let gate = Gate::new();
    let command = format!("{}; printf 'Name: '; read name; echo \"hello $name\"", gate.wait());
    let id = execute(&mut server, json!({"command": command, "tty": true}))["taskId"].clone();
    drop(gate);
    let reply = ended(&mut server, &id)["result"]["structuredContent"].clone();
    assert_eq!((&reply["waiting_for_input"], &reply["prompt"]), (&json!(true), &json!("Name:")));
    let answer = json!({"job_id": reply["job_id"], "text": "Ada\n", "wait_for": "exit"});
    let wrote = ask(&mut server, "tools/call", json!({"name": "write_job", "arguments": answer}));
    let output = wrote["result"]["structuredContent"]["output"].as_str().unwrap().to_owned();
    assert!(output.contains("hello Ada"), "{output}");
}

#[test]
fn a_call_that_would_become_a_job_becomes_a_task_at_that_time() {
    let mut server = Server::start_silent(&SOON);
    let gate = Gate::new();
    let id = begin(&mut server, &format!("{}; echo done", gate.wait()));
    drop(gate);
    let reply = ended(&mut server, &id)["result"]["structuredContent"].clone();
    assert_eq!((&reply["output"], &reply["job_id"]), (&json!("done\n"), &Value::Null));
}

#[test]
fn progress_ends_with_the_handle() {
    let mut server = Server::start_silent(&SOON);
    let gate = Gate::new();
    let count = gate.wait().replace("do ", "do i=$((i + 1)); echo $i; ");
    let mut meta = declared();
    meta["progressToken"] = json!("p");
    let call = json!({"name": "execute_command", "arguments": {"command": count}, "_meta": meta});
    let handle = server.request("tools/call", call);
    assert_eq!(handle["result"]["resultType"], "task");
    let told = |server: &Server| {
        server.seen.iter().filter(|message| message["method"] == "notifications/progress").count()
    };
    let before = told(&server);
    assert!(before > 0);
    let newest = |task: &Value| {
        let text = task["statusMessage"].as_str().unwrap();
        text.lines().last().unwrap().parse::<u64>().unwrap()
    };
    let then = newest(&handle["result"]);
    let id = &handle["result"]["taskId"];
    wait_until("it has printed more", || (newest(&get(&mut server, id)) > then + 50).then_some(()));
    assert_eq!(told(&server), before);
}

#[test]
fn whoever_listens_to_tasks_is_told_of_their_end() {
    let mut server = Server::start_silent(&SOON);
    let gate = Gate::new();
    let id = begin(&mut server, &format!("{}; echo done", gate.wait()));
    let filter = json!({"taskIds": [id, "unknown"]});
    let listen = json!({"notifications": filter, "_meta": declared()});
    let listening = server.ask("subscriptions/listen", listen);
    let heard = |message: &Value| {
        message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == listening
    };
    let acknowledged = server.wait_for(heard);
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(acknowledged["params"]["notifications"], json!({"taskIds": [id]}));
    drop(gate);
    let mut told = server.wait_for(heard);
    assert_eq!(told["method"], "notifications/tasks");
    told["params"].as_object_mut().unwrap().remove("_meta");
    let mut task = get(&mut server, &id);
    task.as_object_mut().unwrap().remove("resultType");
    assert_eq!(told["params"], task, "they are told what others ask for");
}

#[test]
fn tasks_and_outputs_can_be_listened_to_at_once() {
    let mut server = Server::start_silent(&SOON);
    let gate = Gate::new();
    let command = format!("{}; echo done", gate.wait());
    let job = execute(&mut server, json!({"command": command, "background": true}));
    let uri = job["content"][1]["uri"].clone();
    let id = begin(&mut server, &gate.wait());
    let filter = json!({"taskIds": [id], "resourceSubscriptions": [uri, "mcp://tmp/exec-x.out"]});
    server.ask("subscriptions/listen", json!({"notifications": filter, "_meta": declared()}));
    let said = |method: &'static str| move |message: &Value| message["method"] == method;
    let acknowledged = server.wait_for(said("notifications/subscriptions/acknowledged"));
    let accepted = json!({"taskIds": [id], "resourceSubscriptions": [uri]});
    assert_eq!(acknowledged["params"]["notifications"], accepted);
    drop(gate);
    assert_eq!(server.wait_for(said("notifications/tasks"))["params"]["taskId"], id);
    assert_eq!(server.wait_for(said("notifications/resources/updated"))["params"]["uri"], uri);
}

#[test]
fn the_extension_is_offered_to_those_who_declare_it() {
    let mut server = Server::start_silent(&SOON);
    let discovered = ask(&mut server, "server/discover", json!({}));
    assert_eq!(discovered["result"]["capabilities"]["extensions"], json!({TASKS: {}}));
    let discovered = server.request("server/discover", json!({"_meta": meta()}));
    let capabilities = &discovered["result"]["capabilities"];
    assert_eq!((&capabilities["tools"], &capabilities["extensions"]), (&json!({}), &Value::Null));
}

#[test]
fn whoever_does_not_declare_tasks_has_none() {
    let mut server = Server::start_silent(&SOON);
    let gate = Gate::new();
    let id = begin(&mut server, &gate.wait());
    let slow =
        json!({"name": "execute_command", "arguments": {"command": "sleep 2.5"}, "_meta": meta()});
    let answer = server.request("tools/call", slow);
    assert!(answer["result"]["structuredContent"]["job_id"].is_string(), "{answer}");
    for (method, params) in [
        ("tasks/get", json!({"taskId": id})),
        ("tasks/update", json!({"taskId": id, "inputResponses": {}})),
        ("tasks/cancel", json!({"taskId": id})),
        ("subscriptions/listen", json!({"notifications": {"taskIds": [id]}})),
    ] {
        let mut params = params;
        params["_meta"] = meta();
        let error = server.request(method, params)["error"].clone();
        assert_eq!(error["code"], -32021, "{method}: {error}");
        let needed = json!({"requiredCapabilities": {"extensions": {TASKS: {}}}});
        assert_eq!(error["data"], needed);
    }
    assert_eq!(get(&mut server, &id)["status"], "working");
}

#[test]
fn a_client_of_an_older_revision_never_hears_of_tasks() {
    let mut server = Server::start_silent(&[]);
    let capabilities = json!({"extensions": {TASKS: {}}});
    let client = json!({"name": "test", "version": "1"});
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client,
    });
    let shaken = server.request("initialize", params);
    assert_eq!(shaken["result"]["capabilities"]["extensions"], Value::Null);
    server.notify("notifications/initialized", json!({}));
    let answer = server.call(json!({"command": "sleep 2.5; echo done"}));
    assert_eq!(answer["output"], "done\n");
    for method in ["tasks/get", "tasks/update", "tasks/cancel", "tasks/result", "tasks/list"] {
        let error = server.request(method, json!({"taskId": "x", "inputResponses": {}}));
        assert_eq!(error["error"]["code"], -32601, "{method}: {error}");
    }
}

#[test]
fn what_is_wrong_with_a_question_is_told() {
    let mut server = Server::start_silent(&SOON);
    let gate = Gate::new();
    let id = begin(&mut server, &gate.wait());
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let error = ask(&mut server, method, json!({"taskId": "x"}))["error"].clone();
        assert_eq!(
            (&error["code"], &error["message"]),
            (&json!(-32602), &json!("there is no task x"))
        );
        let error = ask(&mut server, method, json!({"taskId": 7}))["error"].clone();
        assert_eq!(error["message"], format!("Invalid params for {method}"));
    }
    let gone = ask(&mut server, "tasks/result", json!({"taskId": id}));
    assert_eq!(gone["error"]["code"], -32601);
    let answers = json!({"taskId": id, "inputResponses": {"never asked": {"action": "accept"}}});
    let updated = ask(&mut server, "tasks/update", answers)["result"].clone();
    assert_eq!(updated, json!({"resultType": "complete"}));
}

#[test]
fn tasks_end_with_the_connection() {
    let mark = mark();
    let mut server = Server::start_silent(&SOON);
    begin(&mut server, &format!("MARK={mark} setsid sleep 300"));
    wait_until("the process", || (!survivors(&mark).is_empty()).then_some(()));
    server.close_stdin();
    server.wait();
    assert!(survivors(&mark).is_empty());
}

/// A message that declares tasks, over HTTP.
fn alone(message: Value) -> Request {
    let mut request = Request::alone(message);
    let mut message: Value = serde_json::from_slice(&request.body).unwrap();
    message["params"]["_meta"] = declared();
    request.body = message.to_string().into_bytes();
    match message["params"]["taskId"].as_str() {
        Some(id) => request.with("mcp-name", id),
        None => request,
    }
}

fn about(method: &str, id: &Value) -> Request {
    alone(json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"taskId": id}}))
}

#[test]
fn over_http_a_task_outlives_its_connection_and_is_nobody_elses() {
    let tokens = "[http.tokens]\nbob = \"bob-0123456789abcdef\"\n";
    let server = HttpServer::start_with(&SOON, tokens);
    let gate = Gate::new();
    let command = json!({"command": format!("{}; echo done", gate.wait())});
    let handle = server.send(&alone(call(1, "execute_command", command))).messages().pop().unwrap();
    let id = handle["result"]["taskId"].clone();
    let as_bob = |request: Request| request.by("bob-0123456789abcdef");
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let refused = server.send(&as_bob(about(method, &id))).json()["error"].clone();
        let text = format!("there is no task {}", id.as_str().unwrap());
        assert_eq!((&refused["code"], &refused["message"]), (&json!(-32602), &json!(text)));
    }
    let listen = json!({"jsonrpc": "2.0", "id": 3, "method": "subscriptions/listen", "params": {
        "notifications": {"taskIds": [id]}}});
    let accepted =
        |mut events: Events| events.next().unwrap().1["params"]["notifications"]["taskIds"].clone();
    assert_eq!(accepted(Events::open(&server, &as_bob(alone(listen.clone())))), json!([]));
    let mut events = Events::open(&server, &alone(listen));
    assert_eq!(events.next().unwrap().1["params"]["notifications"]["taskIds"], json!([id]));
    drop(gate);
    let told = events.next().unwrap().1;
    assert_eq!(
        (&told["method"], &told["params"]["status"]),
        (&json!("notifications/tasks"), &json!("completed"))
    );
    let task = server.send(&about("tasks/get", &id)).json()["result"].clone();
    assert_eq!(task["result"]["structuredContent"]["output"], "done\n");
}

#[test]
fn over_http_the_headers_name_the_task() {
    let server = HttpServer::start(&SOON);
    let id = json!("x");
    let request = about("tasks/get", &id);
    assert_eq!(server.send(&request).json()["error"]["code"], -32602);
    for wrong in
        [request.clone().without("mcp-name"), request.without("mcp-name").with("mcp-name", "y")]
    {
        let response = server.send(&wrong);
        assert_eq!((response.status, &response.json()["error"]["code"]), (400, &json!(-32020)));
    }
    let undeclared =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"taskId": "x"}});
    let response = server.send(&Request::alone(undeclared).with("mcp-name", "x"));
    assert_eq!((response.status, &response.json()["error"]["code"]), (400, &json!(-32021)));
}

#[test]
fn over_http_tasks_of_somebody_who_is_not_heard_of_any_more_are_ended() {
    let mark = mark();
    let server = HttpServer::start_with(&SOON, "[http]\nsession_time = 1\n");
    let command = json!({"command": format!("MARK={mark} sleep 300")});
    let handle = server.send(&alone(call(1, "execute_command", command))).messages().pop().unwrap();
    assert_eq!(handle["result"]["resultType"], "task", "{handle}");
    wait_until("its end", || survivors(&mark).is_empty().then_some(()));
    // Its end is told a moment after its last process is gone.
    wait_until("it is said to be cancelled", || {
        let task = server.send(&about("tasks/get", &handle["result"]["taskId"])).json();
        (task["result"]["status"] == "cancelled").then_some(())
    });
}

#[test]
fn over_http_a_client_that_leaves_before_it_has_a_handle_cancels_the_call() {
    use std::io::Write;
    let mark = mark();
    let server = HttpServer::start(&SOON);
    let command = json!({"command": format!("MARK={mark} sleep 300")});
    let mut socket = server.connect();
    socket.write_all(&alone(call(1, "execute_command", command)).bytes()).unwrap();
    wait_until("the process", || (!survivors(&mark).is_empty()).then_some(()));
    drop(socket);
    wait_until("its end", || survivors(&mark).is_empty().then_some(()));
}
