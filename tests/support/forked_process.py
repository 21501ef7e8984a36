"""A forked process of `pytest --forks`: it collects files, runs their tests, and sends reports to its parent."""

import atexit
import os
import pickle
import socket
import struct
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from processor_time import processor_seconds

_LENGTH = struct.Struct("!I")
Message = tuple[str, Any]


class ForkedProcess:
    """A plugin that sends reports instead of showing them."""

    def __init__(self, session: pytest.Session, files: list[list[Any]], channel: socket.socket) -> None:
        self._session, self._config, self._files, self._channel = session, session.config, files, channel

    def work(self) -> None:
        """Run the files that are asked for until none is; never returns."""
        code = 3
        try:
            self._take_over()
            for number in self._orders():
                began = processor_seconds()
                self._run_file(self._files[number])
                send(self._channel, ("done", processor_seconds() - began))
            self._session._setupstate.teardown_exact(None)
            code = 0
        except BrokenPipeError:
            code = 2  # the other side has ended
        except KeyboardInterrupt:
            code = 130
        finally:
            _exit(code)

    def _take_over(self) -> None:
        """Have an output of its own: the parent's is in one file, whose position forked processes share."""
        plugins = self._config.pluginmanager
        capture: Any = plugins.getplugin("capturemanager")
        if capture.is_globally_capturing():
            capture.stop_global_capturing()
            capture.start_global_capturing()
        plugins.unregister(name="terminalreporter")
        plugins.register(self)

    def _orders(self) -> Iterator[int]:
        while (message := receive(self._channel)) is not None:
            yield message[1]

    def _run_file(self, nodes: list[Any]) -> None:
        """Collect a file and run its tests; at its end all but the session's fixtures are torn down."""
        items: list[pytest.Item] = [item for node in nodes for item in self._session.genitems(node)]
        self._config.hook.pytest_collection_modifyitems(session=self._session, config=self._config, items=items)
        self._session.items = items
        send(self._channel, ("collected", [(item.nodeid, item.location) for item in items]))
        followers: list[Any] = [*items[1:], self._session]
        for item, next_ in zip(items, followers, strict=True) if items else ():
            self._config.hook.pytest_runtest_protocol(item=item, nextitem=next_)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Send a report."""
        self._send(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Send the report of a file that cannot be collected, or is skipped as a whole."""
        if not report.passed:
            report.result = []
            self._send(report)

    def _send(self, report: Any) -> None:
        content = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        send(self._channel, ("report", content))


def send(channel: socket.socket, message: Message) -> None:
    """Send a message."""
    body = pickle.dumps(message)
    channel.sendall(_LENGTH.pack(len(body)) + body)


def receive(channel: socket.socket) -> Message | None:
    """Return the next message; None where the other side has ended."""
    head = _read(channel, _LENGTH.size)
    body = _read(channel, _LENGTH.unpack(head)[0]) if head else b""
    return pickle.loads(body) if body else None  # noqa: S301 - from a process of our own


def _read(channel: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        try:
            part = channel.recv(size - len(found))
        except ConnectionResetError:
            part = b""
        if not part:
            return b""
        found += part
    return found


def _exit(code: int) -> None:
    """End as a process does, but leave its memory as it is."""
    try:
        threading._shutdown()  # type: ignore[attr-defined] # waits for threads
        atexit._run_exitfuncs()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
