"""Sizes at which the store's maintenance sets in."""

from typing import NamedTuple

from latecomer.service.bandit.request_id_index import BUFFER_SIZE, FILTER_BYTES


class Limits(NamedTuple):
    """Sizes that tests make small and that nobody else need change."""

    small_rows: int = 8192
    """Rows of all bandits together that may be small before they are compacted: a start reads them in 0.1 s."""
    compacted_rows: int = 64
    """Small rows of one bandit below which a compaction is not begun."""
    request_buffer: int = BUFFER_SIZE
    """Request ids of a bandit in memory, after which they become a segment of the index."""
    filter_bytes: int = FILTER_BYTES
    """Bytes of Bloom filters that a bandit keeps in memory."""
