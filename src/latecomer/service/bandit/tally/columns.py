"""The columns of a tally's buckets."""

from enum import IntEnum


class Column(IntEnum):
    """A count of a bucket of time. Those from CREDITED on are by the time of the decision, less what was revoked.

    The parts of the values' exact sum begin at VALUES.
    """

    DECISIONS = 0
    CONTROLS = 1
    WITH_PROPENSITY = 2
    PROPENSITIES = 3
    EXPLORED = 4
    ARRIVED = 5
    REVOKED = 6
    CREDITED = 7
    CONTROLS_CREDITED = 8
    VALUES = 9
