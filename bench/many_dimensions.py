"""d = 50 to 1024: a decision of `recommended` against one of OTFLinTS, conversions included, the window full.

Both costs are O(d²): what `recommended` has more is G, whose weights follow the delay curve, and its factor.
"""

from collections.abc import Iterator

import numpy as np
from arrivals import dense_sets
from rows import Row, verdict
from threadpoolctl import threadpool_limits
from timing import Block, Times, interleaved, micro

import latecomer as lc

DIMENSIONS = (50, 200, 512, 1024)
ACTIONS, WINDOW, SETS = 10, 500, 16
BEFORE, BLOCK = WINDOW + 100, 4
REPEATS = {50: 400, 200: 200, 512: 100, 1024: 60}
FACTOR = 2.5
MEAN_DELAY = 100


class Player:
    """One policy in a world of its own: geometric delays, a conversion rate of at most 30 %."""

    def __init__(self, policy: lc.OTFLinTS | lc.MaturedLinTS, dim: int) -> None:
        self._policy = policy
        self._rng = np.random.default_rng(dim)
        self._sets = np.abs(dense_sets(self._rng, SETS, actions=ACTIONS, dim=dim))
        self._chances = 0.3 * self._sets @ np.full(dim, 1 / np.sqrt(dim))
        self._due: dict[int, list[int]] = {}

    def play(self, rounds: int) -> None:
        for _ in range(rounds):
            which = int(self._rng.integers(SETS))
            decision = self._policy.decide(self._sets[which])
            if self._rng.random() < self._chances[which, decision.index]:
                arrival = decision.round + int(self._rng.geometric(1 / MEAN_DELAY)) - 1
                self._due.setdefault(arrival, []).append(decision.round)
            for round in self._due.pop(decision.round, []):
                self._policy.convert(round)


def rows() -> Iterator[Row]:
    with threadpool_limits(1):
        for dim in DIMENSIONS:
            yield _row(dim)


def _row(dim: int) -> Row:
    players = {
        "recommended": Player(lc.recommended(dim, WINDOW, seed=0), dim),
        "OTFLinTS": Player(lc.OTFLinTS(dim, WINDOW, seed=0), dim),
    }
    for player in players.values():
        player.play(BEFORE)
    times = interleaved({side: (_block(player), BLOCK) for side, player in players.items()}, repeats=REPEATS[dim])
    ratio = times.ratio("recommended", "OTFLinTS")
    return Row(
        work=f"recommended at d={dim}, K={ACTIONS}",
        measured=f"{ratio:.2f} times OTFLinTS",
        must_reach=f"<= {FACTOR} times",
        verdict=verdict(ratio <= FACTOR),
        detail=f"m={WINDOW}: {micro(times['recommended'])} and {micro(times['OTFLinTS'])} a decision; "
        f"on average, new factors included, {_mean_ratio(times):.2f} times",
    )


def _block(player: Player) -> Block:
    return lambda: player.play(BLOCK)


def _mean_ratio(times: Times) -> float:
    """Return the ratio of mean times: what is done in some rounds only counts here."""
    return sum(times.blocks["recommended"]) / sum(times.blocks["OTFLinTS"])
