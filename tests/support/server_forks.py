"""A process that has loaded everything and forks `latecomer serve`, so that a server starts in a fraction of a second.

Run by replicas.py. It reads a line of JSON for each order and answers with one:
{"start": [arguments], "log": file, "environment": {…}, "clock_ahead": seconds} → {"pid": …};
{"poll": pid} → {"code": … or null}. When its input ends, it kills the servers that are left.

`clock_ahead` shifts the machine's clocks as that server sees them: the wall clock, and the time since the start of the
machine. Its timeouts are measured by another clock, and are as long as ever.
"""

import importlib
import json
import os
import signal
import sys
import time
from contextlib import suppress
from typing import Any

from latecomer.__main__ import main as run_latecomer

LOADED = ("latecomer.cli.main", "latecomer.service.http.server", "latecomer.service.replicated_store")
"""Modules that are loaded before the fork."""


def start(order: dict[str, Any]) -> int:
    """Fork a server; return its process id."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        _redirect(order["log"])
        for name in [name for name in os.environ if name.startswith("LATECOMER_") and name != "LATECOMER_CACHE_DIR"]:
            del os.environ[name]
        os.environ.update(order.get("environment", {}))
        if order.get("clock_ahead"):
            set_clocks_ahead(order["clock_ahead"])
        sys.argv = ["latecomer", *order["start"]]
        run_latecomer()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001
        sys.excepthook(*sys.exc_info())
    finally:
        with suppress(Exception):
            sys.stderr.flush()
        os._exit(code)


def _redirect(log: str) -> None:
    silent = os.open(os.devnull, os.O_RDWR)
    written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(silent, 0)
    os.dup2(silent, 1)
    os.dup2(written, 2)
    os.close(silent)
    os.close(written)


def set_clocks_ahead(seconds: float) -> None:
    """Shift the wall clock and the clock since the machine's start, for Python code that asks for them."""
    shifted = {time.CLOCK_REALTIME, time.CLOCK_BOOTTIME}
    nanoseconds = int(seconds * 10**9)
    wall, wall_ns, clock, clock_ns = time.time, time.time_ns, time.clock_gettime, time.clock_gettime_ns
    time.time = lambda: wall() + seconds
    time.time_ns = lambda: wall_ns() + nanoseconds
    time.clock_gettime = lambda clk_id: clock(clk_id) + (seconds if clk_id in shifted else 0.0)
    time.clock_gettime_ns = lambda clk_id: clock_ns(clk_id) + (nanoseconds if clk_id in shifted else 0)


def main() -> None:
    for module in LOADED:
        importlib.import_module(module)
    children: set[int] = set()
    print(json.dumps({"ready": os.getpid()}), flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        answer: dict[str, Any]
        if "start" in order:
            children.add(pid := start(order))
            answer = {"pid": pid}
        else:
            ended, status = os.waitpid(order["poll"], os.WNOHANG)
            answer = {"code": os.waitstatus_to_exitcode(status) if ended else None}
            children.discard(ended)
        print(json.dumps(answer), flush=True)
    for pid in children:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
