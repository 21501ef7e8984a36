"""A progress bar on standard error, or nothing."""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext


def show_progress(label: str, total: int, *, progress: bool | None) -> AbstractContextManager[Callable[[], None]]:
    """A bar that each call of what it yields moves by one; None shows it where standard error is a terminal."""
    shown = sys.stderr.isatty() if progress is None else progress
    return _bar(label, total) if shown else nullcontext(_nothing)


def _nothing() -> None:
    """Making a bar that nobody sees takes as long as some hundred rounds."""


@contextmanager
def _bar(label: str, total: int) -> Iterator[Callable[[], None]]:
    from rich.console import Console  # noqa: PLC0415 - only where it is used
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=total)
        yield lambda: bar.advance(task)
