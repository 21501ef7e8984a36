"""Machine code in the background: made by another process, and loaded by a thread of this one.

Compiling takes seconds of Python's time; in a process of its own it takes none of this one's. The other process is
niced, does its work in the order in which it was asked for, and ends when this one does. Loading what it made takes
some tenths of a second, in a thread. Where no other process can do it (an algorithm defined by a script, a program that
is not Python), the thread compiles.
"""

import atexit
import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory

from latecomer.tiers import tiered_kernel as tiers
from latecomer.tiers.code_cache import VARIABLE, find_cache_folder, is_writable

CHILD_SECONDS = 300.0
"""The longest time that another process may take; after it, this one compiles in its thread."""

_CHILD = """
import json, os, sys, threading
job = json.loads(sys.stdin.readline())
sys.path[:] = job["path"]
threading.Thread(target=lambda: (os.read(0, 1), os._exit(1)), daemon=True).start()
if hasattr(os, "nice"): os.nice(10)
from importlib import import_module
getattr(import_module(job["module"]), job["function"])(**job["arguments"])
"""
"""A line of JSON in; it ends when its standard input does."""


class _Worker:
    """The thread that does one request after the other, and the process that it waits for."""

    def __init__(self) -> None:
        self.requests: SimpleQueue[Sequence[tiers.TieredKernel]] = SimpleQueue()
        self.unfinished: list[Sequence[tiers.TieredKernel]] = []
        self.thread: threading.Thread | None = None
        self.child: subprocess.Popen[str] | None = None
        self.is_stopping = False
        self.lock = threading.Lock()

    def submit(self, kernels: Sequence["tiers.TieredKernel"]) -> None:
        """Queue kernels; the thread starts with the first."""
        self.unfinished.append(kernels)
        self.requests.put(kernels)
        with self.lock:
            if self.thread is None:
                self.thread = threading.Thread(target=self._run, name="latecomer-compile", daemon=True)
                self.thread.start()

    def _run(self) -> None:
        while not self.is_stopping:
            kernels = self.requests.get()
            if not kernels:
                return  # it is stopped
            tiers.is_under_way.set()
            try:
                self._make(kernels)
            except Exception as error:  # noqa: BLE001 - decisions go on as plain Python, whatever it was
                for kernel in kernels:
                    kernel.retry_later()
                if not self.is_stopping:
                    tiers.say_once(f"machine code could not be made, decisions go on as plain Python: {error!r}")
            finally:
                tiers.is_under_way.clear()
                self.unfinished.remove(kernels)

    def _make(self, kernels: Sequence["tiers.TieredKernel"]) -> None:
        folder = find_cache_folder()
        missing = [kernel for kernel in kernels if not kernel.key.is_in(folder)]
        if not missing:
            self._load(kernels, folder)
        elif folder is not None and is_writable(folder):
            self._compile_in_child(missing, folder)
            self._load(kernels, folder)
        else:
            tiers.say_not_kept(folder)
            with TemporaryDirectory(prefix="latecomer-code-") as name:
                self._compile_in_child(missing, Path(name))
                self._load(kernels, Path(name))

    def _compile_in_child(self, kernels: Sequence["tiers.TieredKernel"], folder: Path) -> None:
        """Have another process compile; what it leaves undone, this one does when it loads."""
        job = next((kernel.job for kernel in kernels if kernel.job), None)
        if job is None or not sys.executable or "python" not in Path(sys.executable).name:
            return
        arguments = {**job.arguments, "kernels": [kernel.function.__name__ for kernel in kernels]}
        line = json.dumps({"path": sys.path, "module": job.module, "function": job.function, "arguments": arguments})
        environment = {**os.environ, VARIABLE: str(folder), tiers.VARIABLE: "now"}
        with self.lock:
            if self.is_stopping:
                return
            self.child = subprocess.Popen(  # noqa: S603 - this Python, the package's own code
                [sys.executable, "-c", _CHILD],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment,
                text=True,
                start_new_session=True,
            )
        with suppress(BrokenPipeError), self.child as child:
            child.stdin.write(line + "\n")  # type: ignore[union-attr]  # a pipe, as asked for above
            child.stdin.flush()  # type: ignore[union-attr]
            try:
                child.wait(CHILD_SECONDS)
            except subprocess.TimeoutExpired:
                child.kill()
        with self.lock:
            self.child = None

    def _load(self, kernels: Sequence["tiers.TieredKernel"], folder: Path | None) -> None:
        for kernel in kernels:
            if self.is_stopping:
                return
            kernel.compile(folder=folder)

    def stop(self) -> None:
        """End the process, and wait a moment for the thread: it must not be inside the compiler when Python ends."""
        self.is_stopping = True
        with self.lock:
            if self.child is not None:
                self.child.kill()
        if self.thread is not None:
            self.requests.put([])
            self.thread.join(timeout=5.0)


_worker = _Worker()


def submit(kernels: Sequence["tiers.TieredKernel"]) -> None:
    """Have machine code of these kernels made, and taken when it is there."""
    _worker.submit(kernels)


def _forget() -> None:
    """In a forked child: no thread, and nothing under way; it asks again for what its parent had asked for."""
    global _worker
    tiers.is_under_way = threading.Event()
    unfinished, _worker = _worker.unfinished, _Worker()
    for kernels in unfinished:
        for kernel in kernels:
            kernel.forget_request()


def _stop() -> None:
    _worker.stop()


atexit.register(_stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
