"""What the model of every host has to see, whatever the host makes of an answer.

A check makes calls and looks at what came of them: `seen = yield tool, arguments`. Hosts show the
text of an answer, its structure or both, as it is or as JSON within JSON; what is looked for here
is found in all of them.
"""

import re

LINE_50000 = 9 * 2 + 90 * 3 + 900 * 4 + 9_000 * 5 + 40_000 * 6  # where it begins in the output of `seq`
QUOTES = r"""seq 20000 | sed 's/.*/line & is "C:\\dir\\&"/'"""


def plain(seen):
    """What is seen with line feeds as such, and without the quotes and backslashes of JSON."""
    return re.sub(r'[\\"]', "", re.sub(r"\\+n", "\n", seen))


def has(seen, *parts):
    for part in parts:
        assert part in plain(seen), f"{part!r} is not in what the model sees:\n{shortened(seen)}"


def found(seen, pattern):
    match = re.search(pattern, plain(seen))
    assert match, f"{pattern!r} matches nothing of what the model sees:\n{shortened(seen)}"
    return match[0]


def shortened(seen):
    if len(seen) <= 2_000:
        return seen
    return f"{seen[:1_000]}\n[…]\n{seen[-1_000:]}\n({len(seen)} characters)"


def large_output():
    seen = yield "execute_command", {"command": "seq 2000000"}
    found(seen, r"(?<!\d)1\n2\n3\n")
    has(seen, "1999999\n2000000\n", "omitted_bytes")
    found(seen, r"mcp://tmp/exec-\w+")


def timeout():
    seen = yield "execute_command", {"command": "echo begun; sleep 300", "timeout": 1}
    has(seen, "begun\n", "timed out after 1 second")


def timeout_of_large_output():
    seen = yield "execute_command", {"command": "seq 200000; sleep 300", "timeout": 1}
    found(seen, r"(?<!\d)1\n2\n3\n")
    has(seen, "timed out after 1 second")
    found(seen, r"mcp://tmp/exec-\w+")


def refusal():
    seen = yield "execute_command", {"command": "sudo true"}
    has(seen, "Command denied by security policy", "is denied by the rule `sudo`")


def page():
    seen = yield "execute_command", {"command": "seq 100000"}
    uri = found(seen, r"mcp://tmp/exec-\w+\.out")
    seen = yield "read_file_chunk", {"uri": uri, "cursor": f"bytes:{LINE_50000}"}
    found(seen, r"(?<!\d)50000\n50001\n50002\n")
    found(seen, r"next_cursor: ?bytes:\d+")
    seen = yield "read_file_chunk", {"uri": uri, "grep": "^77777$"}
    has(seen, "77777\n")


def job():
    command = "until [ -e go ]; do sleep 0.1; done; echo it went; sleep 300"
    seen = yield "execute_command", {"command": command, "background": True}
    job_id = found(seen, r"job-\d+")
    yield "execute_command", {"command": "touch go"}
    seen = yield "read_job", {"job_id": job_id, "wait_for": "text", "pattern": "^it went", "timeout": 60}
    has(seen, "it went\n", "running")
    seen = yield "stop_job", {"job_id": job_id}
    has(seen, "stopped")


def quotes_and_backslashes():
    seen = yield "execute_command", {"command": QUOTES}
    has(seen, "line 1 is C:dir1\n", "line 20000 is C:dir20000\n", "omitted_bytes")


def wide_characters():
    seen = yield "execute_command", {"command": "seq 20000 | sed 's/.*/第&行は漢字とかな/'"}
    has(seen, "第1行は漢字とかな\n", "第20000行は漢字とかな\n", "omitted_bytes")


def tabs():
    seen = yield "execute_command", {"command": r"seq 20000 | sed 's/.*/\t\t\t\tline &/'"}
    has(seen, "line 1\n", "line 20000\n", "omitted_bytes")


def more_on_request():
    """Claude Code shows more than it usually would if the tool says that it may be long."""
    seen = yield "execute_command", {"command": "seq 100000"}
    uri = found(seen, r"mcp://tmp/exec-\w+\.out")
    page = {"uri": uri, "cursor": f"bytes:{LINE_50000}", "limit_bytes": 60_000}
    seen = yield "read_file_chunk", page
    has(seen, "50000\n50001\n", "59998\n59999\n", f"next_cursor:bytes:{LINE_50000 + 60_000}")


def other_tools():
    for tool, arguments in (
        ("shell", {"command": "seq 2000000"}),
        ("run_shell_command", {"command": "seq 2000000", "is_background": False}),
        ("shell_exec", {"cmd": "seq 2000000"}),
    ):
        seen = yield tool, arguments
        found(seen, r"(?<!\d)1\n2\n3\n")
        has(seen, "1999999\n2000000\n")
        found(seen, r"mcp://tmp/exec-\w+")
    # This one has a limit of its own, 40,000 bytes, which are more than 50,000 characters of JSON.
    seen = yield "execute", {"command": QUOTES}
    has(seen, "line 1 is C:dir1\n", "stdout_truncated:true")


CHECKS = [
    large_output,
    timeout,
    timeout_of_large_output,
    refusal,
    page,
    job,
    quotes_and_backslashes,
    wide_characters,
    tabs,
]


def checks_of(host):
    return [*CHECKS, more_on_request, other_tools] if host == "claude" else CHECKS
