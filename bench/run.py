"""The bench: every promise of speed and size, measured in one run. `make bench` calls it."""

import os
from pathlib import Path

import batches
import catalogue
import features
import footprint
import large
import many_dimensions
import page
import peers
import replication
import scaling
import service
import simulator
import small
import startup
from rows import Table
from timing import HOW


def main() -> None:
    os.environ["LATECOMER_COMPILE"] = "now"  # what is measured is machine code, but where a row says otherwise
    table = Table(Path(__file__).parent / "results", how=HOW)
    for topic in (
        small,
        scaling,
        large,
        many_dimensions,
        footprint,
        startup,
        simulator,
        service,
        batches,
        catalogue,
        features,
        page,
        replication,
        peers,
    ):
        for row in topic.rows():
            table.add(row)
    print(f"\nKept in {table.folder}: bench.md, bench.json", flush=True)


if __name__ == "__main__":
    main()
