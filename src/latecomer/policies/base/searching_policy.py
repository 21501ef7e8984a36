"""Decisions by a search: among the rows of a catalogue, by a caller's oracle, or several at once, ranked."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from latecomer.core.state import UNSTAMPED, Array
from latecomer.errors import InputError
from latecomer.policies.base.converting_policy import ConvertingPolicy
from latecomer.policies.base.decision import Decision
from latecomer.policies.base.deferral import DeferredDecision
from latecomer.policies.base.ranking import Ranking, RankingDraw
from latecomer.policies.base.search import Oracle, OracleSearch, Search
from latecomer.policies.base.subjects import digest_subject
from latecomer.policies.base.theta_samples import draw_thetas
from latecomer.timestamps import Moment


class SearchingPolicy(ConvertingPolicy):
    """A policy that can choose by its samples of θ̃ alone, where it is a sampler."""

    decide: Callable[..., Decision]
    _parameters: dict[str, Any]

    @property
    def samples_theta(self) -> bool:
        """Tell whether it chooses by a sampled θ̃, for which an exact search finds the best; a guard judges all."""
        return self.algorithm.posterior is not None and self.algorithm.guards is None

    @property
    def plays_largest_product(self) -> bool:
        """Tell whether it chooses the largest ⟨a, θ̃⟩, which an oracle or an index can find: it has no optimism."""
        return self.samples_theta and not self._parameters.get("optimism")

    def decide_by_search(
        self,
        search: Search,
        *,
        at: Moment | None = None,
        control: int | None = None,
        deferred: bool = False,
        subject: str | None = None,
    ) -> Decision:
        """Choose the best of a search's actions for a sampled θ̃, and record the choice; arguments as in `decide`."""
        self._check_search(search)
        digest = b"" if subject is None else digest_subject(subject)
        unstamped = at is None and self._in_rounds
        stamp = UNSTAMPED if unstamped else self._clock.decision_stamp(at, now=self._now, rounds=self.rounds)
        draws = self.rng.draws(1, self._dim)
        chosen, score = self._choose(search, stamp, control, draws[0])
        action, index = search.take(chosen.indices[0]), chosen.indices[0]
        summary = search.summary
        if deferred:
            now, number = self._moment(stamp), self.deferred.next_number
            self.drop_expired(now)
            self.deferred.add(DeferredDecision(number, now, index, score, action, summary, subject=digest))
            return Decision(-number, index, action.copy(), score, chosen.first, chosen.is_control)
        self.state.record_many(action[None], summary[None], np.array([stamp]), draws)
        if digest:
            self.subjects.add(digest, self.rounds, int(self.state.number("kept")))
        return Decision(self.rounds, index, action, score, chosen.first, chosen.is_control)

    def _check_search(self, search: Search) -> None:
        """Raise `InputError` where the policy cannot choose by this search."""
        if not (self.samples_theta if search.is_exact else self.plays_largest_product):
            raise InputError(
                "a search needs a policy that plays the largest ⟨a, θ̃⟩ of a sampled θ̃, without a guard or optimism; "
                f"{self.algorithm.name} does not: give it the actions, or take one such as MaturedLinTS",
                field="policy",
            )
        self._check_no_ceiling("a search", field="search")

    def _check_no_ceiling(self, what: str, *, field: str) -> None:
        """Raise `InputError` where the policy has a ceiling or limits, which need the probabilities of every action."""
        if self._randomisation.bounds_actions:
            raise InputError(
                f"{what} needs a policy without a ceiling or limits, which take the probabilities of all at once: make "
                "one without, or decide for one action among those given",
                field=field,
            )

    def _choose(self, search: Search, stamp: int, control: int | None, draws: Array) -> tuple[Ranking, float]:
        """Return the choice of the samples, and its score: for a policy with propensities, that of their mean."""
        samples = draw_thetas(self.state, search.summary, stamp=self._moment(stamp), draws=draws)
        found = search.find_best(samples.thetas, 1, samples.bonus)
        if not self._is_randomised:
            index = int(found[0, 0])
            score = samples.score(search.take(index), samples.thetas[0], float(samples.intercepts[0]))
            return Ranking.make_unknown([index], search.count), score
        count = search.count or 1
        chosen = RankingDraw.make(self._randomisation, control, search).draw(search, found, samples.number, count)
        return chosen, samples.score(search.take(chosen.indices[0]), samples.mean)

    def _decide_by_oracle(self, oracle: Oracle, actions: npt.ArrayLike | None, options: dict[str, Any]) -> Decision:
        """Choose by a caller's oracle, which has no list of its actions."""
        if actions is not None:
            raise InputError("actions must be left out where there is an oracle, which knows them", field="actions")
        if self._randomisation.floor or self._randomisation.control_share:
            raise InputError(
                "an oracle needs a policy without floor and control, which draw from a list of actions: make one "
                "without, or give the actions",
                field="oracle",
            )
        before = self.rng.state()
        try:
            return self.decide_by_search(OracleSearch(oracle, self._dim), **options)
        except BaseException:  # whatever the oracle raises, nothing has happened
            self.rng.restore(before)
            raise
