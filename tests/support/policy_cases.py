"""A case for every policy of the registry, and action sets."""

from typing import Any

import numpy as np
import numpy.typing as npt

from latecomer.policies.registry import policy_class

Array = npt.NDArray[np.float64]

EVERY_POLICY: dict[str, dict[str, Any]] = {
    "OTFLinUCB-exact": {"policy": "OTFLinUCB", "width": "exact"},
    "OTFLinUCB-buffered": {"policy": "OTFLinUCB", "width": "buffered"},
    "OTFLinTS-heuristic": {"policy": "OTFLinTS", "beta": "heuristic", "seed": 7},
    "OTFLinTS-conservative": {"policy": "OTFLinTS", "beta": "conservative", "seed": 7},
    "OTFLinTS-confidence": {"policy": "OTFLinTS", "beta": "confidence", "seed": 7},
    "OTFLinUCB-tight": {"policy": "OTFLinUCB", "width": "tight"},
    "OTFLinUCB-variance": {"policy": "OTFLinUCB", "width": "variance"},
    "WaitingLinUCB": {"policy": "WaitingLinUCB"},
    "WaitingLinTS": {"policy": "WaitingLinTS", "seed": 7},
    "MaturedLinUCB": {"policy": "MaturedLinUCB"},
    "MaturedLinTS": {"policy": "MaturedLinTS", "seed": 7},
    "ImputedLinTS": {"policy": "ImputedLinTS", "seed": 7},
    "LogisticLinTS": {"policy": "LogisticLinTS", "seed": 7},
    "LinUCB": {"policy": "LinUCB"},
    "LinTS": {"policy": "LinTS", "seed": 7},
    "Greedy": {"policy": "Greedy"},
    "Uniform": {"policy": "Uniform", "seed": 7},
}


def make(name: str, dim: int, window: Any, **more: Any) -> Any:
    """Make the policy of a case in `EVERY_POLICY`."""
    arguments = {**EVERY_POLICY[name], **more}
    made: Any = policy_class(arguments.pop("policy"))
    return made(dim=dim, window=window, **arguments)


def unit_actions(rng: np.random.Generator, count: int, dim: int) -> Array:
    """Draw rows in the positive orthant of the unit sphere, one of them twice."""
    actions = np.abs(rng.standard_normal((count, dim))) + 1e-3
    actions /= np.linalg.norm(actions, axis=1, keepdims=True)
    if count > 2:
        actions[-1] = actions[1]
    return actions
