"""A shop that chooses offers over HTTP and hears of purchases late: run it, and watch the regret fall.

It starts a server of its own in a temporary folder: `python examples/shop.py`.
"""

import json
import subprocess
import sys
from collections import defaultdict
from tempfile import TemporaryDirectory

import numpy as np

import latecomer as lc

DIM, OFFERS, MEAN_DELAY, VISITORS = 5, 10, 50, max(8, int(sys.argv[1])) if len(sys.argv) > 1 else 2000
rng = np.random.default_rng(0)
theta = np.array([0.9, 0.3, 0.1, 0.1, 0.1])  # what visitors like; the shop does not know


def offers() -> np.ndarray:
    """Ten offers with five features each."""
    drawn = rng.integers(0, 2, (OFFERS, DIM)) + 1e-3
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True))


def visit(client: lc.Client, arriving: dict[int, list[str]], now: int) -> float:
    """One visitor: an offer is shown, and bought later or never; the regret of that choice."""
    actions = offers()
    chances = np.clip(actions @ theta, 0, 1)
    decision = client.decide("offers", actions)
    if rng.random() < chances[decision.index]:
        arriving[now + rng.geometric(1 / MEAN_DELAY)].append(decision.decision_id)
    return float(chances.max() - chances[decision.index])


def run(client: lc.Client) -> None:
    """Visitors come, purchases trickle in, and the shop learns from both."""
    client.create("offers", dim=DIM, window=500, policy="OTFLinTS", parameters={"exploration": 0.3, "seed": 0})
    arriving: dict[int, list[str]] = defaultdict(list)
    regret: list[float] = []
    with client.batch("offers", size=20) as purchases:
        for now in range(VISITORS):
            regret.append(visit(client, arriving, now))
            for decision_id in arriving.pop(now, []):
                purchases.convert(decision_id)
            if (now + 1) % (VISITORS // 8) == 0:
                print(f"visitors {now + 1:5d}: regret a visitor {np.mean(regret[-VISITORS // 8 :]):.3f}", flush=True)
    print({verdict.value: count for verdict, count in purchases.verdicts.items()})


with TemporaryDirectory() as folder:
    command = [sys.executable, "-m", "latecomer", "serve", "--store", f"{folder}/shop.db", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:  # noqa: S603
        try:
            port = json.loads(server.stderr.readline())["port"]  # the first line of its log
            with lc.Client(f"http://127.0.0.1:{port}", timeout=60) as shop:
                run(shop)
        finally:
            server.terminate()
