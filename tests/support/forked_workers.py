"""`pytest --forks N`: files of tests run in N processes, forked once the package and what it needs are imported.

The parent finds the files; a process collects a file when it is its turn, runs its tests, and sends the reports back.
So everything is imported and collected once, and by all processes at the same time. Each process has its own servers,
database and temporary folder. The parent imports no test: threads that one starts, such as those of polars, would be
missing after the fork.
"""

import gc
import os
import select
import socket
import sys
from collections import deque
from collections.abc import Iterator
from importlib import import_module
from itertools import groupby
from pkgutil import walk_packages
from typing import Any

import pytest
from forked_process import ForkedProcess, receive, send
from processor_time import COSTS, Costs

FIRST = (
    "tests/tiers/test_tiers_agree",
    "tests/simulation/test_simulate",
    "docs/how-to/window",
    "tests/service/storage/postgres/",
    "tests/tiers/",
    "docs/tutorials/",
    "tests/simulation/",
    "tests/cli/",
    "docs/",
    "tests/evaluation/",
    "tests/encoding/",
    "tests/service/",
)
"""The order of the files. The first compiles kernels of policies, the second meanwhile loops in five dimensions, the
third those of the window's advice, and replicas wait for their database. What comes last uses the former most, and its
files are short, so that no process waits for another."""

IMPORTED = ("hypothesis", "httpx", "matplotlib.pyplot", "numba", "pandas", "polars", "scipy.stats", "typer.testing")
"""Packages that many tests use, besides those of the library; importing them starts no thread that is missed."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --forks."""
    parser.addoption("--forks", type=int, default=0, metavar="N", help="run the tests in N forked processes")


def pytest_configure(config: pytest.Config) -> None:
    """Count the processor time of each file."""
    if config.getoption("forks"):
        config.stash[COSTS] = Costs()
        config.pluginmanager.register(config.stash[COSTS])


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> bool | None:
    """Find the files alone, where --forks asks for processes."""
    if not session.config.getoption("forks") or session.config.option.collectonly:
        return None
    arguments = _Arguments()
    session.config.pluginmanager.register(arguments)
    session.perform_collect(genitems=False)
    session.config.pluginmanager.unregister(arguments)
    nodes = [file for node in arguments.nodes for file in _files(node)]
    nodes.sort(key=lambda node: (_place(_path(node)), _path(node)))
    session.config.stash[_FILES] = [list(group) for _, group in groupby(nodes, key=_path)]
    return True


class _Arguments:
    """The folders and files that pytest was asked for, before -k and -m leave out any."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self.nodes += report.result


_FILES = pytest.StashKey[list[list[Any]]]()


def _files(node: Any) -> Iterator[Any]:
    """Yield the files under a node; a file of code may be two, one for its doctests."""
    if not isinstance(node, pytest.Dir | pytest.Package):
        yield node
        return
    report = node.ihook.pytest_make_collect_report(collector=node)
    if report.failed:
        node.ihook.pytest_collectreport(report=report)
    for child in report.result:
        yield from _files(child)


def _path(node: Any) -> str:
    return str(node.nodeid.partition("::")[0])


def _place(path: str) -> int:
    return next((place for place, begin in enumerate(FIRST) if path.startswith(begin)), len(FIRST))


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the files in forked processes."""
    files = session.config.stash.get(_FILES, None)
    if files is None:
        return None
    if (session.config.rootpath / "src" / "latecomer").is_dir():
        _import_everything()
    gc.collect()
    gc.freeze()  # what has been imported stays: no process looks through it again
    session.config.pluginmanager.getplugin("terminalreporter")._show_progress_info = False  # of how many, nobody knows
    upcoming = deque(range(len(files)))
    workers: list[_Worker] = []
    try:
        for _ in range(min(session.config.getoption("forks"), len(files))):
            workers.append(_Worker(session, workers))
        _run(session, workers, upcoming)
    finally:
        for worker in workers:
            worker.end()
    return True


def _import_everything() -> None:
    for module in walk_packages(import_module("latecomer").__path__, "latecomer."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    for name in IMPORTED:
        import_module(name)


def _run(session: pytest.Session, workers: list["_Worker"], upcoming: deque[int]) -> None:
    """Give each worker a file when it has none, and report what they send, until all is done."""
    while upcoming or any(worker.is_busy for worker in workers):
        for worker in workers:
            if upcoming and not worker.is_busy:
                worker.begin(upcoming.popleft())
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
        self._files = session.config.stash[_FILES]
        self.is_busy = False
        self._file = 0
        self._left: deque[tuple[str, Any]] | None = None
        self._fork()

    def _fork(self) -> None:
        self.channel, theirs = socket.socketpair()
        self._pid = os.fork()
        if self._pid == 0:
            for channel in {self.channel, *(other.channel for other in self._others)}:
                channel.close()  # so that it ends when the parent closes it
            ForkedProcess(self._session, self._files, theirs).work()
        theirs.close()

    def begin(self, file: int) -> None:
        """Have the tests of a file run."""
        self.is_busy, self._file, self._left = True, file, None
        send(self.channel, ("run", file))

    def receive(self) -> None:
        """Report one message of the process."""
        message = receive(self.channel)
        if message is None:
            self._report_death()
            return
        kind, content = message
        if kind == "collected":
            self._left = deque(content)
            self._session.testscollected += len(content)
        elif kind == "done":
            self._config.stash[COSTS].add(_path(self._files[self._file][0]), content)
            self.is_busy = False
        else:
            report = self._config.hook.pytest_report_from_serializable(config=self._config, data=content)
            self._report(report)

    def _report(self, report: Any) -> None:
        if isinstance(report, pytest.CollectReport):
            self._config.hook.pytest_collectreport(report=report)
            return
        self._config.hook.pytest_runtest_logreport(report=report)
        if report.when == "teardown" and self._left:
            nodeid, location = self._left.popleft()
            self._config.hook.pytest_runtest_logfinish(nodeid=nodeid, location=location)

    def _report_death(self) -> None:
        """Fail the test during which the process has died, and those that it had still to run."""
        _, status = os.waitpid(self._pid, 0)
        self.channel.close()
        words = f"the process of this test has died, with {os.waitstatus_to_exitcode(status)}"
        if not self._left:
            self._report(pytest.CollectReport(_path(self._files[self._file][0]), "failed", words, []))
        for nodeid, location in list(self._left or ()):
            self._report(pytest.TestReport(nodeid, location, {}, "failed", words, "call"))
            self._report(pytest.TestReport(nodeid, location, {}, "passed", None, "teardown"))
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
