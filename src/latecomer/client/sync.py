"""`latecomer.Client`: the bandits of a server."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self, TypeVar, Unpack

import httpx

from latecomer.client import creation_calls, decision_calls, protocol
from latecomer.client.address import parse_url, redact_url
from latecomer.client.batch import ConversionBatch, make_revocation
from latecomer.client.catalogues import CatalogueClient
from latecomer.client.certificates import trusted_certificates
from latecomer.client.decision_calls import make_options
from latecomer.durations import Span
from latecomer.encoding.values import FeatureRow
from latecomer.service.bandit.verdict_list import VerdictList
from latecomer.service.bandit_report import BanditReport
from latecomer.service.decision_report import DecisionExplanation
from latecomer.service.import_batches import ImportReport, make_import_batches, make_import_id, run_import
from latecomer.service.messages import (
    Activation,
    BanditInfo,
    BanditStats,
    Conversion,
    Correction,
    DecisionAnswer,
    StageReport,
    Verdict,
    decision_id_of,
    list_conversions,
)
from latecomer.timestamps import Moment, parse_datetime

T = TypeVar("T")


class Client(CatalogueClient):
    """A client of a server. It keeps its connections, may be used by several threads, and is closed by `with`.

    A call that fails for the moment (no connection, no answer, 503) is sent again with the same request id, which the
    server counts once. The verdict on a conversion that was sent twice may be DUPLICATE.

    Parameters
    ----------
    url
        Such as "http://127.0.0.1:8080"; "localhost:8080" means http.
    key
        The API key, where the server needs one.
    timeout
        Seconds to wait for one answer; imports and reports may take a minute.
    retries
        How many times to try again.
    """

    def __init__(self, url: str, *, key: str | None = None, timeout: float = 10.0, retries: int = 6) -> None:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._http = httpx.Client(
            base_url=parse_url(url), headers=headers, timeout=timeout, verify=trusted_certificates()
        )
        self._timeout, self._retries = timeout, retries
        self._redacted_url = redact_url(parse_url(url))

    def __repr__(self) -> str:
        return f"Client({self._redacted_url!r})"

    def create(self, name: str, *, window: Span, **spec: Unpack[creation_calls.SpecOptions]) -> BanditInfo:
        """Create a bandit; the same again changes nothing. `window`: rounds, or a time such as "7d".

        The other arguments are those of `latecomer.open`: `dim`, `policy`, `parameters`, `features` (the scales of
        numbers for `decide_features`), `encoder` (in its place; `dim` is then the encoder's), `log_offers`,
        `unit` (of values in reports, as in {"name": "EUR", "scale": 250}), `grace`,
        `activation_timeout`, `attribution`, `reward`, `returns` and `challenger`.
        """
        return self._send(creation_calls.create(name, window=window, **spec))

    def bandits(self) -> list[BanditInfo]:
        """List the bandits that the key may read."""
        return self._send(protocol.bandits()).bandits

    def info(self, name: str) -> BanditInfo:
        """Return a bandit's description."""
        return self._send(protocol.info(name))

    def stats(self, name: str) -> BanditStats:
        """Return a bandit's estimates and counts."""
        return self._send(protocol.stats(name))

    def report(self, name: str, *, since: Moment | None = None, until: Moment | None = None) -> BanditReport:
        """Return a bandit's report; with `since` or `until`, about the decisions of that time alone."""
        return self._send(protocol.report(name, since=since, until=until))

    def explain(self, name: str, decision: DecisionAnswer | str) -> DecisionExplanation:
        """Explain a decision: the actions it was made among, the features that made it, and its fate."""
        return self._send(protocol.explain(name, decision))

    def delete(self, name: str) -> BanditInfo | None:
        """Delete a bandit; return its description, or None where the answer to the first try was lost."""
        return self._send(protocol.delete(name))

    def decide(
        self,
        name: str,
        actions: decision_calls.Actions,
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
        """Choose one of the actions, rows of numbers. The same `request_id` again is the same decision.

        A decision that is `deferred` counts only once it is activated (`activate`). `subject` is the user that it is
        for, whom a conversion may name in its place. Actions in `exclude` are not chosen, and `pin` is; both take
        indices, or ids. With `k` above 1, or with an `examination` (the probability that each position is looked at),
        the answer is a `RankingAnswer`, as `decide_ranking` returns it.
        """
        options = make_options(deferred, subject, exclude, pin, k, examination)
        return self._send(decision_calls.decide(name, actions, ids=ids, request_id=request_id, options=options))

    def decide_features(
        self,
        name: str,
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
        """Choose one of the actions, which are described by features: {id: {name: value}}."""
        options = make_options(deferred, subject, exclude, pin, k, examination)
        return self._send(
            decision_calls.decide_features(name, actions, context=context, request_id=request_id, options=options)
        )

    def decide_many(self, name: str, requests: Iterable[Mapping[str, Any]]) -> list[DecisionAnswer | Exception]:
        """Make many decisions, 1,000 in a round trip; return an answer for each, or its error in its place.

        Each request is a dict of the arguments of `decide`, of `decide_features` where `actions` is a mapping, or
        of `decide_catalogue` where there are none.
        """
        found: list[DecisionAnswer | Exception] = []
        bodies = decision_calls.make_bodies(requests)
        for call in decision_calls.decide_many(name, bodies):
            found += decision_calls.read_outcomes(self._send(call))
        return decision_calls.place_errors(bodies, found)

    def convert(
        self,
        name: str,
        decision_id: DecisionAnswer | str | None = None,
        *,
        value: float | None = None,
        occurred_at: Moment | None = None,
        subject: str | None = None,
        conversion_id: str | None = None,
    ) -> Verdict:
        """Report a conversion.

        `occurred_at`, where it happened before now, is a `datetime` (UTC where it has no zone), an ISO 8601 text, a
        numpy.datetime64, or seconds since 1970. More than a day ahead of the server's clock is refused; before its
        decision it is accepted with a warning, `errors.OccurredBeforeDecisionWarning`. `value` is in [0, 1], and 1
        where it is not given; where the bandit's reward has a scale, the amount. A `conversion_id` is the conversion's
        own: the same counts once, others of the decision may count too, and `revoke` can name it.
        """
        occurred = parse_datetime(occurred_at, name="occurred_at")
        target = None if decision_id is None else decision_id_of(decision_id)
        return self._convert(name, [Conversion(target, value, occurred, subject, conversion_id)]).warn()[0]

    def convert_many(self, name: str, conversions: Iterable[Conversion]) -> VerdictList:
        """Report many conversions; return a verdict for each, and `warnings` about some of them."""
        return self._convert(name, conversions).warn()

    def _convert(self, name: str, conversions: Iterable[Conversion]) -> VerdictList:
        found = VerdictList()
        for part in protocol.split_batches(list_conversions(conversions)):
            answer = self._send(protocol.convert(name, part))
            found.append_portion(answer.verdicts, answer.warnings, answer.attributed)
        return found

    def revoke(
        self,
        name: str,
        decision_id: DecisionAnswer | str | None = None,
        *,
        occurred_at: Moment | None = None,
        conversion_id: str | None = None,
    ) -> Verdict:
        """Take a decision's conversions back, or the one of a `conversion_id`."""
        revocation = make_revocation(decision_id, occurred_at, conversion_id)
        return self._send(protocol.revoke(name, [revocation])).verdicts[0]

    def correct(
        self, name: str, decision_id: DecisionAnswer | str, value: float, *, occurred_at: Moment | None = None
    ) -> Verdict:
        """Replace all that a decision is credited with by another value: in [0, 1], or with a reward an amount.

        It can be corrected for as long as it could be revoked. `DUPLICATE`: it has that value already, or its
        conversions were revoked; `UNKNOWN`: also, it has not converted.
        """
        occurred = parse_datetime(occurred_at, name="occurred_at")
        corrections = [Correction(decision_id_of(decision_id), value, occurred)]
        return (self._send(protocol.correct(name, corrections))).verdicts[0]

    def stage(
        self, name: str, decision_id: DecisionAnswer | str, stage: str, *, occurred_at: Moment | None = None
    ) -> Verdict:
        """Report that a decision has reached a stage, such as "click"."""
        occurred = parse_datetime(occurred_at, name="occurred_at")
        return self._send(protocol.stage(name, [StageReport(decision_id_of(decision_id), stage, occurred)])).verdicts[0]

    def activate(self, name: str, decision_id: DecisionAnswer | str) -> Verdict:
        """Report that a deferred decision was shown: it counts from now on, and its window begins."""
        activations = [Activation(decision_id_of(decision_id))]
        return (self._send(protocol.activate(name, activations))).verdicts[0]

    def freeze(self, name: str) -> None:
        """Have a bandit decide without learning, until it is unfrozen."""
        self._send(protocol.freeze(name, True))

    def unfreeze(self, name: str) -> None:
        """Have a bandit learn again, from the decisions that are made from now on."""
        self._send(protocol.freeze(name, False))

    def import_log(
        self,
        name: str,
        log: Any,
        *,
        encoder: Any = None,
        scale: float = 1.0,
        import_id: str | None = None,
        advance: Callable[[int], None] = lambda _: None,
    ) -> ImportReport:
        """Have a bandit learn from decisions that others made, batch by batch; the same log counts once.

        Parameters
        ----------
        name
            The bandit, which has made no later decisions.
        log
            A log of decisions, as `latecomer.read_log` reads it.
        encoder, scale
            As in `LinearPolicy.learn`.
        import_id
            Identifies the import, so that it can be sent again after a failure; by default made of the log's contents.
        advance
            Called with the number of decisions of each batch, once it is durable.
        """
        dim, identity = self.info(name).dim, import_id or make_import_id(log, encoder=encoder, scale=scale)
        batches = make_import_batches(log, dim, import_id=identity, encoder=encoder, scale=scale)
        return run_import(lambda batch: self._send(protocol.import_batch(name, batch)), batches, advance)

    def batch(self, name: str, *, size: int = 1000, seconds: float = 0.5) -> ConversionBatch:
        """Collect conversions, and send them when `size` are waiting, or after `seconds`, or at the end of `with`."""
        return ConversionBatch(lambda conversions: self._convert(name, conversions), size=size, seconds=seconds)

    def _send(self, call: protocol.Call[T]) -> T:
        for tries, delay in enumerate((*protocol.retry_delays(self._retries), None)):
            try:
                answer = self._http.request(
                    call.method,
                    call.path,
                    content=call.content,
                    headers={"Content-Type": call.content_type},
                    timeout=max(self._timeout, call.timeout),
                )
            except httpx.TransportError as error:
                if delay is None:
                    raise protocol.explain_silence(self._redacted_url, error) from error
                time.sleep(delay)
            else:
                if delay is None or answer.status_code not in protocol.TRANSIENT:
                    return protocol.parse_answer(call, answer.status_code, answer.content, is_retry=tries > 0)
                time.sleep(protocol.extend_delay(delay, answer.headers))
        raise AssertionError("the last try returns or raises")

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
