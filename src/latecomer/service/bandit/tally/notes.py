"""Decisions as the tally takes them: one by one from live calls, and in columns from the log."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from latecomer.core.state import Array, Integers
from latecomer.service.bandit.tally.segments import Context, Contexts

Note = tuple[int, float | None, str | None, Context | None]
"""A decision: its stamp; its propensity, negative where the control chose; the id of the chosen action; and the logged
context."""


class Notes(NamedTuple):
    """Consecutive decisions: what is a `Note` for each, in columns."""

    stamps: Integers
    signed: Array
    """Propensities, NaN where there is none"""
    codes: Integers
    """The ids of the chosen actions, as places in `labels`"""
    labels: Sequence[str | None]
    """None, and the ids in the order of their first choice"""
    contexts: Contexts

    def cut(self, begin: int, end: int) -> "Notes":
        """Return the decisions in these places."""
        seen: dict[int, int] = {0: 0}
        codes = np.array([seen.setdefault(code, len(seen)) for code in self.codes[begin:end].tolist()], np.int64)
        contexts = {place - begin: found for place, found in self.contexts.items() if begin <= place < end}
        labels = [self.labels[code] for code in seen]
        return Notes(self.stamps[begin:end], self.signed[begin:end], codes, labels, contexts)


def join_notes(notes: Sequence[Note]) -> Notes:
    """Put notes into columns."""
    stamps, signed, labels, contexts = zip(*notes, strict=True)
    found = {place: context for place, context in enumerate(contexts) if context}
    return make_notes(np.array(stamps, np.int64), np.array(signed, np.float64), labels, found)


def make_notes(stamps: Integers, signed: Array, labels: Sequence[str | None], contexts: Contexts) -> Notes:
    """Make the columns of decisions whose chosen actions have these ids."""
    seen: dict[str | None, int] = {None: 0}
    codes = np.array([seen.setdefault(label, len(seen)) for label in labels], np.int64)
    return Notes(stamps, signed, codes, list(seen), contexts)


def concatenate_notes(parts: Sequence[Notes]) -> Notes:
    """Put columns one after the other."""
    if len(parts) == 1:
        return parts[0]
    seen: dict[str | None, int] = {}
    codes, contexts, first = [], {}, 0
    for part in parts:
        codes.append(np.array([seen.setdefault(label, len(seen)) for label in part.labels])[part.codes])
        contexts.update({first + place: context for place, context in part.contexts.items()})
        first += len(part.stamps)
    stamps = np.concatenate([part.stamps for part in parts])
    signed = np.concatenate([part.signed for part in parts])
    return Notes(stamps, signed, np.concatenate(codes), list(seen), contexts)
