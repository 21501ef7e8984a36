"""A news page that chooses articles over HTTP, and learns late which were read to the end: watch the regret fall.

It starts a server of its own in a temporary folder: `python examples/news.py`.
"""

import json
import subprocess
import sys
from collections import defaultdict
from tempfile import TemporaryDirectory

import numpy as np

import latecomer as lc

DIM, ARTICLES, MEAN_DELAY, READERS = 5, 10, 50, max(8, int(sys.argv[1])) if len(sys.argv) > 1 else 2000
rng = np.random.default_rng(0)
theta = np.array([0.9, 0.3, 0.1, 0.1, 0.1])  # what readers like; the page does not know


def articles() -> np.ndarray:
    """Ten articles with five features each."""
    drawn = rng.integers(0, 2, (ARTICLES, DIM)) + 1e-3
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True))


def visit(client: lc.Client, arriving: dict[int, list[str]], now: int) -> float:
    """One reader: an article is shown, and read to the end later or never; the regret of that choice."""
    actions = articles()
    chances = np.clip(actions @ theta, 0, 1)
    decision = client.decide("articles", actions)
    if rng.random() < chances[decision.index]:
        arriving[now + rng.geometric(1 / MEAN_DELAY)].append(decision.decision_id)
    return float(chances.max() - chances[decision.index])


def run(client: lc.Client) -> None:
    """Readers come, news of them trickles in, and the page learns from both."""
    client.create("articles", dim=DIM, window=500, parameters={"seed": 0})
    arriving: dict[int, list[str]] = defaultdict(list)
    regret: list[float] = []
    with client.batch("articles", size=20) as reports:
        for now in range(READERS):
            regret.append(visit(client, arriving, now))
            for decision_id in arriving.pop(now, []):
                reports.convert(decision_id)
            if (now + 1) % (READERS // 8) == 0:
                print(f"readers {now + 1:5d}: regret a reader {np.mean(regret[-READERS // 8 :]):.3f}", flush=True)
    print({verdict.value: count for verdict, count in reports.verdicts.items()})


with TemporaryDirectory() as folder:
    command = [sys.executable, "-m", "latecomer", "serve", "--store", f"{folder}/news.db", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:  # noqa: S603
        try:
            port = json.loads(server.stderr.readline())["port"]  # the first line of its log
            with lc.Client(f"http://127.0.0.1:{port}", timeout=60) as page:
                run(page)
        finally:
            server.terminate()
