"""Rules of a state machine for a bandit's catalogue: changes, decisions among it, and their explanations."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from guardrail_rules import OFFERS, GuardrailRules
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from latecomer.errors import InputError
from latecomer.service.catalogue_arguments import prepare_pick
from latecomer.service.messages import RankingAnswer


class CatalogueRules(GuardrailRules):
    """Changes of the catalogue of the bandit "shop", and decisions among it."""

    ids: list[str]
    deferred: list[str]
    offered: dict[int, tuple[int, list[str]]]
    """By round, the version and the ids that a decision was made among."""
    check_pruned: Callable[[int], None]

    @rule(
        put=st.dictionaries(st.sampled_from("abc"), st.integers(0, 2), max_size=3),
        withdraw=st.sets(st.sampled_from("abc"), max_size=2),
        replace=st.booleans(),
    )
    def put_actions(self, put: dict[str, int], withdraw: set[str], replace: bool) -> None:
        """A change of the catalogue; what is not as the rules say changes nothing."""
        actions = {id_: OFFERS[row] for id_, row in put.items()}
        if withdraw & put.keys() or (replace and not put):
            with pytest.raises(InputError):
                self.store.put_actions("shop", actions, sorted(withdraw), replace=replace)
            return
        info, ticket = self.store.put_actions("shop", actions, sorted(withdraw), replace=replace)
        self.store.wait(ticket)
        expected = self.model.put(put, withdraw, replace)
        assert (info.version, info.size) == (len(self.model.versions) - 1, len(self.model.versions[-1]))
        assert (info.added, info.changed, info.withdrawn) == expected

    @rule(data=st.data(), deferred=st.booleans())
    def decide_catalogue(self, data: Any, deferred: bool) -> None:
        known = sorted(self.model.versions[-1])
        chosen = data.draw(st.none() | st.lists(st.sampled_from("abc"), min_size=1, unique=True))
        excluded = data.draw(st.sets(st.sampled_from("abc"))) if chosen is None else set()
        left = [id_ for id_ in known if id_ not in excluded] if chosen is None else chosen
        arguments = prepare_pick(None, chosen, sorted(excluded), "exact", deferred=deferred)
        if not left or not set(left) <= set(known):
            with pytest.raises(InputError):
                self.store.decide("shop", **arguments)
            return
        answer, ticket = self.store.decide("shop", **arguments)
        self.store.wait(ticket)
        assert answer.action_id in left
        self.check_limits(answer.action_id, answer.propensity, left)
        row = OFFERS[self.model.versions[-1][str(answer.action_id)]].astype(np.float32).astype(np.float64)
        if deferred:
            assert answer.round == -(self.model.defer(row, self.now, answer.is_control) + 1)
            self.deferred.append(answer.decision_id)
            return
        assert answer.round == self.model.decide(row, self.now, answer.is_control)
        self.ids.append(answer.decision_id)
        self.offered[answer.round] = len(self.model.versions) - 1, left

    @rule(k=st.integers(2, 3), excluded=st.sets(st.sampled_from("abc"), max_size=1))
    def rank_catalogue(self, k: int, excluded: set[str]) -> None:
        """A ranking among the catalogue is k decisions, the second of which is seen half as often."""
        left = sorted(self.model.versions[-1].keys() - excluded)
        seen = [1.0, 0.5, 1.0][:k]
        arguments = prepare_pick(None, None, sorted(excluded), "exact", k=k, examination=seen)
        if len(left) < k or self.is_limited:
            with pytest.raises(InputError):
                self.store.decide("shop", **arguments)
            return
        answer, ticket = self.store.decide("shop", **arguments)
        self.store.wait(ticket)
        assert isinstance(answer, RankingAnswer)
        assert len({entry.action_id for entry in answer.ranking} & set(left)) == k
        for entry, share in zip(answer.ranking, seen, strict=True):
            row = OFFERS[self.model.versions[-1][str(entry.action_id)]].astype(np.float32).astype(np.float64)
            assert entry.round == self.model.decide(share * row, self.now, answer.is_control)
            self.ids.append(entry.decision_id)

    @precondition(lambda self: self.offered)
    @rule(data=st.data())
    def explain(self, data: Any) -> None:
        """A decision among the catalogue is explained by the actions of its time."""
        round_ = data.draw(st.sampled_from(sorted(self.offered)))
        version, ids = self.offered[round_]
        bandit = self.store.registry.bandits["shop"]
        if not bandit.find_round(self.ids[round_ - 1]):
            self.check_pruned(round_)
            return
        try:
            found = self.store.explain("shop", self.ids[round_ - 1])
        except InputError:
            self.check_pruned(round_)
            return
        assert sorted(str(action.action_id) for action in found.actions) == sorted(ids)
        rows = {id_: OFFERS[row].astype(np.float32) for id_, row in self.model.versions[version].items()}
        estimates = {id_: float(rows[id_] @ bandit.policy.theta_hat) for id_ in ids}
        assert {str(a.action_id): a.estimate for a in found.actions} == pytest.approx(estimates, abs=1e-6)
