"""The arms of a contest's rounds: who made each, and what those are worth whose windows have closed."""

from latecomer.policies.base.policy import LinearPolicy

_LEAST = 1024
"""Closed rounds with a credit before those beyond correction are forgotten."""


class ContestArms:
    """Arms and values of the rounds that a champion has recorded, from the next one on.

    Attributes
    ----------
    closed, sums
        By arm, the rounds whose window and grace have passed, and the sum of their values, as of now.
    """

    def __init__(self, champion: LinearPolicy) -> None:
        self._champion = champion
        self._first = champion.rounds + 1
        self._arms: list[int] = []
        self._values: list[float] = []
        self.closed, self.sums = [0, 0], [0.0, 0.0]
        self._credited: dict[int, tuple[int, float]] = {}
        """By closed round that may still be corrected, its arm and its value."""
        self._limit = _LEAST
        self._deferred: dict[int, int] = {}
        """By number, the arm of a deferred decision."""

    def note_deferred(self, number: int, arm: int) -> None:
        """Note who made a deferred decision, and forget those that have expired."""
        self._deferred[number] = arm
        table = self._champion.deferred
        if len(self._deferred) > 2 * table.waiting + 64:
            self._deferred = {one: own for one, own in self._deferred.items() if table.find(one) is not None}

    def note_activation(self, number: int) -> None:
        """Note that a deferred decision has become a round."""
        self.note_rounds(self._deferred.pop(number))

    def note_rounds(self, arm: int) -> None:
        """Note who made the rounds that are new, and close those whose window and grace have passed."""
        count = self._champion.rounds + 1 - self._first - len(self._arms)
        self._arms += [arm] * count
        self._values += [0.0] * count
        gone = max(0, int(self._champion.state.number("kept")) - self._first)
        for place in range(gone):
            self._close(self._first + place, self._arms[place], self._values[place])
        del self._arms[:gone], self._values[:gone]
        self._first += gone
        if len(self._credited) > self._limit:
            kept = {one: own for one, own in self._credited.items() if self._champion.is_correctable(one)}
            self._credited, self._limit = kept, max(_LEAST, 2 * len(kept))

    def _close(self, round_: int, arm: int, value: float) -> None:
        self.closed[arm] += 1
        self.sums[arm] += value
        is_credited = value > 0.0 or self._champion.baskets.find(round_) is not None
        if is_credited and self._champion.is_correctable(round_):
            self._credited[round_] = arm, value

    def refresh(self, round_: int) -> None:
        """Take what a round is worth from the champion; one that was made before the contest has no arm."""
        value = max(self._champion.find_credit(round_), 0.0)
        if round_ >= self._first:
            self._values[round_ - self._first] = value
        elif round_ in self._credited:
            arm, before = self._credited[round_]
            self.sums[arm] += value - before
            self._credited[round_] = arm, value
