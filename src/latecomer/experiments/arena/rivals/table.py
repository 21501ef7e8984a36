"""The rivals by name, each made from the dimension and the window."""

from collections.abc import Callable, Mapping
from functools import partial

from latecomer.experiments.arena.rivals.bootstrapped_ts import BootstrappedTS
from latecomer.experiments.arena.rivals.discounted import DiscountedLinTS, DiscountedLinUCB
from latecomer.experiments.arena.rivals.glm_ucb import DelayedGLMUCB
from latecomer.experiments.arena.rivals.weighted_logistic import FakeNegativeWeightedTS, FeedbackShiftWeightedTS
from latecomer.simulation.own_rule import FreshRule

RIVALS: Mapping[str, Callable[[int, int], FreshRule]] = {
    "bootstrapped TS with EM": BootstrappedTS,
    "GLM-UCB, Zhou et al.": DelayedGLMUCB,
    "GLM-UCB, Howson et al.": partial(DelayedGLMUCB, counts_pending=False),
    "GLM-UCB, Howson et al., c = 0.1": partial(DelayedGLMUCB, counts_pending=False, exploration=0.1),
    "FNW, sampled": FakeNegativeWeightedTS,
    "FSIW, sampled": FeedbackShiftWeightedTS,
    "D-LinUCB, γ = 0.999": DiscountedLinUCB,
    "D-LinTS, γ = 0.999": DiscountedLinTS,
}
