"""Pictures of commands that run in this process."""

from typing import Any

import pytest
from matplotlib.figure import Figure


@pytest.fixture
def empty_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write an empty picture for each: drawing takes a second, and a test in a real process draws what is there."""
    write = Figure.savefig

    def write_empty(_figure: Figure, *arguments: Any, **options: Any) -> None:
        write(Figure(figsize=(1, 1)), *arguments, **options)

    monkeypatch.setattr(Figure, "savefig", write_empty)
