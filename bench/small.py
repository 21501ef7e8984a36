"""A round at d = 5, K = 10, m = 100: `decide`, and `convert` as often as the world converts."""

from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from arrivals import Round, World, binary_sets, play
from baselines import NumpyLinUCB, TunedLinUCB
from rows import INFORMATION, Row, verdict
from timing import Block, interleaved, micro

import latecomer as lc

DIM, WINDOW = 5, 100
WARM_UP, BLOCK, REPEATS = 1_000, 60, 400
FACTOR = 8.0


def rows() -> Iterator[Row]:
    yield from rounds()
    yield other_forms()


def rounds() -> Iterator[Row]:
    """Every side plays the same world."""
    promised = {
        "OTFLinUCB exact": lc.OTFLinUCB(DIM, WINDOW, width="exact"),
        "OTFLinUCB buffered": lc.OTFLinUCB(DIM, WINDOW, width="buffered"),
    }
    ours: dict[str, Any] = {**promised, "OTFLinTS": lc.OTFLinTS(DIM, WINDOW, seed=0)}
    by_hand = {"NumPy": NumpyLinUCB(DIM, WINDOW), "tuned NumPy": TunedLinUCB(DIM, WINDOW)}
    world = World(WARM_UP + BLOCK * REPEATS, window=WINDOW)
    scripts = {side: world.script() for side in (*ours, *by_hand)}
    times = interleaved(
        {side: (_block(policy, scripts[side]), BLOCK) for side, policy in {**ours, **by_hand}.items()}, repeats=REPEATS
    )
    for side in ours:
        ratio = times.ratio("NumPy", side)
        share = sum(len(inbox) for *_, inbox in scripts[side]) / len(scripts[side])
        yield Row(
            work=f"{side}: decide + {share:.2f} convert, d=5",
            measured=f"{ratio:.2f} times faster",
            must_reach=f">= {FACTOR:g} times faster than NumPy" if side in promised else "-",
            verdict=verdict(ratio >= FACTOR) if side in promised else INFORMATION,
            detail=f"a round {micro(times[side])}; LinUCB by hand in NumPy {micro(times['NumPy'])}; "
            f"the same tuned call by call {micro(times['tuned NumPy'])} "
            f"({times.ratio('tuned NumPy', side):.2f} times)",
        )


def other_forms() -> Row:
    """Time of `decide` for inputs other than a plain array of doubles."""
    plain = binary_sets(np.random.default_rng(0), 1)[0]
    forms: dict[str, list[Any]] = {
        "plain": [plain, plain],
        "K of 10 and 9 in turn": [plain, plain[:9]],
        "a list of lists": [plain.tolist()] * 2,
        "single precision": [plain.astype(np.float32)] * 2,
    }
    sides = {form: (partial(_decide_all, lc.OTFLinUCB(DIM, WINDOW), sets * 5), 10) for form, sets in forms.items()}
    times = interleaved(sides, repeats=100)
    worst = max(times[form] for form in forms) / times["plain"]
    return Row(
        work="OTFLinUCB exact: decide on other forms of input",
        measured=f"up to x{worst:.0f} of a plain one",
        detail="; ".join(f"{form}: {micro(times[form])}" for form in forms),
    )


def _decide_all(policy: Any, sets: list[Any]) -> None:
    for actions in sets:
        policy.decide(actions)


def _block(policy: Any, script: list[Round]) -> Block:
    """The next rounds of a script, after a warm-up that compiles and fills the window."""
    rounds = iter(script)
    play(policy, islice(rounds, WARM_UP))
    return partial(_play_next, policy, rounds)


def _play_next(policy: Any, rounds: Iterator[Round]) -> None:
    play(policy, islice(rounds, BLOCK))
