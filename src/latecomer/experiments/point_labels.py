"""Labels of points, each at a place beside its point where it covers no other label and no other point."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.transforms import Bbox

from latecomer.core.state import Array

_PLACES = [
    (distance * math.cos(angle), distance * math.sin(angle))
    for distance in (5.0, 8.0, 12.0, 17.0, 23.0, 30.0)
    for angle in (math.pi / 4.0 + side * step * math.pi / 8.0 for step in range(9) for side in (1, -1))
]
"""Places of a label relative to its point, in points: the nearest first, and of these those to the upper right."""
_NEAR = 9.0
"""A label that is farther away has a line to its point."""
_MARKER = 2.5
"""The radius of a marker, in points."""


def label_points(axes: Axes, points: Sequence[tuple[float, float, str]], *, size: float) -> None:
    """Label points of an axes whose place in the figure is known."""
    scale = axes.get_figure(root=True).dpi / 72.0  # type: ignore[union-attr]  # axes are in a figure
    taken = [_make_box(axes.transData.transform((x, y)), (_MARKER * scale, _MARKER * scale)) for x, y, _ in points]
    for x, y, text in points:
        half = 0.33 * size * len(text) * scale, 0.45 * size * scale
        middle = axes.transData.transform((x, y))
        boxes = ((shift, _make_box(middle + scale * np.array(shift), half)) for shift in _PLACES)
        shift, box = next(
            (found for found in boxes if not any(found[1].overlaps(other) for other in taken)), (_PLACES[0], None)
        )
        if box is not None:
            taken.append(box)
        is_far = math.hypot(*shift) > _NEAR
        axes.annotate(
            text,
            (x, y),
            fontsize=size,
            xytext=shift,
            textcoords="offset points",
            ha="center",
            va="center",
            arrowprops={"arrowstyle": "-", "linewidth": 0.4, "color": "#888888"} if is_far else None,
        )


def _make_box(middle: Array, half: tuple[float, float]) -> Bbox:
    return Bbox.from_extents(middle[0] - half[0], middle[1] - half[1], middle[0] + half[0], middle[1] + half[1])
