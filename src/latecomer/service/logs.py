"""What a server says: one JSON object a line, on standard error. No key, no body and no query ever gets here."""

import logging
import sys
from typing import Any, TextIO

import structlog
from structlog.typing import FilteringBoundLogger

Log = FilteringBoundLogger


def start_log(level: str, stream: TextIO | None = None) -> Log:
    """Set the process's logs up, other libraries' included, and give back ours."""
    shared: list[Any] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,  # a plain traceback: local variables may hold keys
    ]
    threshold = logging.getLevelNamesMapping()[level.upper()]
    stream = stream or sys.stderr
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(),
            ],
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *shared],
        )
    )
    logging.basicConfig(handlers=[handler], level=max(threshold, logging.WARNING), force=True)
    log: Log = structlog.wrap_logger(
        structlog.WriteLogger(stream),
        processors=[*shared, structlog.processors.JSONRenderer()],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        context_class=dict,
    )
    return log
