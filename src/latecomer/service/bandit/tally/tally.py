"""The tally of a bandit: everything that its report counts, live and in a replay alike.

A live call only notes its event: a thousand notes are counted at once, with arrays. Decisions come before the reports
of the same notes, and rounds close last; so the counts depend on the events and not on how they were grouped. Memory is
bounded: at most `time_buckets.MOST` buckets, `MOST_IDS` action ids, 10 bytes for each round that the policy holds, and
8 more where contexts are logged (`segments`).
"""

from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from latecomer.core.conversions import ACCEPTED, REVOKED
from latecomer.core.state import Array, Integers
from latecomer.service.bandit.tally.columns import Column
from latecomer.service.bandit.tally.credited_rounds import CreditedRounds
from latecomer.service.bandit.tally.exact_sums import PARTS, join_parts, split_values
from latecomer.service.bandit.tally.notes import Note, Notes, concatenate_notes, join_notes
from latecomer.service.bandit.tally.open_rounds import CONTROL, CONVERTED, UNIT, UNKNOWN, Facts, OpenRounds, split_arms
from latecomer.service.bandit.tally.segments import Context, Segments
from latecomer.service.bandit.tally.time_buckets import TimeBuckets

MOST_IDS = 250
"""Action ids that are counted by themselves: the first so many. All others are counted together."""
NO_ID, OTHER_IDS = 0, 1
"""Slots of choices without an id, and of those of other ids. The first id has slot 2."""
MOST_NOTES = 1024
UNSURE = 0.5
"""A choice with a propensity below this counts as explored."""

PROPENSITY_BINS = 10
"""Equal parts of [0, 1], in which the propensities of the policy's choices are counted."""


class Tally:
    """Counts since round `first_round`.

    Parameters
    ----------
    first_round
        The first round that is counted: 1, or a later one where the counts of earlier rounds were not kept.
    """

    def __init__(self, first_round: int = 1) -> None:
        self.first_round = first_round
        self.buckets = TimeBuckets(Column.VALUES + PARTS)
        self.choices = TimeBuckets(2)
        """Decisions by time and action id: a column for each slot."""
        self.slots: dict[str, int] = {}
        """Slots of action ids, in the order of their first choice."""
        self.credited_by_slot = np.zeros(MOST_IDS + 2, np.int64)
        self.value_by_slot = np.zeros((MOST_IDS + 2, PARTS), np.int64)
        """Parts of exact sums of values"""
        self.propensities = np.zeros(PROPENSITY_BINS, np.int64)
        self.closed = np.zeros((3, 2 + PARTS), np.int64)
        """Of closed rounds, those that the policy chose, those of the control, and those of unknown propensity: rounds,
        conversions, parts of the sum of values."""
        self.segments = Segments()
        self._rounds = OpenRounds(first_round)
        self.credited: CreditedRounds | None = None
        """Credited rounds that the policy holds no more, where these can be corrected."""
        self._decisions: list[Note] = []
        self._columns: list[Notes] = []
        """Decisions that were noted in columns; those of `_decisions` come after them."""
        self._reports: list[tuple[int | None, Integers, Array, Integers, Integers]] = []

    # ---- notes ----

    def note_decision(
        self, stamp: int, signed_propensity: float | None, label: str | None, context: Context | None = None
    ) -> None:
        """Note the next round; `context` is what the log gets of it."""
        self._decisions.append((stamp, signed_propensity, label, context))

    def note_decisions(self, notes: Notes) -> None:
        """Note the next rounds."""
        if self._decisions:
            self._columns.append(join_notes(self._decisions))
            self._decisions = []
        self._columns.append(notes)

    @property
    def is_full(self) -> bool:
        """True when it is time to count the notes."""
        held = len(self._decisions) + sum(len(notes.stamps) for notes in self._columns)
        return max(held, len(self._reports)) >= MOST_NOTES

    def note_conversions(self, rounds: Integers, values: Array, verdicts: Integers, stamps: int | Integers) -> bool:
        """Note reports of conversions; return whether it is time to count the notes."""
        return self._note_reports(Column.ARRIVED, rounds, values, verdicts, stamps)

    def note_revocations(self, rounds: Integers, verdicts: Integers, stamps: int | Integers) -> bool:
        """Note reports of revocations; return whether it is time to count the notes."""
        return self._note_reports(Column.REVOKED, rounds, np.full(len(rounds), REVOKED), verdicts, stamps)

    def note_purchases(self, rounds: Integers, credits: Array, verdicts: Integers, stamps: int | Integers) -> bool:
        """Note conversions with the credits that their rounds then have, which may have had others before."""
        return self._note_reports(Column.ARRIVED, rounds, credits, verdicts, stamps)

    def note_returns(self, rounds: Integers, credits: Array, verdicts: Integers, stamps: int | Integers) -> bool:
        """Note revocations with the credits that their rounds then have."""
        return self._note_reports(Column.REVOKED, rounds, credits, verdicts, stamps)

    def note_corrections(self, rounds: Integers, credits: Array, verdicts: Integers, stamps: int | Integers) -> bool:
        """Note corrections with the credits that their rounds then have; by themselves they are not counted."""
        return self._note_reports(None, rounds, credits, verdicts, stamps)

    def _note_reports(
        self, column: int | None, rounds: Integers, credits: Array, verdicts: Integers, stamps: int | Integers
    ) -> bool:
        arrived = stamps if isinstance(stamps, np.ndarray) else np.full(len(rounds), stamps)
        self._reports.append((column, rounds, credits, verdicts, arrived))
        return len(self._reports) >= MOST_NOTES

    # ---- counts ----

    def count_notes(self, oldest: int) -> None:
        """Count what was noted, and close the rounds before `oldest`."""
        self.count_events()
        self.close_rounds(oldest)

    def count_events(self) -> None:
        """Count what was noted; no round is closed."""
        columns, decisions = self._columns, self._decisions
        self._columns, self._decisions = [], []
        if decisions:
            columns.append(join_notes(decisions))
        if columns:
            self._count_decisions(concatenate_notes(columns))
        reports, self._reports = self._reports, []
        for column, group in groupby(reports, key=lambda report: report[0]):
            rounds, credits, verdicts, stamps = map(np.concatenate, zip(*(report[1:] for report in group), strict=True))
            accepted = verdicts == ACCEPTED
            if accepted.any():
                if column is not None:
                    self._cover(stamps[accepted])
                    self.buckets.add(stamps[accepted], column)
                self._change_credits(rounds[accepted], credits[accepted])

    def close_rounds(self, oldest: int, *, kept: int | None = None) -> Integers:
        """Close the rounds before `oldest`; forget those before `kept`, or all closed ones, and return the credited."""
        closed = self._rounds.close(oldest)
        for arm, chosen in enumerate(split_arms(closed["flags"])):
            of_arm = closed[chosen]
            counts = len(of_arm), np.count_nonzero(of_arm["flags"] & CONVERTED)
            self.closed[arm] += (*counts, *split_values(of_arm["value"]).sum(axis=0))
        rounds, facts = self._rounds.forget(oldest if kept is None else kept)
        if self.credited is not None:
            self.credited.add(rounds, facts)
        return rounds

    def _count_decisions(self, notes: Notes) -> None:
        stamps, signed = notes.stamps, notes.signed
        slots = np.array([self._find_slot(label) for label in notes.labels], np.uint8)[notes.codes]
        self.choices.widen(len(self.slots) + 2)
        is_control, known = signed < 0.0, signed >= 0.0
        flags = is_control.astype(np.uint8) * CONTROL + (~is_control & ~known).astype(np.uint8) * UNKNOWN
        segments = self.segments.encode(notes.contexts, self._rounds.next, len(stamps))
        self._rounds.append(slots, flags, segments)
        if segments is not None:
            self.segments.add(0, segments, slots.astype(np.int64))
        self._cover(stamps)
        self.buckets.add(stamps, Column.DECISIONS)
        self.buckets.add(stamps[is_control], Column.CONTROLS)
        bins = np.minimum(signed[known] * PROPENSITY_BINS, PROPENSITY_BINS - 1).astype(np.int64)
        self.propensities += np.bincount(bins, minlength=PROPENSITY_BINS)
        self.buckets.add(stamps[known], Column.WITH_PROPENSITY)
        self.buckets.add(stamps[known], Column.PROPENSITIES, np.rint(signed[known] * UNIT).astype(np.int64))
        self.buckets.add(stamps[known & (signed < UNSURE)], Column.EXPLORED)
        self.choices.add(stamps, slots.astype(np.int64))

    def _find_slot(self, label: str | None) -> int:
        if label is None:
            return NO_ID
        slot = self.slots.get(label)
        if slot is None:
            if len(self.slots) >= MOST_IDS:
                return OTHER_IDS
            slot = self.slots[label] = len(self.slots) + 2
        return slot

    @property
    def names(self) -> list[str]:
        """The action id of each slot."""
        return ["no id", "other ids", *self.slots]

    def find_slots(self, rounds: Integers) -> Integers:
        """Return the slots of rounds that are not closed; `NO_ID` for any other."""
        is_held = (rounds >= self._rounds.first) & (rounds < self._rounds.next)
        slots = np.full(len(rounds), NO_ID)
        slots[is_held] = self._rounds.find(rounds[is_held])["slot"]
        return slots

    def _change_credits(self, rounds: Integers, credits: Array) -> None:
        """Give rounds other credits, in the order of the reports: the last of a round is the one that it has."""
        rounds, places = np.unique(rounds[::-1], return_index=True)
        credits = credits[::-1][places]
        is_held = rounds >= self._rounds.first
        held, facts = rounds[is_held], self._rounds.find(rounds[is_held])
        self._rounds.write(held, self._credit(held, facts, credits[is_held]))
        if self.credited is not None and not is_held.all():
            places, facts = self.credited.find(rounds[~is_held])
            known = self.credited.rounds[places]
            self.credited.write(places, self._credit(known, facts, credits[np.isin(rounds, known)]))

    def _cover(self, stamps: Integers) -> None:
        for buckets in (self.buckets, self.choices):
            buckets.cover(int(stamps.min()), int(stamps.max()))

    def _credit(self, rounds: Integers, facts: Facts, credits: Array) -> Facts:
        """Count the changes that other credits make; return the records with these."""
        after, values = facts.copy(), np.maximum(credits, 0.0)
        flags = facts["flags"] & ~np.uint8(CONVERTED)
        after["flags"], after["value"] = flags | np.where(credits >= 0.0, np.uint8(CONVERTED), np.uint8(0)), values
        was_converted = (facts["flags"] & CONVERTED) != 0
        counts = (credits >= 0.0).astype(np.int64) - was_converted
        changes = split_values(values) - split_values(facts["value"])
        places = np.searchsorted(self.find_first_rounds(), rounds, "right") - 1
        is_control = (facts["flags"] & CONTROL) != 0
        for column, added in (
            (Column.CREDITED, counts),
            (Column.CONTROLS_CREDITED, counts * is_control),
            *enumerate(changes.T, Column.VALUES),
        ):
            self.buckets.add_at(places, column, added)
        np.add.at(self.credited_by_slot, facts["slot"], counts)
        np.add.at(self.value_by_slot, facts["slot"], changes)
        if self._rounds.has_segments:
            self.segments.add(1, facts["segments"], facts["slot"].astype(np.int64), counts[:, None])
        is_closed = rounds < self._rounds.open
        for arm, chosen in enumerate(split_arms(facts["flags"])):
            late = chosen & is_closed
            self.closed[arm] += (0, counts[late].sum(), *changes[late].sum(axis=0))
        return after

    def are_credited(self, rounds: Integers) -> npt.NDArray[np.bool_]:
        """Tell which of some rounds, in their order, are credited; those of which nothing is known are not."""
        found, is_held = np.zeros(len(rounds), np.bool_), rounds >= self._rounds.first
        found[is_held] = (self._rounds.find(rounds[is_held])["flags"] & CONVERTED) != 0
        if self.credited is not None:
            places, facts = self.credited.find(rounds)
            found |= np.isin(rounds, self.credited.rounds[places[(facts["flags"] & CONVERTED) != 0]])
        return found

    def read_open(self) -> tuple[int, Facts]:
        """Return the oldest open round, and the records from it on."""
        return self._rounds.open, self._rounds.read_open()

    @property
    def value(self) -> float:
        """The sum of the values that decisions are credited with."""
        return join_parts(self.buckets.counts[:, Column.VALUES :].sum(axis=0))

    def count_decisions(self) -> int:
        """Return the number of decisions that were counted."""
        return int(self.buckets.counts[:, Column.DECISIONS].sum())

    def find_first_rounds(self) -> Integers:
        """Return the first round of each bucket; an empty bucket has that of the next."""
        decisions = self.buckets.counts[:, Column.DECISIONS]
        return self.first_round + np.cumsum(decisions) - decisions

    # ---- snapshots ----

    def to_dict(self) -> dict[str, Any]:
        """Return the tally for a snapshot; the notes must have been counted."""
        return {
            "first_round": self.first_round,
            "buckets": self.buckets.to_dict(),
            "choices": self.choices.to_dict(),
            "slots": list(self.slots),
            "credited_by_slot": self.credited_by_slot.tolist(),
            "value_by_slot": self.value_by_slot.tolist(),
            "propensities": self.propensities.tolist(),
            "closed": self.closed.tolist(),
            "segments": self.segments.to_dict(),
            "rounds": self._rounds.to_dict(),
            **({} if self.credited is None else {"credited": self.credited.to_dict()}),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Take the tally of a snapshot."""
        self.first_round = saved["first_round"]
        self.buckets.restore(saved["buckets"])
        self.choices.restore(saved["choices"])
        self.slots = {label: slot for slot, label in enumerate(saved["slots"], start=2)}
        self.credited_by_slot[:] = saved["credited_by_slot"]
        self.value_by_slot[:], self.propensities[:] = saved["value_by_slot"], saved["propensities"]
        self.closed[:] = saved["closed"]
        self.segments.restore(saved["segments"])
        self._rounds.restore(saved["rounds"])
        if self.credited is not None:
            self.credited.restore(saved["credited"])
