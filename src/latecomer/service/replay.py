"""What if the window were 3 days, or the policy another: a bandit's log, folded into a new bandit of the same file.

Decisions stay what they were, and their rounds too; reports are judged anew, late ones included. The new bandit knows
the old one's decision ids and requests, so that traffic can move over to it while conversions are still on their way.
"""

from typing import Any

import msgspec

from latecomer.errors import FileError, InputError
from latecomer.service import events
from latecomer.service.births import UNFINISHED, Birth
from latecomer.service.desk import Desk
from latecomer.service.log import Row, first_seq, row_at, rows
from latecomer.service.messages import Spec, Stats
from latecomer.service.recovery import births

_AHEAD = 64
"""Rows that may wait to be written."""


def replay(desk: Desk, source: str, target: str, *, partial: bool = False, **changes: Any) -> Stats:
    """Replay a bandit's log into a new one; what became of it.

    Parameters
    ----------
    desk
        The owner of the file; nobody else writes meanwhile.
    source, target
        The bandit to read, and the one to make.
    partial
        Whether to begin with what is left of a log that has been pruned; refused without it.
    changes
        `window`, `policy` or `parameters` of the new one, where they differ.
    """
    connection = desk.reader
    alive, _ = births(connection, {})
    birth = next((birth for birth in alive.values() if birth.name == source), None)
    desk.info(source)
    if birth is None or target in {info.name for info in desk.bandits()}:
        raise InputError(f"the new bandit needs a name of its own; {target!r} is taken")
    first, lacks = _beginning(connection, birth, partial)
    spec = msgspec.structs.replace(birth.spec, **_given(birth.spec, changes))
    heirs = [(birth.epoch, lacks), *((epoch, before + lacks) for epoch, before in birth.heir_of)]
    desk.create(target, spec, heir_of=heirs)
    tickets = []
    for row in rows(connection, birth.number, after=first.seq - 1, before=first.before):
        payload = row.payload[events.BEGUN_SIZE :] if row.seq == 1 else row.payload  # the new one has begun by itself
        tickets.append(desk.adopt(UNFINISHED + target, payload, count=row.count, stamp=row.stamp, lacks=lacks))
        if len(tickets) > _AHEAD:
            desk.wait(tickets.pop(0))
    for ticket in tickets:
        desk.wait(ticket)
    desk.finish(target)
    return desk.stats(target)


def _given(spec: Spec, changes: dict[str, Any]) -> dict[str, Any]:
    """What was given; another policy has other parameters, so the old ones' are not taken over."""
    given = {name: value for name, value in changes.items() if value is not None}
    if given.get("policy", spec.policy) != spec.policy:
        given.setdefault("parameters", {})
    return given


def _beginning(connection: Any, birth: Birth, partial: bool) -> tuple[Row, int]:
    """The first row that is left, and how many rounds came before it."""
    first = row_at(connection, birth.number, 1)
    if first is not None:
        return first, 0
    if not partial:
        raise FileError(
            f"the log of {birth.name!r} has been pruned, its first rounds are gone: --partial begins with what is left"
        )
    for row in rows(connection, birth.number, after=first_seq(connection, birth.number) - 1, before=None):
        for kind, run in events.runs(row.payload, birth.spec.dim):
            if kind in (events.DECISION, events.ASKED) and not isinstance(run, bytes):
                return row, int(run["round"][0]) - 1
    raise FileError(f"the log of {birth.name!r} has no decision left to replay")
