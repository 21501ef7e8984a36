"""Other libraries on the nearest job that each has: one decision and one update at K = 10, d = 5.

None of them takes a late conversion by its decision, or widens for what is pending, so the jobs are near, not equal.
Each gets its input in its own form, prepared beforehand. A peer that is not there, or fails, says so in its row.
"""

import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from itertools import cycle

import numpy as np
from arrivals import Array, binary_sets
from rows import Row
from timing import Block, interleaved, micro

import latecomer as lc

ACTIONS, DIM = 10, 5
BLOCK, OUR_BLOCK, REPEATS = 10, 200, 50
Peer = Callable[[Array], Block]
"""Given action sets, a function that makes one decision and one update with the next of them."""


def rows() -> Iterator[Row]:
    sets = binary_sets(np.random.default_rng(0), 200, actions=ACTIONS, dim=DIM)
    for name, (job, make) in PEERS.items():
        work = f"{name}: {job}"
        try:
            yield _row(f"{work} ({version(name)})", make(sets), latecomer(sets))
        except PackageNotFoundError:
            yield Row(work=work, measured="not installed", detail=WHY_NOT.get(name, "the extra `peers` has it"))
        except Exception as error:  # noqa: BLE001 - whatever a peer does, the bench goes on
            yield Row(work=work, measured="fails", detail=f"{type(error).__name__}: {error}")


def _row(work: str, theirs: Block, ours: Block) -> Row:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(2 * BLOCK):
            theirs()
        times = interleaved(
            {"theirs": (_block(theirs, BLOCK), BLOCK), "ours": (_block(ours, OUR_BLOCK), OUR_BLOCK)}, repeats=REPEATS
        )
    return Row(
        work=work,
        measured=f"{times.ratio('theirs', 'ours'):.0f} times slower",
        detail=f"a decision and an update {micro(times['theirs'])}; decide and convert here {micro(times['ours'])}",
    )


def _block(call: Block, count: int) -> Block:
    return lambda: [call() for _ in range(count)]


def latecomer(sets: Array) -> Block:
    policy, queue = lc.OTFLinUCB(DIM, 100), cycle(list(sets))
    return lambda: policy.convert(policy.decide(next(queue)).round)


def bayesianbandits(sets: Array) -> Block:
    """One model for all arms, over the features of the actions, as here; a posterior sample chooses."""
    learner = import_module("bayesianbandits").NormalRegressor(alpha=1.0, beta=1.0, random_state=1)
    queue, reward = cycle(list(sets)), np.ones(1)

    def round() -> None:
        actions = next(queue)
        index = int(np.argmax(learner.sample(actions)[0]))
        learner.partial_fit(actions[index : index + 1], reward)

    round()
    return round


def contextualbandits(sets: Array) -> Block:
    """A model an arm; the first action stands for the context."""
    online = import_module("contextualbandits.online")
    policy = online.LinUCB(nchoices=ACTIONS, fit_intercept=False, use_float=False, random_state=1)
    contexts, reward = cycle([actions[:1] for actions in sets]), np.ones(1)
    policy.partial_fit(sets[0][:1], np.zeros(1, int), reward)

    def round() -> None:
        context = next(contexts)
        policy.partial_fit(context, policy.predict(context), reward)

    return round


def mabwiser(sets: Array) -> Block:
    """A model an arm; the first action stands for the context."""
    mab = import_module("mabwiser.mab")
    policy = mab.MAB(list(range(ACTIONS)), mab.LearningPolicy.LinUCB(alpha=1.0), seed=1)
    contexts = cycle([actions[:1] for actions in sets])
    policy.fit([0], [1], sets[0][:1])

    def round() -> None:
        context = next(contexts)
        policy.partial_fit([policy.predict(context)], [1], context)

    return round


def obp(sets: Array) -> Block:
    """A model an arm; the first action stands for the context."""
    policy = import_module("obp.policy").LinUCB(dim=DIM, n_actions=ACTIONS, epsilon=1.0)
    contexts = cycle([actions[:1] for actions in sets])

    def round() -> None:
        context = next(contexts)
        policy.update_params(action=int(policy.select_action(context)[0]), reward=1.0, context=context)

    return round


def river(sets: Array) -> Block:
    """A model an arm; the first action stands for the context."""
    policy = import_module("river.bandit").LinUCBDisjoint(alpha=1.0, beta=1.0, seed=1)
    arms, contexts = list(range(ACTIONS)), cycle([dict(enumerate(actions[0].tolist())) for actions in sets])

    def round() -> None:
        context = next(contexts)
        policy.update(policy.pull(arms, context=context), context, 1.0)

    return round


def vowpalwabbit(sets: Array) -> Block:
    """Features of the actions, as here; SquareCB in place of a confidence bound."""
    workspace = import_module("vowpalwabbit").Workspace("--cb_explore_adf --squarecb --quiet")
    examples = cycle([[_vw_line(action) for action in actions.tolist()] for actions in sets])

    def round() -> None:
        lines = list(next(examples))
        chances = workspace.predict(lines)
        index = int(np.argmax(chances))
        lines[index] = f"0:-1:{chances[index]} {lines[index]}"
        workspace.learn(lines)

    return round


def _vw_line(action: list[float]) -> str:
    return "|a " + " ".join(f"{i}:{value}" for i, value in enumerate(action))


PEERS: dict[str, tuple[str, Peer]] = {
    "bayesianbandits": ("one normal regression, TS", bayesianbandits),
    "contextualbandits": ("LinUCB, a model an arm", contextualbandits),
    "mabwiser": ("LinUCB, a model an arm", mabwiser),
    "obp": ("LinUCB, a model an arm", obp),
    "river": ("LinUCBDisjoint", river),
    "vowpalwabbit": ("cb_explore_adf, SquareCB", vowpalwabbit),
}
WHY_NOT = {
    "obp": "cannot share an environment with Latecomer: obp 0.5.7, the latest, asks for Python < 3.11, numpy 1.23.5, "
    "scipy 1.9.3 and torch 1.12"
}
