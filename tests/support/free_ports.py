"""Free ports of the loopback address, outside the range from which the kernel takes the ports of outgoing connections.

A client that tries a closed port again and again may be given that very port as its own. It then talks to itself, and
the server that should have the port cannot start again. A port outside that range cannot be given away so.
"""

import os
import random
import socket
from pathlib import Path

LOWEST, HIGHEST, TRIES = 15_000, 65_000, 200

_chance = random.Random(os.getpid() ^ int.from_bytes(os.urandom(4)))  # noqa: S311 - not for secrets


def free_port() -> int:
    """Return a port of 127.0.0.1 on which nothing listens."""
    first, last = _outgoing_range()
    for _ in range(TRIES):
        port = _chance.randrange(LOWEST, HIGHEST)
        if first <= port <= last:
            continue
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError(f"no free port was found in {TRIES} tries")


def _outgoing_range() -> tuple[int, int]:
    try:
        first, last = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
    except OSError:
        return 49_152, 65_535  # the range of RFC 6335
    return int(first), int(last)
