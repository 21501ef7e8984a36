"""The methods of both clients for catalogues and rankings."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict, Unpack

from latecomer.client import catalogue_calls
from latecomer.client.decision_calls import decide_ranking
from latecomer.encoding.values import FeatureRow
from latecomer.service.messages import CatalogueInfo, DecisionAnswer, RankingAnswer


class CatalogueOptions(TypedDict, total=False):
    """The arguments of a decision among a catalogue."""

    context: FeatureRow | None
    candidates: Sequence[str] | None
    exclude: Sequence[str] | None
    search: Literal["exact", "approximate"]
    request_id: str | None
    deferred: bool
    subject: str | None
    k: int
    examination: Sequence[float] | None


class CatalogueClient:
    """The catalogues of a server's bandits."""

    _send: Any

    def put_actions(
        self,
        name: str,
        actions: Mapping[str, Any] | None = None,
        *,
        withdraw: Sequence[str] = (),
        replace: bool = False,
    ) -> CatalogueInfo:
        """Add actions to a bandit's catalogue, change those whose ids it has, and withdraw others.

        Actions are vectors of norm at most 1, or features by name: {id: …}. Many are sent in several requests.
        """
        calls = catalogue_calls.put_actions(name, actions or {}, withdraw, replace=replace)
        return catalogue_calls.join_infos([self._send(call) for call in calls])

    def catalogue(self, name: str) -> CatalogueInfo:
        """Return the version and the size of a bandit's catalogue."""
        found: CatalogueInfo = self._send(catalogue_calls.catalogue(name))
        return found

    def decide_catalogue(self, name: str, **options: Unpack[CatalogueOptions]) -> DecisionAnswer:
        """Choose one of the actions of a bandit's catalogue.

        `context`: features of the moment, where the actions have features. `candidates` or `exclude`: the ids to choose
        from, or to leave out. `search="approximate"`: by an index, for policies that sample θ̃. `request_id`,
        `deferred`, `subject`, `k` and `examination` are as in `decide`.
        """
        found: DecisionAnswer = self._send(catalogue_calls.decide_catalogue(name, **options))
        return found

    def decide_ranking(self, name: str, actions: object, k: int, **options: Any) -> RankingAnswer:
        """Choose k different actions, ranked, each a decision of its own.

        Actions are rows or have features, or are those of the catalogue where they are None; `examination` has the
        probability that each position is looked at, and the other options are those of such a decision.
        """
        found: RankingAnswer = self._send(decide_ranking(name, actions, k, options))
        return found


class AsyncCatalogueClient:
    """The catalogues of a server's bandits."""

    _send: Any

    async def put_actions(
        self,
        name: str,
        actions: Mapping[str, Any] | None = None,
        *,
        withdraw: Sequence[str] = (),
        replace: bool = False,
    ) -> CatalogueInfo:
        """Add actions to a bandit's catalogue, change those whose ids it has, and withdraw others.

        Actions are vectors of norm at most 1, or features by name: {id: …}. Many are sent in several requests.
        """
        calls = catalogue_calls.put_actions(name, actions or {}, withdraw, replace=replace)
        return catalogue_calls.join_infos([await self._send(call) for call in calls])

    async def catalogue(self, name: str) -> CatalogueInfo:
        """Return the version and the size of a bandit's catalogue."""
        found: CatalogueInfo = await self._send(catalogue_calls.catalogue(name))
        return found

    async def decide_catalogue(self, name: str, **options: Unpack[CatalogueOptions]) -> DecisionAnswer:
        """Choose one of the actions of a bandit's catalogue.

        `context`: features of the moment, where the actions have features. `candidates` or `exclude`: the ids to choose
        from, or to leave out. `search="approximate"`: by an index, for policies that sample θ̃. `request_id`,
        `deferred`, `subject`, `k` and `examination` are as in `decide`.
        """
        found: DecisionAnswer = await self._send(catalogue_calls.decide_catalogue(name, **options))
        return found

    async def decide_ranking(self, name: str, actions: object, k: int, **options: Any) -> RankingAnswer:
        """Choose k different actions, ranked, each a decision of its own.

        Actions are rows or have features, or are those of the catalogue where they are None; `examination` has the
        probability that each position is looked at, and the other options are those of such a decision.
        """
        found: RankingAnswer = await self._send(decide_ranking(name, actions, k, options))
        return found
