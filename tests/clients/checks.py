"""What every Python client has to see of the server, however it spells its calls."""

import asyncio
import os
import sys
import tempfile
import time
import uuid
from pathlib import Path

transport, revision = sys.argv[1:]
# "auto" asks the server what it speaks.
mode = "legacy" if revision == "2025-11-25" else "auto"

command = os.environ["MCPZ"]
args = ["server", "shell", "--tools", "all", "--config", os.environ["MCPZ_EMPTY_CONFIG"]]
env = dict(os.environ)
url = os.environ["MCPZ_URL"]
headers = {"Authorization": "Bearer " + os.environ["MCPZ_TOKEN"]}

JOBS = {"list_jobs", "read_job", "write_job", "stop_job"}
TOOLS = JOBS | {
    "execute_command", "read_file_chunk", "shell", "execute", "run_shell_command", "shell_exec"
}


def marked(mark):
    """Processes with this variable in their environment. One that has ended and waits for its
    parent has none any more."""

    def has_mark(pid):
        try:
            return f"MARK={mark}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:  # it ended meanwhile
            return False

    return [pid for pid in os.listdir("/proc") if pid.isdigit() and has_mark(pid)]


async def check_progress(call):
    # Each step of the command waits until the progress of the one before has arrived here, so that
    # progress that comes late or all at once is noticed. The command's timeout is shorter than the
    # client's, whose words would not say what is missing.
    seen = []
    with tempfile.TemporaryDirectory() as folder:

        async def on_progress(progress, total, message):
            seen.append(progress)
            Path(folder, str(len(seen))).touch()

        def step(n):
            return f'echo {n}; until [ -e "$FOLDER/{n}" ]; do sleep 0.05; done'

        arguments = {"command": f"{step(1)}; {step(2)}", "environment": {"FOLDER": folder}, "timeout": 50}
        result = await call("execute_command", arguments, on_progress)
    assert result.structured_content["output"] == "1\n2\n", result
    assert len(seen) >= 2, seen
    assert all(a < b for a, b in zip(seen, seen[1:])), seen


async def check_cancel(call):
    mark = str(uuid.uuid4())
    started = asyncio.Event()

    async def on_progress(progress, total, message):
        started.set()

    arguments = {"command": "echo started; sleep 300", "environment": {"MARK": mark}, "timeout": 300}
    called = asyncio.create_task(call("execute_command", arguments, on_progress))
    waiting = asyncio.create_task(started.wait())
    await asyncio.wait([called, waiting], return_when=asyncio.FIRST_COMPLETED)
    assert not called.done(), called
    assert marked(mark), "the command runs"

    called.cancel()
    await asyncio.wait([called])
    assert called.cancelled(), called
    # Nobody is told of the end of a process that is not theirs: look again and again.
    deadline = time.monotonic() + 60
    while marked(mark):
        assert time.monotonic() < deadline, "the cancelled command has ended"
        await asyncio.sleep(0.02)


async def check_all(list_tools, call, read):
    tools = await list_tools()
    assert {tool.name for tool in tools} == TOOLS, tools
    assert all(tool.output_schema for tool in tools if tool.name not in JOBS), tools

    result = await call("execute_command", {"command": "echo hi"})
    assert not result.is_error, result
    assert result.structured_content["output"] == "hi\n", result
    assert result.structured_content["return_code"] == 0, result

    await check_progress(call)
    await check_cancel(call)

    result = await call("execute_command", {"command": "sleep 300", "timeout": 1})
    assert result.is_error, result
    assert result.structured_content["timed_out"] is True, result

    result = await call("shell_exec", {"cmd": "seq 1 100000"})
    contents = await read(result.structured_content["spill_uri"])
    assert contents[0].text.startswith("1\n2\n3\n"), contents
    assert len(contents[0].text) > 64 * 1024, "more than what an answer shows"
