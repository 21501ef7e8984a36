"""Fit the arena's world of leads to the public Olist marketing funnel: who comes, who buys, and how late.

    python scripts/fit_olist_world.py LEADS.csv

LEADS.csv has decided_at, converted_at, landing_page and origin. Prints the table of
`src/latecomer/experiments/arena/worlds.toml`: shares of (page, origin) in thousandths, θ by non-negative least squares
on one-hot pages and origins, and a histogram of the delays. Nothing is random.
"""

import csv
import sys
from collections import Counter
from datetime import date

import numpy as np
from scipy.optimize import nnls

LEADS_A_DAY = 40
ENDS = (1, 2, 3, 5, 7, 10, 14, 21, 30, 45, 60, 90, 120, 180, 310)  # days


def main(path: str) -> None:
    """Print the table."""
    with open(path, encoding="utf-8") as file:  # noqa: PTH123
        leads = list(csv.DictReader(file))
    pages, origins = ([*Counter(lead[key] for lead in leads)] for key in ("landing_page", "origin"))
    pages, origins = sorted(pages), sorted(origins)
    table = np.zeros((len(pages), len(origins)))
    features = np.zeros((len(leads), len(pages) + len(origins)))
    for i, lead in enumerate(leads):
        page, origin = pages.index(lead["landing_page"]), origins.index(lead["origin"])
        table[page, origin] += 1.0
        features[i, [page, len(pages) + origin]] = np.sqrt(0.5)
    bought = np.array([bool(lead["converted_at"]) for lead in leads], np.float64)
    theta, _ = nnls(features, bought)
    days = [
        max(0, (date.fromisoformat(lead["converted_at"][:10]) - date.fromisoformat(lead["decided_at"][:10])).days)
        for lead in leads
        if lead["converted_at"]
    ]
    shares, _ = np.histogram(days, bins=[0, *ENDS])
    rounded = np.round(table / table.sum() * 1000.0).astype(int).tolist()
    ends, unit = [float(end) for end in ENDS], 1.0 / LEADS_A_DAY
    print(f"theta = {np.round(theta, 4).tolist()}")
    print(f'actions = {{ law = "one hot", count = 5, table = {rounded} }}')
    print(f'delays = {{ law = "histogram", ends = {ends}, shares = {shares.tolist()}, unit = {unit} }}')


main(*sys.argv[1:])
