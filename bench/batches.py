"""Decisions in batches over HTTP, against the same decisions one by one."""

import json
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from load import request, run
from rows import Row, verdict
from service import ARMS, BLOCKS, CONNECTIONS, RATIOS, SECONDS, SPEC, EchoServer, make_action_sets, run_echo_server

CALLERS, DECISIONS, BATCHED = 4, 100, 5.0
"""Connections that send batches, decisions in a batch, and how many times those of single requests they reach."""
OPEN = 500
SPECS: dict[str, dict[str, object]] = {
    "OTFLinTS": SPEC, f"OTFLinUCB, m={OPEN}": {"policy": "OTFLinUCB", "window": OPEN}, "the default policy": {}
}  # fmt: skip
"""The paper's policies, and the default one with propensities and offers, each in a store of its own. A decision of
OTFLinUCB takes O(m·d), so the rounds that are open are as many in every block: with a window of days they would be all
decisions of the row so far, some 100,000, most of which the batches have made."""


def rows() -> Iterator[Row]:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as generator:
        for dim in RATIOS:
            for policy in SPECS:
                with TemporaryDirectory() as folder, run_echo_server(Path(folder) / "a.db") as server:
                    yield _in_batches(server, generator, dim, policy)


def _in_batches(server: EchoServer, generator: ProcessPoolExecutor, dim: int, policy: str) -> Row:
    """Compare decisions in batches with the same decisions one by one, on connections that are kept busy."""
    server.http.put("/v1/bandits/b", json={"dim": dim, "window": "7d"} | SPECS[policy]).raise_for_status()
    singles = [json.dumps({"actions": rows.tolist()}).encode() for rows in make_action_sets(dim, 50)]
    batch = b"[" + b",".join(singles[i % len(singles)] for i in range(DECISIONS)) + b"]"
    path, rates = "/v1/bandits/b/decisions", []
    for block in range(BLOCKS // 2 + 1):
        each = []
        for bodies, size, connections in (
            (singles, 1, CALLERS),
            ([batch], DECISIONS, CALLERS),
            (singles, 1, CONNECTIONS),
        ):
            load = generator.submit(
                run, server.port, [request(path, body) for body in bodies], connections=connections, seconds=SECONDS
            ).result()
            each.append(load.rate * size)
        if block:
            rates.append(each)
    ratio = median(many / single for single, many, _ in rates)
    crowded = median(many / single for _, many, single in rates)
    fastest = [max(side) for side in zip(*rates, strict=True)]
    return Row(
        work=f"decisions in batches of {DECISIONS}, {policy}, K={ARMS}, d={dim}",
        measured=f"{ratio:.1f} times those of single requests",
        must_reach=f">= {BATCHED:g} times",
        verdict=verdict(ratio >= BATCHED),
        detail=f"the median of {BLOCKS // 2} pairs of blocks of {SECONDS:g} s, {CALLERS} connections with batches and "
        f"as many with single requests; {crowded:.1f} times those of single requests on {CONNECTIONS} connections, "
        f"which share commits; the fastest blocks: {fastest[1]:,.0f}, {fastest[0]:,.0f} and {fastest[2]:,.0f} a second",
    )
