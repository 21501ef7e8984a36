"""Progress on standard error: a bar where rich is installed, a plain count where it is not, or nothing."""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.util import find_spec


def show_progress(label: str, total: int, *, progress: bool | None) -> AbstractContextManager[Callable[[], None]]:
    """Return a context whose value is a function that counts one step; None shows it where stderr is a terminal."""
    is_shown = sys.stderr.isatty() if progress is None else progress
    if not is_shown:
        return nullcontext(_ignore_step)  # making a bar that nobody sees takes as long as some hundred rounds
    return _draw_bar(label, total) if find_spec("rich") else _print_count(label, total)


def announce(text: str) -> None:
    """Write a line about what takes a while to standard error."""
    print(text, file=sys.stderr, flush=True)


def _ignore_step() -> None:
    """Do nothing."""


@contextmanager
def _draw_bar(label: str, total: int) -> Iterator[Callable[[], None]]:
    from rich.console import Console  # noqa: PLC0415 - only where it is used
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=total)
        yield lambda: bar.advance(task)


@contextmanager
def _print_count(label: str, total: int) -> Iterator[Callable[[], None]]:
    """Write `runs: 3 of 10` over itself, and clear the line at the end."""
    done = 0

    def count_step() -> None:
        nonlocal done
        done += 1
        print(f"\r{label}: {done} of {total}", end="", file=sys.stderr, flush=True)

    try:
        yield count_step
    finally:
        print(f"\r{' ' * len(f'{label}: {total} of {total}')}\r", end="", file=sys.stderr, flush=True)
