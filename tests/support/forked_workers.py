"""`pytest --forks N`: tests run in N processes that are forked when everything has been collected.

Collecting imports every module, reads every document and takes a quarter of a minute; here it is done once, however
many processes there are. A process runs the tests of one file after the other and sends its reports back; the file
that comes next is the next one in the order of collection. Each has its own servers, database and temporary folder.
"""

import atexit
import gc
import os
import pickle
import select
import socket
import struct
import sys
import threading
from collections import deque
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import pytest
from processor_time import COSTS, Costs, processor_seconds

_LENGTH = struct.Struct("!I")
Message = tuple[str, Any]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --forks."""
    parser.addoption("--forks", type=int, default=0, metavar="N", help="run the tests in N forked processes")


def pytest_configure(config: pytest.Config) -> None:
    """Count the processor time of each file."""
    if config.getoption("forks"):
        config.stash[COSTS] = Costs()
        config.pluginmanager.register(config.stash[COSTS])


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the tests in forked processes, where --forks asks for them."""
    count = session.config.getoption("forks")
    if not count or session.config.option.collectonly or session.testsfailed:
        return None
    files = deque(_files(session.items))
    gc.collect()
    gc.freeze()  # what has been collected stays: no process looks through it again
    workers: list[_Worker] = []
    try:
        for _ in range(min(count, len(files))):
            workers.append(_Worker(session, workers))
        _run(session, workers, files)
    finally:
        for worker in workers:
            worker.end()
    return True


def _files(items: list[pytest.Item]) -> Iterator[range]:
    """Return the places of each file's tests."""
    for _, places in groupby(range(len(items)), key=lambda place: _path(items[place])):
        first, *others = places
        yield range(first, first + 1 + len(others))


def _path(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def _run(session: pytest.Session, workers: list["_Worker"], files: deque[range]) -> None:
    """Give each worker a file when it has none, and report what they send, until all is done."""
    while files or any(worker.is_busy for worker in workers):
        for worker in workers:
            if files and not worker.is_busy:
                worker.begin(files.popleft())
        ready, _, _ = select.select([worker.channel for worker in workers if worker.is_busy], [], [])
        for worker in [worker for worker in workers if worker.channel in ready]:
            worker.receive()
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)


class _Worker:
    """A forked process, as the one that has forked it sees it; where it dies, the next file gets a new one."""

    def __init__(self, session: pytest.Session, others: "list[_Worker]") -> None:
        self._session, self._config, self._others = session, session.config, others
        self.is_busy = False
        self._left: deque[pytest.Item] = deque()
        self._fork()

    def _fork(self) -> None:
        self.channel, theirs = socket.socketpair()
        self._pid = os.fork()
        if self._pid == 0:
            for channel in {self.channel, *(other.channel for other in self._others)}:
                channel.close()  # so that it ends when the parent closes it
            _Process(self._session, theirs).work()
        theirs.close()

    def begin(self, places: range) -> None:
        """Have the tests of a file run."""
        self.is_busy, self._left = True, deque(self._session.items[place] for place in places)
        _send(self.channel, ("run", places))

    def receive(self) -> None:
        """Report one message of the process."""
        message = _receive(self.channel)
        if message is None:
            self._report_death()
            return
        kind, content = message
        if kind == "cost":
            self._config.stash[COSTS].add(*content)
            self.is_busy = False
        else:
            report = self._config.hook.pytest_report_from_serializable(config=self._config, data=content)
            self._report(report)

    def _report(self, report: pytest.TestReport) -> None:
        self._config.hook.pytest_runtest_logreport(report=report)
        if report.when == "teardown":
            item = self._left.popleft()
            self._config.hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    def _report_death(self) -> None:
        """Fail the test during which the process has died, and those that it had still to run."""
        _, status = os.waitpid(self._pid, 0)
        self.channel.close()
        words = f"the process of this test has died, with {os.waitstatus_to_exitcode(status)}"
        for item in list(self._left):
            self._report(pytest.TestReport(item.nodeid, item.location, {}, "failed", words, "call"))
            self._report(pytest.TestReport(item.nodeid, item.location, {}, "passed", None, "teardown"))
            words = "the process that was to run this test has died"
        self.is_busy = False
        self._fork()

    def end(self) -> None:
        """Let the process end what its tests share, and wait for it."""
        self.channel.close()
        _, status = os.waitpid(self._pid, 0)
        if status and not self._session.shouldfail and not self._session.shouldstop:
            self._session.testsfailed += 1
            sys.stderr.write(f"a process of the tests ended with {os.waitstatus_to_exitcode(status)}\n")


class _Process:
    """The forked process: a plugin that sends reports instead of showing them."""

    def __init__(self, session: pytest.Session, channel: socket.socket) -> None:
        self._session, self._config, self._channel = session, session.config, channel

    def work(self) -> None:
        """Run what is asked for until nothing is; never returns."""
        code = 3
        try:
            self._take_over()
            for places in self._orders():
                began = processor_seconds()
                items = [self._session.items[place] for place in places]
                self._run_file(items)
                _send(self._channel, ("cost", (_path(items[0]), processor_seconds() - began)))
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

    def _orders(self) -> Iterator[range]:
        while (message := _receive(self._channel)) is not None:
            yield message[1]

    def _run_file(self, items: list[pytest.Item]) -> None:
        """Run the tests of a file; at its end all but the session's fixtures are torn down."""
        followers: list[Any] = [*items[1:], self._session]
        for item, next_ in zip(items, followers, strict=True):
            self._config.hook.pytest_runtest_protocol(item=item, nextitem=next_)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Send a report."""
        content = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        _send(self._channel, ("report", content))


def _send(channel: socket.socket, message: Message) -> None:
    body = pickle.dumps(message)
    channel.sendall(_LENGTH.pack(len(body)) + body)


def _receive(channel: socket.socket) -> Message | None:
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
