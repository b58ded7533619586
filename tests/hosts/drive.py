"""Drives one host with a model that follows the checks, and prints a line for each of them:

    drive.py HOST FOLDER

The hosts are installed in FOLDER; $MCPZ is the server. Claude Code has to be there; another host
that does not start on this machine is skipped.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from checks import checks_of
from hosts import HOSTS
from model import Model

REQUIRED = "claude"
# All checks together take a host less than half a minute.
PATIENCE = 180

host, folder = sys.argv[1:]
programs = Path(folder, "node_modules/.bin")


def run(command, home, environment):
    """Runs a host in a home of its own; answers with its exit code and what it printed."""
    work = home / "work"
    work.mkdir(exist_ok=True)
    environment = {
        "HOME": str(home),
        "TMPDIR": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_STATE_HOME": str(home / ".state"),
        # The Node that is installed with the hosts comes first.
        "PATH": f"{programs}:{os.environ['PATH']}",
        "LANG": "C.UTF-8",
        # Nobody listens there: what a host would send elsewhere stays here.
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "NO_PROXY": "127.0.0.1",
        **environment,
    }
    # A file and not a pipe, which a process left behind would keep open.
    with open(home / "printed", "w+", errors="replace") as printed:
        process = subprocess.Popen(
            [programs / command[0], *command[1:]],
            cwd=work,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=printed,
            start_new_session=True,
        )
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            printed.write(f"\n{host} has not ended after {PATIENCE} seconds\n")
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        printed.seek(0)
        return process.returncode, printed.read()


def why_not(home):
    """Why the host cannot be driven on this machine, if so."""
    try:
        code, printed = run([host, "--version"], home, {})
    except OSError as error:
        return str(error)
    return f"--version: {' '.join(printed.split())[:200]}" if code else None


class Report:
    """A script that makes every check and prints how it went."""

    def __init__(self):
        self.left = list(checks_of(host))
        self.failures = []

    def script(self):
        for check in checks_of(host):
            began = time.monotonic()
            try:
                yield from check()
                self.say("ok", check, began)
            except AssertionError as error:
                self.say("FAILED", check, began)
                self.failures.append(f"{check.__name__}: {error}")
            self.left.remove(check)

    def say(self, verdict, check, began):
        took = (time.monotonic() - began) * 1000
        print(f"{verdict:6} {host:6} {check.__name__.replace('_', ' '):24} {took:6.0f} ms", flush=True)


def main():
    with tempfile.TemporaryDirectory(prefix=f"{host}-", ignore_cleanup_errors=True) as temporary:
        home = Path(temporary)
        reason = why_not(home)
        if reason and host != REQUIRED:
            print(f"skipped: {host}: {reason}")
            return 0
        if reason:
            print(f"FAILED {host}: {reason}")
            return 1
        report = Report()
        model = Model(report.script())
        command, environment = HOSTS[host](home, f"http://127.0.0.1:{model.server_port}")
        code, printed = run(command, home, environment)
    if report.left:
        left = ", ".join(check.__name__ for check in report.left)
        report.failures.append(f"ended with {code} before {left}\n{model.failure or ''}\n{printed}")
        print(f"FAILED {host:6} ended early")
    for failure in report.failures:
        print(f"{host}: {failure}\n", file=sys.stderr)
    return 1 if report.failures else 0


sys.exit(main())
