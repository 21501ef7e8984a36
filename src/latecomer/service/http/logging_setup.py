"""The log of a server: one JSON object a line, on standard error. No key, no body and no query ever gets here.

A line that cannot be written (a full disk, a reader that has gone or does not read) is dropped and counted. No error is
raised where the line was logged: that code could do nothing about it.
"""

import json
import logging
import os
import select
import sys
from datetime import UTC, datetime
from threading import Lock
from typing import Any, TextIO

import structlog
from structlog.typing import FilteringBoundLogger

Log = FilteringBoundLogger
_SLOW_READER = 50
"""Milliseconds to wait for a slow reader; none once a line was lost to it."""
_UNBLOCKED = select.PIPE_BUF
"""Bytes that a pipe with room takes without blocking."""
_lost_lines = 0
"""Lines that no stream of this process could write."""


class LogStream:
    """Writes lines to the descriptor of a stream; a line that cannot be written is counted, and nothing is raised.

    Nothing is buffered: what a full disk refused is not kept, and cannot make the process's end fail. When lines can be
    written again, the first one says how many are missing. A line that was cut off in the middle is ended first.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = Lock()
        self._torn = False
        self._unreported = 0
        self.lost = 0
        """Lines that could not be written."""

    def write(self, text: str) -> int:
        """Write one line or more, whole, or count it as lost."""
        with self._lock:
            try:
                if self._unreported or self._torn:
                    self._put(self._lost_notice())
                    self._unreported = 0
                self._put(text)
            except (OSError, ValueError):  # the latter where the stream has been closed
                self._count_lost()
        return len(text)

    def flush(self) -> None:
        """Do nothing: nothing is buffered."""

    def _put(self, text: str) -> None:
        data = memoryview(text.encode(errors="backslashreplace"))
        descriptor = self._stream.fileno()
        ready = select.poll()
        ready.register(descriptor, select.POLLOUT)
        while data:
            if not ready.poll(0 if self._unreported else _SLOW_READER):
                raise BlockingIOError("the reader does not read")
            data = data[os.write(descriptor, data[:_UNBLOCKED]) :]
            self._torn = len(data) > 0

    def _count_lost(self) -> None:
        global _lost_lines  # noqa: PLW0603 - a process has one standard error
        self.lost += 1
        self._unreported += 1
        _lost_lines += 1

    def _lost_notice(self) -> str:
        """Return the end of a torn line, and a line that says how many are missing."""
        notice = {
            "event": "log lines were lost",
            "lines": self._unreported,
            "level": "warning",
            "timestamp": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
        }
        return ("\n" if self._torn else "") + (json.dumps(notice) + "\n" if self._unreported else "")


def count_lost_lines() -> int:
    """Count the log lines of this process that could not be written."""
    return _lost_lines


def start_log(level: str) -> Log:
    """Set up the logs of the process, other libraries' included, and return ours. Logging never raises."""
    shared: list[Any] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,  # a plain traceback: local variables may hold keys
    ]
    threshold = logging.getLevelNamesMapping()[level.upper()]
    lines: Any = LogStream(sys.stderr)
    handler = logging.StreamHandler(lines)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(),
            ],
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *shared],
        )
    )
    logging.raiseExceptions = False  # a handler that fails would print a traceback between the lines
    logging.basicConfig(handlers=[handler], level=max(threshold, logging.WARNING), force=True)
    log: Log = structlog.wrap_logger(
        structlog.WriteLogger(lines),
        processors=[*shared, structlog.processors.JSONRenderer()],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        context_class=dict,
    )
    return log
