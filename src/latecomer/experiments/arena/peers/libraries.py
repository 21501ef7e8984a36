"""The libraries themselves, each with the settings that its documentation shows.

Nothing is tuned but the mellowness of Vowpal Wabbit's regcb.

Vowpal Wabbit and bayesianbandits have one model over the features of the actions. The others have a model for each arm,
with a constant context, and so can play where the arms are the same in every round.
"""

from importlib import import_module
from typing import Any

import numpy as np

from latecomer.core.state import Array
from latecomer.errors import MissingPackageError


def _import(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        package = name.partition(".")[0]
        raise MissingPackageError(
            f"the arena's peers need the package {package}: pip install 'latecomer[peers]'", name=package
        ) from error


class VowpalWabbit:
    """`--cb_explore_adf` with one of its explorations; the action is drawn from the probabilities that it gives."""

    def __init__(self, seed: int, exploration: str) -> None:
        options = f"--cb_explore_adf {exploration} --quiet --random_seed {seed % 2**31}"
        self._workspace = _import("vowpalwabbit").Workspace(options)
        self._rng = np.random.default_rng(seed)

    def choose(self, actions: Array) -> tuple[int, Any]:
        """Draw an action."""
        lines = [_write_line(action) for action in actions.tolist()]
        chances = np.array(self._workspace.predict(lines))
        index = int(min(np.searchsorted(np.cumsum(chances), self._rng.random() * chances.sum()), len(lines) - 1))
        return index, (lines, index, float(chances[index]))

    def learn(self, choice: Any, reward: float) -> None:
        """Learn a cost of −reward for the chosen line, by its probability."""
        lines, index, chance = choice
        labelled = list(lines)
        labelled[index] = f"0:{-reward}:{chance} {labelled[index]}"
        self._workspace.learn(labelled)


def _write_line(action: list[float]) -> str:
    return "|a " + " ".join(f"{i}:{value:.6g}" for i, value in enumerate(action))


class BayesianBandits:
    """`NormalRegressor` over the features of the actions; a sample of the posterior chooses."""

    def __init__(self, seed: int) -> None:
        self._model = _import("bayesianbandits").NormalRegressor(alpha=1.0, beta=1.0, random_state=seed % 2**31)

    def choose(self, actions: Array) -> tuple[int, Any]:
        """Play the best action of one sample."""
        index = int(np.argmax(self._model.sample(actions)[0]))
        return index, actions[index : index + 1]

    def learn(self, choice: Any, reward: float) -> None:
        """Update the posterior."""
        self._model.partial_fit(choice, np.array([reward]))


class River:
    """`bandit.LinUCBDisjoint`, a model for each arm."""

    def __init__(self, seed: int) -> None:
        self._policy = _import("river.bandit").LinUCBDisjoint(alpha=1.0, beta=1.0, seed=seed % 2**31)

    def choose(self, actions: Array) -> tuple[int, Any]:
        """Pull an arm."""
        arm = self._policy.pull(list(range(len(actions))), context={"constant": 1.0})
        return int(arm), arm

    def learn(self, choice: Any, reward: float) -> None:
        """Update the arm's model."""
        self._policy.update(choice, {"constant": 1.0}, reward)


class MABWiser:
    """`LinTS` or `LinUCB`, a model for each arm."""

    def __init__(self, seed: int, policy: str) -> None:
        self._seed, self._policy_name, self._is_fitted = seed % 2**31, policy, False
        self._policy: Any = None
        self._rng = np.random.default_rng(seed)

    def choose(self, actions: Array) -> tuple[int, Any]:
        """Predict an arm; before there is any reward, draw one."""
        if self._policy is None:
            mab = _import("mabwiser.mab")
            rule = getattr(mab.LearningPolicy, self._policy_name)(alpha=1.0)
            self._policy = mab.MAB(list(range(len(actions))), rule, seed=self._seed)
        arm = int(self._policy.predict([[1.0]])) if self._is_fitted else int(self._rng.integers(len(actions)))
        return arm, arm

    def learn(self, choice: Any, reward: float) -> None:
        """Update the arm's model."""
        (self._policy.partial_fit if self._is_fitted else self._policy.fit)([choice], [reward], [[1.0]])
        self._is_fitted = True


class ContextualBandits:
    """`online.LinUCB`, a model for each arm."""

    def __init__(self, seed: int) -> None:
        self._seed = seed % 2**31
        self._policy: Any = None

    def choose(self, actions: Array) -> tuple[int, Any]:
        """Predict an arm."""
        if self._policy is None:
            self._policy = _import("contextualbandits.online").LinUCB(
                nchoices=len(actions), alpha=1.0, random_state=self._seed
            )
        arm = int(self._policy.predict(np.ones((1, 1)))[0])
        return arm, arm

    def learn(self, choice: Any, reward: float) -> None:
        """Update the arm's model."""
        self._policy.partial_fit(np.ones((1, 1)), np.array([choice]), np.array([reward]))
