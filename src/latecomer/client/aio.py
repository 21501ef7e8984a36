"""`latecomer.AsyncClient`: the bandits of a server, for coroutines; the calls of `Client`, awaited."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self, TypeVar, Unpack

import httpx

from latecomer.client import creation_calls, decision_calls, protocol
from latecomer.client.address import parse_url, redact_url
from latecomer.client.async_batch import AsyncConversionBatch
from latecomer.client.batch import make_revocation
from latecomer.client.catalogues import AsyncCatalogueClient
from latecomer.client.certificates import trusted_certificates
from latecomer.client.decision_calls import make_options
from latecomer.durations import Span
from latecomer.encoding.values import FeatureRow
from latecomer.service.bandit.verdict_list import VerdictList
from latecomer.service.bandit_report import BanditReport
from latecomer.service.decision_report import DecisionExplanation
from latecomer.service.import_batches import ImportReport, ImportRun, make_import_batches, make_import_id
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


class AsyncClient(AsyncCatalogueClient):
    """A client with the arguments and the calls of `Client`, which are awaited. It is closed by `async with`."""

    def __init__(self, url: str, *, key: str | None = None, timeout: float = 10.0, retries: int = 6) -> None:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._http = httpx.AsyncClient(
            base_url=parse_url(url), headers=headers, timeout=timeout, verify=trusted_certificates()
        )
        self._timeout, self._retries = timeout, retries
        self._redacted_url = redact_url(parse_url(url))

    def __repr__(self) -> str:
        return f"AsyncClient({self._redacted_url!r})"

    async def create(self, name: str, *, window: Span, **spec: Unpack[creation_calls.SpecOptions]) -> BanditInfo:
        """Create a bandit; the same again changes nothing. `window`: rounds, or a time such as "7d".

        The other arguments are those of `latecomer.open`: `dim`, `policy`, `parameters`, `features` (the scales of
        numbers for `decide_features`), `encoder` (in its place; `dim` is then the encoder's), `log_offers`,
        `unit` (of values in reports, as in {"name": "EUR", "scale": 250}), `grace`,
        `activation_timeout`, `attribution`, `reward`, `returns` and `challenger`.
        """
        return await self._send(creation_calls.create(name, window=window, **spec))

    async def bandits(self) -> list[BanditInfo]:
        """List the bandits that the key may read."""
        return (await self._send(protocol.bandits())).bandits

    async def info(self, name: str) -> BanditInfo:
        """Return a bandit's description."""
        return await self._send(protocol.info(name))

    async def stats(self, name: str) -> BanditStats:
        """Return a bandit's estimates and counts."""
        return await self._send(protocol.stats(name))

    async def report(self, name: str, *, since: Moment | None = None, until: Moment | None = None) -> BanditReport:
        """Return a bandit's report; with `since` or `until`, about the decisions of that time alone."""
        return await self._send(protocol.report(name, since=since, until=until))

    async def explain(self, name: str, decision: DecisionAnswer | str) -> DecisionExplanation:
        """Explain a decision: the actions it was made among, the features that made it, and its fate."""
        return await self._send(protocol.explain(name, decision))

    async def delete(self, name: str) -> BanditInfo | None:
        """Delete a bandit; return its description, or None where the answer to the first try was lost."""
        return await self._send(protocol.delete(name))

    async def decide(
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
        return await self._send(decision_calls.decide(name, actions, ids=ids, request_id=request_id, options=options))

    async def decide_features(
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
        return await self._send(
            decision_calls.decide_features(name, actions, context=context, request_id=request_id, options=options)
        )

    async def decide_many(self, name: str, requests: Iterable[Mapping[str, Any]]) -> list[DecisionAnswer | Exception]:
        """Make many decisions, 1,000 in a round trip; return an answer for each, or its error in its place.

        Each request is a dict of the arguments of `decide`, of `decide_features` where `actions` is a mapping, or
        of `decide_catalogue` where there are none.
        """
        found: list[DecisionAnswer | Exception] = []
        bodies = decision_calls.make_bodies(requests)
        for call in decision_calls.decide_many(name, bodies):
            found += decision_calls.read_outcomes(await self._send(call))
        return decision_calls.place_errors(bodies, found)

    async def convert(
        self,
        name: str,
        decision_id: DecisionAnswer | str | None = None,
        *,
        value: float | None = None,
        occurred_at: Moment | None = None,
        subject: str | None = None,
        conversion_id: str | None = None,
    ) -> Verdict:
        """Report a conversion; `occurred_at` as in `Client.convert`."""
        occurred = parse_datetime(occurred_at, name="occurred_at")
        target = None if decision_id is None else decision_id_of(decision_id)
        return (await self._convert(name, [Conversion(target, value, occurred, subject, conversion_id)])).warn()[0]

    async def convert_many(self, name: str, conversions: Iterable[Conversion]) -> VerdictList:
        """Report many conversions; return a verdict for each, and `warnings` about some of them."""
        return (await self._convert(name, conversions)).warn()

    async def _convert(self, name: str, conversions: Iterable[Conversion]) -> VerdictList:
        found = VerdictList()
        for part in protocol.split_batches(list_conversions(conversions)):
            answer = await self._send(protocol.convert(name, part))
            found.append_portion(answer.verdicts, answer.warnings, answer.attributed)
        return found

    async def correct(
        self, name: str, decision_id: DecisionAnswer | str, value: float, *, occurred_at: Moment | None = None
    ) -> Verdict:
        """Replace all that a decision is credited with by another value: in [0, 1], or with a reward an amount.

        It can be corrected for as long as it could be revoked. `DUPLICATE`: it has that value already, or its
        conversions were revoked; `UNKNOWN`: also, it has not converted.
        """
        occurred = parse_datetime(occurred_at, name="occurred_at")
        corrections = [Correction(decision_id_of(decision_id), value, occurred)]
        return (await self._send(protocol.correct(name, corrections))).verdicts[0]

    async def stage(
        self, name: str, decision_id: DecisionAnswer | str, stage: str, *, occurred_at: Moment | None = None
    ) -> Verdict:
        """Report that a decision has reached a stage, such as "click"."""
        reports = [StageReport(decision_id_of(decision_id), stage, parse_datetime(occurred_at, name="occurred_at"))]
        return (await self._send(protocol.stage(name, reports))).verdicts[0]

    async def activate(self, name: str, decision_id: DecisionAnswer | str) -> Verdict:
        """Report that a deferred decision was shown: it counts from now on, and its window begins."""
        activations = [Activation(decision_id_of(decision_id))]
        return (await self._send(protocol.activate(name, activations))).verdicts[0]

    async def freeze(self, name: str) -> None:
        """Have a bandit decide without learning, until it is unfrozen."""
        await self._send(protocol.freeze(name, True))

    async def unfreeze(self, name: str) -> None:
        """Have a bandit learn again, from the decisions that are made from now on."""
        await self._send(protocol.freeze(name, False))

    async def import_log(
        self, name: str, log: Any, *, encoder: Any = None, scale: float = 1.0, import_id: str | None = None
    ) -> ImportReport:
        """Have a bandit learn from decisions that others made; see `Client.import_log`."""
        dim, run = (await self.info(name)).dim, ImportRun()
        identity = import_id or make_import_id(log, encoder=encoder, scale=scale)
        for batch in make_import_batches(log, dim, import_id=identity, encoder=encoder, scale=scale):
            run.add(await self._send(protocol.import_batch(name, run.prepare(batch))))
        return run.finish()

    async def revoke(
        self,
        name: str,
        decision_id: DecisionAnswer | str | None = None,
        *,
        occurred_at: Moment | None = None,
        conversion_id: str | None = None,
    ) -> Verdict:
        """Take a decision's conversions back, or the one of a `conversion_id`."""
        revocation = make_revocation(decision_id, occurred_at, conversion_id)
        return (await self._send(protocol.revoke(name, [revocation]))).verdicts[0]

    def batch(self, name: str, *, size: int = 1000, seconds: float = 0.5) -> "AsyncConversionBatch":
        """Collect conversions, and send them when `size` are waiting, or after `seconds`, or at the end of `with`."""
        return AsyncConversionBatch(lambda conversions: self._convert(name, conversions), size=size, seconds=seconds)

    async def _send(self, call: protocol.Call[T]) -> T:
        for tries, delay in enumerate((*protocol.retry_delays(self._retries), None)):
            try:
                answer = await self._http.request(
                    call.method,
                    call.path,
                    content=call.content,
                    headers={"Content-Type": call.content_type},
                    timeout=max(self._timeout, call.timeout),
                )
            except httpx.TransportError as error:
                if delay is None:
                    raise protocol.explain_silence(self._redacted_url, error) from error
                await asyncio.sleep(delay)
            else:
                if delay is None or answer.status_code not in protocol.TRANSIENT:
                    return protocol.parse_answer(call, answer.status_code, answer.content, is_retry=tries > 0)
                await asyncio.sleep(protocol.extend_delay(delay, answer.headers))
        raise AssertionError("the last try returns or raises")

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
