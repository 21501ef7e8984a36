"""Traces of requests: a span for each, with the store's work and its commit inside; none without a provider."""

import asyncio
from pathlib import Path

import numpy as np
import pytest
from apps import app_context, make_request
from msgspec import structs
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.http.app import App
from latecomer.service.http.decision_queue import DecisionQueue
from latecomer.service.http.pending_decision import ParsedDecision
from latecomer.service.http.store_access import LocalAccess
from latecomer.service.http.tracing import Tracing, find_tracing
from latecomer.service.messages import Conversion


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def tracing(exporter: InMemorySpanExporter) -> Tracing:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return Tracing(provider.get_tracer("latecomer"))


def test_there_are_no_traces_without_a_provider() -> None:
    assert find_tracing() is None


def test_a_request_is_a_span_that_continues_the_trace_of_its_caller(
    tmp_path: Path, tracing: Tracing, exporter: InMemorySpanExporter
) -> None:
    with app_context(tmp_path / "s.db") as context:
        app = App(structs.replace(context, tracing=tracing))
        request = make_request("GET", "/v1/bandits/nobody/stats")
        request.headers.append((b"traceparent", b"00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"))

        async def answer() -> int:
            return (await asyncio.create_task(app(request))).status

        assert asyncio.run(answer()) == 404
    (span,) = exporter.get_finished_spans()
    assert span.name == "GET /v1/bandits/{name}/stats"
    assert span.attributes is not None
    assert span.attributes["http.response.status_code"] == 404
    assert span.attributes["latecomer.bandit"] == "nobody"
    assert span.context.trace_id == 0x0123456789ABCDEF0123456789ABCDEF
    assert span.parent is not None
    assert span.parent.span_id == 0x0123456789ABCDEF


def test_decisions_and_reports_have_the_store_and_the_commit_inside(
    tmp_path: Path, tracing: Tracing, exporter: InMemorySpanExporter
) -> None:
    with app_context(tmp_path / "s.db") as plain:
        access = LocalAccess(plain.store, plain.metrics, tracing)  # type: ignore[arg-type]
        context = structs.replace(plain, access=access, tracing=tracing)
        context.store.create("b", BanditSpec(dim=2, window="1d"))

        async def play() -> None:
            info = await access.find("b")
            queue = DecisionQueue(context, lambda body, info: ParsedDecision(np.eye(2), None, None))
            with tracing.child("request"):
                answer = await queue.decide(info, b"")
            with tracing.child("request"):
                await access.report("convert", "b", [Conversion(answer.decision_id)])

        asyncio.run(play())
    spans = {span.context.span_id: span for span in exporter.get_finished_spans() if span.context is not None}
    roots = [span for span in spans.values() if span.name == "request"]
    assert len(roots) == 2
    for root in roots:
        children = [span for span in spans.values() if span.parent and span.parent.span_id == root.context.span_id]
        store, commit = sorted(children, key=lambda span: span.start_time or 0)
        assert (store.name, commit.name) == ("store", "commit")
        assert (root.start_time or 0) <= (store.start_time or 0) <= (store.end_time or 0) <= (commit.start_time or 0)
        assert (commit.start_time or 0) < (commit.end_time or 0)
