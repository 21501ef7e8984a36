"""A bandit of a store in this process, as `latecomer.open` returns it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy.typing as npt

from latecomer.encoding.encoder import Encoder
from latecomer.encoding.values import FeatureRow, to_plain_actions, to_plain_features
from latecomer.errors import LatecomerError
from latecomer.policies.base.learning import LearnableLog
from latecomer.service.bandit.call_options import CallOptions
from latecomer.service.bandit.verdict_list import VerdictList
from latecomer.service.bandit_report import BanditReport
from latecomer.service.catalogue_arguments import prepare_pick
from latecomer.service.catalogue_bandit import CatalogueBandit
from latecomer.service.decision_batch import check_batch_size, check_request_names, decide_batch, list_requests
from latecomer.service.decision_report import DecisionExplanation
from latecomer.service.features import digest_features, encode_features
from latecomer.service.import_batches import ImportReport, make_import_batches, make_import_id, run_import
from latecomer.service.messages import (
    BanditStats,
    Conversion,
    DecisionAnswer,
    ImportAnswer,
    ImportBatch,
    Revocation,
    Verdict,
    decision_id_of,
    list_conversions,
)
from latecomer.service.reporting_bandit import ReportingBandit
from latecomer.service.store import Store
from latecomer.timestamps import Moment, parse_datetime

if TYPE_CHECKING:
    from latecomer.service.blocking_store import BlockingStore


class OpenBandit(ReportingBandit, CatalogueBandit):
    """One bandit of a store. When a method returns, its effect is on disk; threads may share the bandit."""

    def __init__(self, store: "Store | BlockingStore", name: str, *, path: str) -> None:
        self._store, self._path = store, path
        self.name = name

    def __repr__(self) -> str:
        return f"OpenBandit({self._path!r}, name={self.name!r}, rounds={self._store.read_bandit(self.name).rounds})"

    def decide(
        self,
        actions: npt.ArrayLike,
        *,
        ids: Sequence[str] | None = None,
        request_id: str | None = None,
        deferred: bool = False,
        subject: str | None = None,
        exclude: Sequence[int | str] | None = None,
        pin: int | str | None = None,
        k: int = 1,
        examination: Sequence[float] | None = None,
    ) -> DecisionAnswer:
        """Choose one of the actions, a (K, d) array-like of norms at most 1, or k of them, ranked.

        Parameters
        ----------
        actions
            The actions to choose from.
        ids
            A text for each action; the chosen one's is the answer's `action_id`.
        request_id
            The same id and actions get the same answer again, also after a restart.
        deferred
            Whether the decision counts only once it is activated (`activate`).
        subject
            The user that the decision is for, whom a conversion may name in its place; a digest of it is kept.
        exclude, pin
            Actions that must not be chosen, and the one that must be, by index or id.
        k, examination
            How many to choose: with more than one, the answer is a `RankingAnswer`, as `decide_ranking` returns it; and
            the probability that each position is looked at.
        """
        options: CallOptions = {"deferred": deferred, "subject": subject, "exclude": exclude, "pin": pin}
        options |= {"request_id": request_id, "k": k, "examination": examination}
        answer, ticket = self._store.decide(self.name, actions, ids, **options)
        self._store.wait(ticket)
        return answer

    def decide_features(
        self,
        actions: Mapping[str, FeatureRow],
        *,
        context: FeatureRow | None = None,
        request_id: str | None = None,
        deferred: bool = False,
        subject: str | None = None,
        exclude: Sequence[int | str] | None = None,
        pin: int | str | None = None,
        k: int = 1,
        examination: Sequence[float] | None = None,
    ) -> DecisionAnswer:
        """Choose between actions that are known by their features, {id: {name: value}}; see docs/how-to/features.md.

        Parameters
        ----------
        actions
            The actions to choose from; features are dicts, or rows of a DataFrame.
        context
            Features of the moment, which all actions share.
        request_id
            The same id and features get the same answer again, also after a restart.
        deferred, subject, exclude, pin, k, examination
            As in `decide`.
        """
        options: dict[str, Any] = {"deferred": deferred, "subject": subject, "exclude": exclude, "pin": pin}
        options |= {"k": k, "examination": examination}
        prepared = self._prepare_features(actions, context=context, request_id=request_id, **options)
        answer, ticket = self._store.decide(self.name, **prepared)
        self._store.wait(ticket)
        return answer

    def _prepare_features(
        self,
        actions: Mapping[str, FeatureRow],
        *,
        context: FeatureRow | None = None,
        request_id: str | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Return the arguments of `Store.decide` for actions that are known by their features."""
        info, described = self._store.info(self.name), to_plain_actions(actions)
        around = {} if context is None else to_plain_features(context, "context")
        features = [features for _, features in described]
        return {
            "actions": encode_features(info, around, features),
            "ids": [id_ for id_, _ in described],
            "request_id": request_id,
            "body": None if request_id is None else digest_features(around, described),
            "described": (around, features),
            **options,
        }

    def decide_many(self, requests: Iterable[Mapping[str, Any]]) -> list[DecisionAnswer | Exception]:
        """Make many decisions with one wait for the disk; return an answer for each, or its error in its place.

        Parameters
        ----------
        requests
            The arguments of `decide`, or of `decide_features` where `actions` is a mapping, or of `decide_catalogue`
            where there are none, each as a dict; at most 1,000. One that breaks a rule changes nothing, and the others
            are decided.

        Examples
        --------
        >>> import tempfile, latecomer as lc
        >>> rows = [[1.0, 0.0], [0.0, 1.0]]
        >>> with tempfile.TemporaryDirectory() as folder, lc.open(f"{folder}/shop.db", dim=2, window="7d") as bandit:
        ...     answers = bandit.decide_many([{"actions": rows}, {"actions": [[2.0, 0.0]]}, {"actions": rows}])
        ...     answers[0].round, type(answers[1]).__name__, answers[2].round
        (1, 'InputError', 2)
        """
        given = list_requests(requests)
        check_batch_size(len(given))
        prepared = [self._prepare_one(request, place) for place, request in enumerate(given)]
        if not isinstance(self._store, Store):
            return self._store.decide_many(self.name, prepared)
        outcomes, tickets = decide_batch(self._store, self.name, prepared)
        for ticket in tickets:
            self._store.wait(ticket)
        return outcomes

    def _prepare_one(self, request: Mapping[str, Any], place: int) -> Mapping[str, Any] | Exception:
        """Return a request's arguments for the store, or its error."""
        try:
            check_request_names(request, place)
            if "actions" not in request:
                return prepare_pick(**request)
            return self._prepare_features(**request) if isinstance(request["actions"], Mapping) else request
        except LatecomerError as error:
            return error

    def import_log(
        self,
        log: LearnableLog,
        *,
        encoder: Encoder | None = None,
        scale: float = 1.0,
        import_id: str | None = None,
        advance: Callable[[int], None] = lambda _: None,
    ) -> ImportReport:
        """Learn from decisions that others made, as `LinearPolicy.learn` does, durably; the same log counts once.

        Parameters
        ----------
        log
            A log of decisions, as `latecomer.read_log` reads it.
        encoder, scale
            As in `LinearPolicy.learn`.
        import_id
            Identifies the import, so that it can go on after a failure; by default made of the log's contents.
        advance
            Called with the number of decisions of each batch, once it is on disk.
        """
        identity = import_id or make_import_id(log, encoder=encoder, scale=scale)
        dim = self._store.info(self.name).dim
        self._store.read_bandit(self.name).policy.state.prepare(log.decisions)
        batches = make_import_batches(log, dim, import_id=identity, encoder=encoder, scale=scale)
        return run_import(self._import_batch, batches, advance)

    def _import_batch(self, batch: ImportBatch) -> ImportAnswer:
        answer, ticket = self._store.import_batch(self.name, batch)
        self._store.wait(ticket)
        return answer

    def convert(
        self,
        decision_id: DecisionAnswer | str | None = None,
        *,
        value: float | None = None,
        occurred_at: Moment | None = None,
        subject: str | None = None,
        conversion_id: str | None = None,
    ) -> Verdict:
        """Report a conversion of a decision, or of a subject.

        Parameters
        ----------
        decision_id
            The answer's, or the answer itself.
        value
            Its value, in [0, 1], and 1 where it is not given; where the bandit's reward has a scale, its amount.
        occurred_at
            When it happened, where that was before now: a `datetime` (UTC where it has no zone), an ISO 8601 text, a
            numpy.datetime64, or seconds since 1970. More than a day ahead of the store's clock is refused. Before its
            decision it is accepted with a warning, `errors.OccurredBeforeDecisionWarning`.
        subject
            In place of the decision: the user, whose decisions are credited as the bandit's `attribution` says;
            `convert_many` tells which.
        conversion_id
            Its own id: the same counts once, others of the decision may count too, and `revoke` can name it.
        """
        occurred = parse_datetime(occurred_at, name="occurred_at")
        target = None if decision_id is None else decision_id_of(decision_id)
        return self._convert([Conversion(target, value, occurred, subject, conversion_id)]).warn()[0]

    def convert_many(self, conversions: Iterable[Conversion]) -> VerdictList:
        """Report many conversions with one wait for the disk; return their verdicts, whose `warnings` have indices."""
        return self._convert(list_conversions(conversions)).warn()

    def _convert(self, conversions: Sequence[Conversion]) -> VerdictList:
        verdicts, ticket = self._store.convert(self.name, conversions)
        self._store.wait(ticket)
        return verdicts

    def revoke(
        self,
        decision_id: DecisionAnswer | str | None = None,
        *,
        occurred_at: Moment | None = None,
        conversion_id: str | None = None,
    ) -> Verdict:
        """Take a decision's conversions back, or the one of a `conversion_id`."""
        occurred = parse_datetime(occurred_at, name="occurred_at")
        target = None if decision_id is None else decision_id_of(decision_id)
        verdicts, ticket = self._store.revoke(self.name, [Revocation(target, occurred, conversion_id)])
        self._store.wait(ticket)
        return verdicts[0]

    def stats(self) -> BanditStats:
        """Return what the bandit has counted and learned."""
        return self._store.stats(self.name)

    def report(self, *, since: Moment | None = None, until: Moment | None = None) -> BanditReport:
        """Return the bandit's report; with `since` or `until`, about the decisions of that time alone."""
        begin, end = parse_datetime(since, name="since"), parse_datetime(until, name="until")
        return self._store.bandit_report(self.name, begin, end)

    def explain(self, decision: DecisionAnswer | str) -> DecisionExplanation:
        """Explain a decision: the actions it was made among, the features that made it, and its fate."""
        return self._store.explain(self.name, decision)

    def close(self) -> None:
        """Close the store; a `with` statement does it."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
