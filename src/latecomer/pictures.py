"""Pictures as files: SVG, and PNG with twice the pixels, for slides and dense screens."""

from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PNG_SCALE = 2
"""Pixels of a PNG for each pixel of the figure."""


def write_picture(figure: "Figure", path: "Path | IO[bytes]", *, suffix: str) -> None:
    """Write a figure as ".png" or ".svg"; the same figure gives the same bytes, without a date."""
    import matplotlib as mpl  # noqa: PLC0415 - only where a picture is made

    if suffix == ".png":
        figure.savefig(path, format="png", dpi=PNG_SCALE * figure.dpi)
        return
    with mpl.rc_context({"svg.hashsalt": "latecomer"}):
        figure.savefig(path, format="svg", metadata={"Date": None})
