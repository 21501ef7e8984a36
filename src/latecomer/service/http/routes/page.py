"""/ and /page: the page for people. It has no data of its own; the parts with data need the scope read."""

import time

from msgspec import structs

from latecomer.service.http import operations
from latecomer.service.http.context import AppContext
from latecomer.service.http.fresh_texts import FreshTexts
from latecomer.service.http.operations import Operation
from latecomer.service.http.report_queries import describe_service, read_decision_id
from latecomer.service.http.request import Request
from latecomer.service.http.response import Response
from latecomer.service.http.router import Route
from latecomer.service.page.decisions import write_explanation
from latecomer.service.page.layout import POLICY, read_asset, write_bandit, write_list, write_shell
from latecomer.service.store_alarms import list_store_alarms

_HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]


def routes(context: AppContext) -> list[Route]:
    """Bind the handlers of the page to their operations."""
    texts = FreshTexts()

    async def show_list(request: Request) -> Response:
        key = request.key

        def may_read(name: str) -> bool:
            return key is None or key.allows("read", name)

        infos = [info for info in context.store.list_bandits() if may_read(info.name)]
        every = context.store.measure_all()
        counts = {found.counts.name: found.counts for found in every}
        alarms = [
            *list_store_alarms(context.store.health, may_read),
            *(alarm for found in every for alarm in found.alarms),
        ]
        return _respond(operations.PAGE_LIST, write_list(infos, counts, alarms))

    async def show_bandit(request: Request) -> Response:
        name = (await context.access.find(request.bandit)).name

        async def write() -> tuple[str, float]:
            report = await context.access.bandit_report(name)
            report = structs.replace(report, service=await describe_service(context))
            begin = time.thread_time()
            return write_bandit(report), report.processor_seconds + time.thread_time() - begin

        return _respond(operations.PAGE_BANDIT, await texts.get(name, write))

    async def show_decision(request: Request) -> Response:
        info = await context.access.find(request.bandit)
        explanation = await context.access.explain(info.name, read_decision_id(request))
        return _respond(operations.PAGE_DECISION, write_explanation(info.name, explanation, info.unit))

    return [
        _serve(operations.PAGE, write_shell()),
        _serve(operations.PAGE_STYLE, read_asset("page.css")),
        _serve(operations.PAGE_SCRIPT, read_asset("page.js")),
        _serve(operations.PAGE_ICON, read_asset("icon.svg")),
        Route(operations.PAGE_LIST, show_list),
        Route(operations.PAGE_BANDIT, show_bandit),
        Route(operations.PAGE_DECISION, show_decision),
    ]


def _serve(operation: Operation, text: str) -> Route:
    """Answer with the same text every time."""
    response = _respond(operation, text)

    async def show(request: Request) -> Response:
        return response

    return Route(operation, show)


def _respond(operation: Operation, text: str) -> Response:
    return Response(200, text.encode(), f"{operation.media}; charset=utf-8".encode(), _HEADERS)
