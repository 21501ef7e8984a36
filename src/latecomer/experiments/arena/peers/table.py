"""The peers by name, each made from the dimension and the window, in both ways of feeding."""

from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from typing import Literal

from latecomer.experiments.arena.peers.feeding import Fed, Learner
from latecomer.experiments.arena.peers.libraries import (
    BayesianBandits,
    ContextualBandits,
    MABWiser,
    River,
    VowpalWabbit,
)

_REGCB = "--regcb --mellowness 0.01 --cb_min_cost -1 --cb_max_cost 0"
"""Costs are −1 and 0, where its bounds are cut to [0, 1] unless told otherwise; with its own mellowness, 0.1, no arm is
ruled out within 6,000 rounds."""

_LEARNERS: Mapping[str, tuple[str, Callable[[int], Learner]]] = {
    "VW squarecb": ("vowpalwabbit", partial(VowpalWabbit, exploration="--squarecb")),
    "VW regcb": ("vowpalwabbit", partial(VowpalWabbit, exploration=_REGCB)),
    "VW bag": ("vowpalwabbit", partial(VowpalWabbit, exploration="--bag 5")),
    "VW epsilon": ("vowpalwabbit", partial(VowpalWabbit, exploration="--epsilon 0.1")),
    "bayesianbandits": ("bayesianbandits", BayesianBandits),
    "river LinUCB": ("river", River),
    "MABWiser LinUCB": ("mabwiser", partial(MABWiser, policy="LinUCB")),
    "MABWiser LinTS": ("mabwiser", partial(MABWiser, policy="LinTS")),
    "contextualbandits LinUCB": ("contextualbandits", ContextualBandits),
}
"""By name: the package, and a function of the seed."""

_WITH_FEATURES = ("vowpalwabbit", "bayesianbandits")
"""Packages whose models are over the features of actions; the others know arms."""


def _make(name: str, feeding: Literal["waiting", "at once"], dim: int, window: int) -> Fed:
    return Fed(_LEARNERS[name][1], window, feeding, name)


PEERS: Mapping[str, Callable[[int, int], Fed]] = {
    f"{name}, {feeding}": partial(_make, name, feeding) for name in _LEARNERS for feeding in ("waiting", "at once")
}


def find_peers(*, fixed_arms: bool) -> list[str]:
    """Name the peers that are installed and can play: those with a model for each arm need the same arms throughout."""
    return [
        name
        for name in PEERS
        if find_spec(package := _LEARNERS[name.rpartition(", ")[0]][0]) and (fixed_arms or package in _WITH_FEATURES)
    ]
