"""A model that follows a script, in the place of each host's own provider.

It listens on loopback and speaks what the hosts speak: Anthropic's messages, OpenAI's responses and
chat completions, Google's generateContent. What a host makes of a tool's answer is in its next
request; the script gets that text and names the next call.

    host ── POST: everything said so far ──▶ results ─▶ script ─▶ call or "done" ──▶ host

A request says all of the conversation again, so nothing is asked twice if a host repeats one: the
script goes on only when a request brings a result that was not there before.
"""

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DONE = "done"


class Model(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, script):
        """`script` is a generator: it yields (tool, arguments) and is sent what the host shows of the answer."""
        super().__init__(("127.0.0.1", 0), Handler)
        self.script = script
        self.calls = []
        self.failure = None
        self.turn = threading.Lock()
        self.advance(None)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def advance(self, seen):
        try:
            self.calls.append(self.script.send(seen))
        except StopIteration:
            self.calls.append(None)

    def next(self, results, tools):
        """The call to make after these results, as (the host's name of the tool, arguments), or None."""
        with self.turn:
            if len(results) == len(self.calls) and self.calls[-1]:
                self.advance(results[-1])
            call = self.calls[len(results)] if len(results) < len(self.calls) else None
        # A host asks for titles and summaries too, with none of our tools.
        if not call or not tools:
            return None
        tool, arguments = call
        # Hosts put the server's name before the tool's.
        name = next((name for name in tools if re.search(rf"(^|[_.]){tool}$", name)), None)
        if not name:
            self.failure = f"the host offers no {tool}: {', '.join(tools)}"
            return None
        return name, arguments


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.answer(b"")

    def do_GET(self):
        self.answer({"data": [], "models": []})

    def do_POST(self):
        said = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        path = self.path.partition("?")[0]
        for end, speak in PROTOCOLS.items():
            if path.endswith(end):
                return speak(self, said)
        self.answer({})

    def answer(self, body, kind="application/json"):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def events(self, events):
        lines = []
        for event in events:
            if "type" in event:
                lines.append(f"event: {event['type']}\n")
            lines.append(f"data: {json.dumps(event)}\n\n")
        self.answer("".join(lines).encode(), "text/event-stream")


def text_of(content):
    """What a model reads of the content of a result: its text, as it is."""
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text") or json.dumps(part) for part in content or [])


def anthropic(handler, said):
    parts = [part for m in said["messages"] if isinstance(m["content"], list) for part in m["content"]]
    results = [text_of(part.get("content")) for part in parts if part.get("type") == "tool_result"]
    call = handler.server.next(results, [tool["name"] for tool in said.get("tools", [])])
    if call:
        name, arguments = call
        block = {"type": "tool_use", "id": f"toolu_{len(results)}", "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
        whole, stop = {**block, "input": arguments}, "tool_use"
    else:
        block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": DONE}
        whole, stop = {"type": "text", "text": DONE}, "end_turn"
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "stand-in", "usage": usage}
    if not said.get("stream"):
        return handler.answer({**message, "content": [whole], "stop_reason": stop, "stop_sequence": None})
    handler.events([
        {"type": "message_start", "message": {**message, "content": [], "stop_reason": None, "stop_sequence": None}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ])


def openai_responses(handler, said):
    results = [text_of(item["output"]) for item in said["input"] if item.get("type") == "function_call_output"]
    # The tools of a server may be a group with a name of its own, which a call has to repeat.
    groups = {}
    for tool in said.get("tools", []):
        for inner in tool.get("tools") or [tool]:
            groups[inner.get("name", "")] = tool["name"] if tool.get("tools") else None
    call = handler.server.next(results, list(groups))
    if call:
        name, arguments = call
        item = {"type": "function_call", "id": f"fc_{len(results)}", "call_id": f"call_{len(results)}",
                "name": name, "arguments": json.dumps(arguments), "status": "completed"}
        if groups[name]:
            item["namespace"] = groups[name]
    else:
        content = [{"type": "output_text", "text": DONE, "annotations": []}]
        item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    response = {"id": "resp_1", "object": "response", "status": "completed", "output": [item], "usage": usage}
    handler.events([
        {"type": "response.created", "response": {"id": "resp_1"}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": response},
    ])


def openai_chat(handler, said):
    results = [text_of(message["content"]) for message in said["messages"] if message["role"] == "tool"]
    call = handler.server.next(results, [tool["function"]["name"] for tool in said.get("tools", [])])
    message = {"role": "assistant", "content": None if call else DONE}
    if call:
        name, arguments = call
        function = {"name": name, "arguments": json.dumps(arguments)}
        message["tool_calls"] = [{"index": 0, "id": f"call_{len(results)}", "type": "function", "function": function}]
    stop = "tool_calls" if call else "stop"
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    head = {"id": "chat_1", "created": 1, "model": "stand-in"}
    if not said.get("stream"):
        choices = [{"index": 0, "message": message, "finish_reason": stop}]
        return handler.answer({**head, "object": "chat.completion", "choices": choices, "usage": usage})
    head["object"] = "chat.completion.chunk"
    handler.events([
        {**head, "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
        {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": stop}], "usage": usage},
    ])


def google(handler, said):
    parts = [part for content in said["contents"] for part in content["parts"]]
    answers = [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]
    results = [answer.get("output") or answer.get("error") or json.dumps(answer) for answer in answers]
    declared = [tool for tools in said.get("tools", []) for tool in tools.get("functionDeclarations", [])]
    call = handler.server.next(results, [tool["name"] for tool in declared])
    part = {"functionCall": {"name": call[0], "args": call[1]}} if call else {"text": DONE}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    candidate = {"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}
    response = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "stand-in"}
    if handler.path.partition("?")[0].endswith(":streamGenerateContent"):
        return handler.events([response])
    handler.answer(response)


PROTOCOLS = {
    "/messages": anthropic,
    "/responses": openai_responses,
    "/chat/completions": openai_chat,
    ":generateContent": google,
    ":streamGenerateContent": google,
    "/count_tokens": lambda handler, said: handler.answer({"input_tokens": 1}),
    ":countTokens": lambda handler, said: handler.answer({"totalTokens": 1}),
}
