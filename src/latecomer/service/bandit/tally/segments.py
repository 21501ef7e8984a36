"""Choices by segment: decisions and conversions by action id, for each value of the first context features.

A number belongs to a range (1 to 2, 2 to 5, 5 to 10, 10 to 20 …). Memory is bounded: the first `FEATURES` features, the
first `MOST_LEVELS` values of each, and the first `MOST_SLOTS` action ids; all others are counted together.
"""

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from latecomer.core.state import Integers
from latecomer.service.bandit.offers import LONGEST_REPEAT
from latecomer.service.bandit.tally.open_rounds import FEATURES

MOST_LEVELS = 20
MOST_SLOTS = 32
OTHER_SLOT = 1
ABSENT, OTHER_LEVELS = 0, 1
"""Codes of a feature that a decision does not have, and of further values. The first value has code 2."""
LONGEST_TEXT = 60
Codes = npt.NDArray[np.uint8]
Context = Mapping[str, Any]
Contexts = Mapping[int, Context | int]
"""Contexts by place, in the order of places; in place of one, the distance to the round that had the same offer."""


class Segments:
    """The segments' counts, and the codes of the latest rounds, which a repeated offer refers to."""

    def __init__(self) -> None:
        self.features: dict[str, int] = {}
        self.levels: list[dict[str, int]] = []
        self.counts = np.zeros((2, FEATURES, MOST_LEVELS + 2, MOST_SLOTS), np.int64)
        """Decisions, and credited conversions, by feature, code and slot."""
        self._recent = np.zeros((LONGEST_REPEAT, FEATURES), np.uint8)

    def encode(self, contexts: Contexts, first: int, count: int) -> Codes | None:
        """Return the codes of `count` rounds from `first` on; None where there are none, now or ever."""
        if not self.features and all(isinstance(context, int) for context in contexts.values()):
            return None
        codes = np.zeros((count, FEATURES), np.uint8)
        for place, context in contexts.items():
            if isinstance(context, int):
                earlier = place - context
                codes[place] = codes[earlier] if earlier >= 0 else self._recent[(first + earlier) % LONGEST_REPEAT]
            else:
                for name, value in context.items():
                    feature = self.features.get(name)
                    if feature is None:
                        feature = self._add_feature(name)
                        if feature is None:
                            continue
                    codes[place, feature] = self._find_code(feature, value)
        kept = codes[-LONGEST_REPEAT:]
        self._recent[(first + len(codes) - len(kept) + np.arange(len(kept))) % LONGEST_REPEAT] = kept
        return codes

    def _add_feature(self, name: str) -> int | None:
        if len(self.features) >= FEATURES:
            return None
        self.levels.append({})
        return self.features.setdefault(name, len(self.features))

    def _find_code(self, feature: int, value: object) -> int:
        kind = type(value)
        if kind is str:
            text = str(value)[:LONGEST_TEXT]
        elif kind is bool:
            text = "yes" if value else "no"
        elif kind is float or kind is int:
            text = name_range(value)
        else:
            return ABSENT  # nothing, or a list of texts
        levels = self.levels[feature]
        code = levels.get(text)
        if code is None:
            if len(levels) >= MOST_LEVELS:
                return OTHER_LEVELS
            code = levels[text] = len(levels) + 2
        return code

    def add(self, kind: int, codes: Codes, slots: Integers, amount: int | Integers = 1) -> None:
        """Add decisions (kind 0) or conversions (kind 1) with their codes and the slots of their action ids."""
        used = len(self.features)
        slots = np.where(slots < MOST_SLOTS, slots, OTHER_SLOT)
        np.add.at(self.counts[kind], (np.arange(used), codes[:, :used], slots[:, None]), amount)
        self.counts[kind, :, ABSENT] = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the segments for a snapshot; nothing where there are none."""
        if not self.features:
            return {}
        return {
            "features": list(self.features),
            "levels": [list(levels) for levels in self.levels],
            "counts": self.counts.astype("<i8").tobytes(),
            "recent": self._recent.tobytes(),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Take the segments of a snapshot."""
        if saved:
            self.features = {name: number for number, name in enumerate(saved["features"])}
            self.levels = [{text: code for code, text in enumerate(levels, start=2)} for levels in saved["levels"]]
            self.counts[:] = np.frombuffer(saved["counts"], "<i8").reshape(self.counts.shape)
            self._recent[:] = np.frombuffer(saved["recent"], np.uint8).reshape(self._recent.shape)


@lru_cache(maxsize=4096)
def name_range(number: float) -> str:
    """Name the range of a number, in steps of 1, 2 and 5.

    >>> [name_range(number) for number in (0.3, 37, 20, -3, 0)]
    ['0.2 to 0.5', '20 to 50', '20 to 50', '-5 to -2', '0']
    """
    if number == 0:
        return "0"
    if not math.isfinite(number):
        return str(number)
    size = abs(number)
    power = math.floor(math.log10(size))
    base = 10.0**power
    if base <= 0.0 or not math.isfinite(base * 10.0):
        return "tiny" if size < 1.0 else "huge"
    steps = [base, 2.0 * base, 5.0 * base, 10.0 * base, 20.0 * base]
    place = max(step for step in range(4) if steps[step] <= size * (1 + 1e-12)) if size >= base else 0
    low, high = f"{steps[place]:g}", f"{steps[place + 1]:g}"
    return f"{low} to {high}" if number > 0 else f"-{high} to -{low}"
