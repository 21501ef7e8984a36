"""The grid on which a bandit is watched: cells of time or, where the window is in rounds, of rounds."""

import itertools
import math

import numpy as np

from latecomer.core.state import Integers

CELLS = 1008
"""Cells of a window, at most: of a window of 7 days, ten minutes each."""
MICROSECONDS = 1_000_000
DAY = 86_400 * MICROSECONDS
WEEK = 7 * DAY
LEAST_ROUNDS = 64
"""Rounds of a cell, at least, where the window is in rounds."""
ROUNDS_OF_A_LOOK = 10_000


class Grid:
    """Positions (stamps in microseconds, or rounds) to cells.

    Parameters
    ----------
    span
        The window, in microseconds or rounds.
    in_rounds
        True where it is in rounds.
    """

    def __init__(self, span: int, *, in_rounds: bool) -> None:
        self.in_rounds = in_rounds
        self.width = max(LEAST_ROUNDS if in_rounds else MICROSECONDS, -(-span // CELLS))
        """Microseconds or rounds of a cell."""
        self.cells = max(1, -(-span // self.width))
        """Cells of the window, 1 where it is 0: a decision of cell k is open until cell k + `cells`."""
        look = max(span, ROUNDS_OF_A_LOOK if in_rounds else DAY)
        self.look = -(-look // self.width)
        """Cells between two looks at the delays: a window, but at least a day or 10,000 rounds."""

    def find(self, positions: Integers) -> Integers:
        """Return the cell of each position."""
        return positions // self.width

    def threshold(self, cells: int, elapsed: int) -> float:
        """Return ln(100 · cells a week), the evidence at which a silence is no chance any more.

        `cells` and the microseconds `elapsed` give the pace where the window is in rounds.
        """
        weekly = cells * WEEK / max(elapsed, MICROSECONDS) if self.in_rounds else WEEK / self.width
        return math.log(100.0 * min(max(weekly, 1.0), 1e7))


def split_by_cell(cells: Integers) -> list[tuple[int, slice]]:
    """Return each cell of an ascending list, and where it is."""
    found, begins = np.unique(cells, return_index=True)
    parts = itertools.pairwise([*begins.tolist(), len(cells)])
    return [(cell, slice(begin, end)) for cell, (begin, end) in zip(found.tolist(), parts, strict=True)]
