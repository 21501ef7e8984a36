"""A model of a bandit that keeps everything in lists: every rule as it is written in the documentation."""

from collections import Counter
from typing import Any

import numpy as np
from fake_clocks import SECOND

from latecomer.service.messages import Verdict

WINDOW = 10 * SECOND
SCALE = 2.0
"""Of a reward that has amounts."""


class Deferred:
    """A deferred decision of the model; its round is 0 until it is activated."""

    def __init__(self, action: Any, moment: int, by_champion: bool) -> None:
        self.action, self.moment, self.round, self.is_gone = action, moment, 0, False
        self.by_champion = by_champion


class Model:
    """Decisions in a list; every rule as it is written in the documentation."""

    def __init__(self, in_rounds: bool, grace: int, aggregate: str | None = None, returns: int = 0) -> None:
        self.aggregate, self.correctable = aggregate, max(grace, returns)
        self.baskets: dict[int, dict[str | None, float | None]] = {}
        """By round, amounts by conversion id: None once taken back."""
        self.capped = 0
        self.stages: set[tuple[int, str]] = set()
        self.keeps_baskets = False
        """True where each conversion has a basket, also without an id or amounts."""
        self.in_rounds, self.grace, self.commits = in_rounds, grace, 3 if in_rounds else WINDOW
        self.stamps: list[int] = []
        self.actions: list[Any] = []
        self.by_champion: list[bool] = []
        """Of each round, whether the champion made it, where there is a challenger."""
        self.credits: list[float | None] = []
        self.revoked: set[int] = set()
        self.forgotten = 0
        self.deferred: list[Deferred] = []
        self.subjects: dict[str, list[int]] = {}
        self.expired = self.dropped = 0
        self.is_frozen = False
        self.versions: list[dict[str, int]] = [{}]
        """The actions of each version of the catalogue."""
        self.counts = {(kind, verdict): 0 for kind in "cr" for verdict in Verdict}

    def decide(self, action: Any, now: int, by_champion: bool = False) -> int:
        self.forgotten = sum(self.is_closed(round_, now, deciding=True) for round_ in range(1, len(self.stamps) + 1))
        self.dropped = sum(
            self.is_closed(round_, now - self.grace, deciding=True) for round_ in range(1, len(self.stamps) + 1)
        )
        self.stamps.append(now)
        self.actions.append(0 * action if self.is_frozen else action)
        self.credits.append(None)
        self.by_champion.append(by_champion)
        return len(self.stamps)

    def attribute(self, subject: str, occurred: int) -> int:
        """Return the last of a subject's rounds in whose window a conversion occurred, or else the last before it."""
        held = [round_ for round_ in self.subjects.get(subject, []) if round_ > self.dropped]
        if not self.in_rounds:
            held = [round_ for round_ in held if self.stamps[round_ - 1] <= occurred]
        inside = [
            round_
            for round_ in held
            if (len(self.stamps) - round_ if self.in_rounds else occurred - self.stamps[round_ - 1]) <= self.commits
        ]
        return (inside or held or [0])[-1]

    def put(self, actions: dict[str, int], withdraw: set[str], replace: bool) -> tuple[int, int, int]:
        """Return how many actions are added, changed and withdrawn."""
        before = self.versions[-1]
        after = {id_: row for id_, row in before.items() if id_ not in withdraw and not replace} | actions
        if after != before:
            self.versions.append(after)
        changed = sum(before[id_] != after[id_] for id_ in before.keys() & after.keys())
        return len(after.keys() - before.keys()), changed, len(before.keys() - after.keys())

    def defer(self, action: Any, now: int, by_champion: bool = False) -> int:
        """Return the number of a deferred decision, from 0."""
        moment = self.moment(now)
        self.drop_expired(moment)
        self.deferred.append(Deferred(action, moment, by_champion))
        return len(self.deferred) - 1

    def activate(self, number: int, now: int) -> Verdict:
        if not 0 <= number < len(self.deferred):
            return Verdict.UNKNOWN
        self.drop_expired(self.moment(now))
        found = self.deferred[number]
        if found.is_gone or 0 < found.round <= self.dropped:
            return Verdict.LATE
        if found.round:
            return Verdict.DUPLICATE
        found.round = self.decide(found.action, now, found.by_champion)
        return Verdict.ACCEPTED

    def moment(self, now: int) -> int:
        return len(self.stamps) + 1 if self.in_rounds else now

    def drop_expired(self, moment: int) -> None:
        """Forget what was not activated in time; what was activated is forgotten with its round."""
        for found in self.deferred:
            if not found.round and not found.is_gone and moment - found.moment > self.commits:
                found.is_gone = True
                self.expired += 1

    def find_age(self, round_: int, now: int) -> int:
        """Return how old a round is at the next one."""
        return len(self.stamps) + 1 - round_ if self.in_rounds else max(now - self.stamps[round_ - 1], 0)

    def is_credited(self, round_: int) -> bool:
        """Tell whether a round has a conversion that was not taken back."""
        if round_ in self.baskets:
            return any(amount is not None for amount in self.baskets[round_].values())
        return self.credits[round_ - 1] is not None and round_ not in self.revoked

    def is_closed(self, round_: int, now: int, deciding: bool = False) -> bool:
        if self.in_rounds:
            return len(self.stamps) + deciding - round_ > self.commits
        return now - self.stamps[round_ - 1] > self.commits

    def judge(self, round_: int, occurred: int, reported: int, *, is_revocation: bool = False) -> Verdict:
        if not 1 <= round_ <= len(self.stamps):
            return Verdict.UNKNOWN
        if self.grace:
            age = max(reported, self.stamps[-1]) - self.stamps[round_ - 1]
            is_outside = occurred - self.stamps[round_ - 1] > WINDOW and not is_revocation
            is_late = is_outside or age > WINDOW + self.grace
        else:
            is_late = round_ <= self.forgotten or self.is_closed(round_, max(occurred, self.stamps[-1]))
        if is_late:
            return Verdict.LATE
        return Verdict.ACCEPTED if self.credits[round_ - 1] is None else Verdict.DUPLICATE

    def convert(
        self, round_: int, value: float, occurred: int, reported: int, conversion_id: str | None = None
    ) -> Verdict:
        verdict, basket = self.judge(round_, occurred, reported), self.baskets.get(round_)
        known = self.find_id(conversion_id, occurred, reported) if conversion_id else []
        if known and round_ not in known:  # an id counts once, whichever decision it is reported for
            verdict = Verdict.DUPLICATE if verdict is Verdict.ACCEPTED else verdict
        elif verdict is Verdict.ACCEPTED:
            self.credits[round_ - 1] = value
            if self.aggregate or conversion_id or self.keeps_baskets:
                self.baskets[round_] = {conversion_id: value}
        elif verdict is Verdict.DUPLICATE and self.aggregate and basket is not None and conversion_id not in basket:
            basket[conversion_id] = value
            verdict = Verdict.ACCEPTED
        if verdict is Verdict.ACCEPTED and self.aggregate and self.total(round_) > SCALE:
            self.capped += 1
        self.counts["c", verdict] += 1
        return verdict

    def reach(self, round_: int, stage: str, reported: int) -> Verdict:
        verdict = self.judge(round_, reported, reported, is_revocation=True)
        if verdict in (Verdict.LATE, Verdict.UNKNOWN):
            return verdict
        if (round_, stage) in self.stages:
            return Verdict.DUPLICATE
        self.stages.add((round_, stage))
        return Verdict.ACCEPTED

    def count_stages(self) -> dict[str, tuple[int, int]]:
        """By stage, the decisions that reached it, and those of them that are credited now."""
        reached = Counter(stage for _, stage in self.stages)
        credited = Counter(stage for round_, stage in self.stages if self.is_credited(round_))
        return {stage: (count, credited[stage]) for stage, count in reached.items()}

    def total(self, round_: int) -> float:
        kept = [amount for amount in self.baskets[round_].values() if amount is not None]
        return max(kept, default=0.0) if self.aggregate == "max" else sum(kept)

    def find_id(self, conversion_id: str, occurred: int, reported: int) -> list[int]:
        """Return the rounds that have a conversion of that id, which can still be taken back."""
        found = [round_ for round_, basket in self.baskets.items() if conversion_id in basket]
        return [round_ for round_ in found if not self.is_past_returns(round_, occurred, reported)]

    def is_past_returns(self, round_: int, occurred: int, reported: int) -> bool:
        if self.in_rounds:
            return len(self.stamps) - round_ > self.commits + self.correctable
        moment = max(reported if self.correctable else occurred, self.stamps[-1])
        return moment - self.stamps[round_ - 1] > WINDOW + self.correctable

    def revoke_basket(self, round_: int, occurred: int, reported: int, conversion_id: str | None) -> Verdict:
        basket = self.baskets.get(round_)
        if basket is None:
            is_late = self.judge(round_, reported, reported, is_revocation=True) is Verdict.LATE
            return Verdict.LATE if is_late else Verdict.UNKNOWN
        if self.is_past_returns(round_, occurred, reported):
            return Verdict.LATE
        if conversion_id is not None and conversion_id not in basket:
            return Verdict.UNKNOWN
        gone = list(basket) if conversion_id is None else [conversion_id]
        if all(basket[each] is None for each in gone):
            return Verdict.DUPLICATE
        basket.update(dict.fromkeys(gone))
        return Verdict.ACCEPTED

    def revoke(self, round_: int, occurred: int, reported: int, conversion_id: str | None = None) -> Verdict:
        if conversion_id is not None or round_ in self.baskets:
            verdict = self.revoke_basket(round_, occurred, reported, conversion_id)
            self.counts["r", verdict] += 1
            return verdict
        verdict = self.judge(round_, occurred, reported, is_revocation=True)
        if verdict is Verdict.ACCEPTED:
            verdict = Verdict.UNKNOWN
        elif verdict is Verdict.DUPLICATE and round_ not in self.revoked:
            self.revoked.add(round_)
            verdict = Verdict.ACCEPTED
        self.counts["r", verdict] += 1
        return verdict

    def correct(self, round_: int, value: float, occurred: int, reported: int) -> Verdict:
        moment, basket = max(occurred, reported), self.baskets.get(round_)
        if basket is not None:
            if self.is_past_returns(round_, occurred, reported):
                return Verdict.LATE
            kept = [amount for amount in basket.values() if amount is not None]
            if not kept or kept == [value]:
                return Verdict.DUPLICATE
            self.baskets[round_] = dict.fromkeys(basket) | {"correction": value}
            return Verdict.ACCEPTED
        verdict = self.judge(round_, moment, moment, is_revocation=True)
        if verdict is not Verdict.DUPLICATE:
            return Verdict.UNKNOWN if verdict is Verdict.ACCEPTED else verdict
        if round_ in self.revoked or self.credits[round_ - 1] == value:
            return Verdict.DUPLICATE
        self.credits[round_ - 1] = value
        return Verdict.ACCEPTED

    @property
    def pending(self) -> int:
        return sum(credit is None for credit in self.credits[self.forgotten :])

    @property
    def B(self) -> Any:
        rounds = [i for i, credit in enumerate(self.credits) if credit is not None and i + 1 not in self.revoked]
        return sum((self.credit(i + 1) * self.actions[i] for i in rounds), np.zeros(2))

    def credit(self, round_: int) -> float:
        """Return what a round that has converted is credited with, in [0, 1]."""
        if round_ not in self.baskets:
            return float(self.credits[round_ - 1] or 0.0)
        return min(self.total(round_) / (SCALE if self.aggregate else 1.0), 1.0)

    @property
    def value(self) -> float:
        """The sum of all credits."""
        rounds = [i for i, credit in enumerate(self.credits) if credit is not None and i + 1 not in self.revoked]
        return sum(self.credit(i + 1) for i in rounds)

    @property
    def V(self) -> Any:
        return sum((np.outer(action, action) for action in self.actions), np.eye(2))
