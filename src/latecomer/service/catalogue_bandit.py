"""The catalogue of a bandit in this process: changes, and decisions among what is in it; and rankings."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy.typing as npt

from latecomer.encoding.values import FeatureRow
from latecomer.service.catalogue_arguments import prepare_pick
from latecomer.service.messages import CatalogueInfo, DecisionAnswer, RankingAnswer
from latecomer.service.store import Store

if TYPE_CHECKING:
    from latecomer.service.blocking_store import BlockingStore


class CatalogueBandit:
    """A bandit of a store; its catalogue is in the same log."""

    name: str
    _store: "Store | BlockingStore"
    _prepare_one: Callable[[Mapping[str, Any], int], Mapping[str, Any] | Exception]

    def put_actions(
        self, actions: Mapping[str, Any] | None = None, *, withdraw: Sequence[str] = (), replace: bool = False
    ) -> CatalogueInfo:
        """Add actions to the catalogue, change those whose ids it has, withdraw others; see docs/how-to/catalogue.md.

        Parameters
        ----------
        actions
            {id: vector of norm at most 1}, or {id: {name: value}} for the bandit's encoder; all of one kind.
        withdraw
            Ids to withdraw; those that are not there are ignored.
        replace
            Whether all others are withdrawn.
        """
        info, ticket = self._store.put_actions(self.name, actions or {}, withdraw, replace=replace)
        self._store.wait(ticket)
        return info

    def catalogue(self) -> CatalogueInfo:
        """Return the version and the size of the catalogue."""
        return self._store.catalogue(self.name)

    def decide_catalogue(
        self,
        *,
        context: FeatureRow | None = None,
        candidates: Sequence[str] | None = None,
        exclude: Sequence[str] | None = None,
        search: Literal["exact", "approximate"] = "exact",
        request_id: str | None = None,
        deferred: bool = False,
        subject: str | None = None,
        k: int = 1,
        examination: Sequence[float] | None = None,
    ) -> DecisionAnswer:
        """Choose one of the actions of the catalogue, or k of them, ranked.

        Parameters
        ----------
        context
            Features of the moment, where the actions have features.
        candidates, exclude
            The ids to choose from, or the ids to leave out; by default all are chosen from.
        search
            "approximate" finds the best of 10,000 vectors and more by an index, for policies that sample θ̃.
        request_id, deferred, subject, k, examination
            As in `decide`.
        """
        options: dict[str, Any] = {"request_id": request_id, "deferred": deferred, "subject": subject}
        options |= {"k": k, "examination": examination}
        answer, ticket = self._store.decide(self.name, **prepare_pick(context, candidates, exclude, search, **options))
        self._store.wait(ticket)
        return answer

    def decide_ranking(
        self, actions: npt.ArrayLike | Mapping[str, FeatureRow] | None, k: int, **options: Any
    ) -> RankingAnswer:
        """Choose k different actions, ranked, each a decision of its own; see docs/how-to/top-k.md.

        Actions are rows or have features, or are those of the catalogue where they are None; `examination` has the
        probability that each position is looked at, and the other options are those of such a decision.
        """
        given = {**options, "k": k} if actions is None else {"actions": actions, **options, "k": k}
        prepared = self._prepare_one(given, 0)
        if isinstance(prepared, Exception):
            raise prepared
        answer, ticket = self._store.decide(self.name, **prepared)
        self._store.wait(ticket)
        return answer if isinstance(answer, RankingAnswer) else RankingAnswer(**msgspec.structs.asdict(answer))
