"""The report of a bandit from a store that may be in use: its owner or its replicas go on writing."""

from datetime import datetime
from functools import partial
from os import PathLike

import apsw

from latecomer.service.bandit.bandit_view import take_view
from latecomer.service.bandit.range_count import count_range
from latecomer.service.bandit.recent_decisions import add_recent
from latecomer.service.bandit.report import make_report
from latecomer.service.bandit_report import BanditReport
from latecomer.service.storage.postgres.no_index import open_no_index
from latecomer.service.storage.recovery import make_index_opener, recover_bandit
from latecomer.service.storage.rows import read_rows_from
from latecomer.service.store_reports import to_stamp
from latecomer.service.tools.reader import find_descriptor, open_reader


def read_report(
    path: str | PathLike[str], name: str, *, since: datetime | None = None, until: datetime | None = None
) -> BanditReport:
    """Report on a bandit as of its latest event; `UnknownBanditError` where there is none such.

    With `since` or `until`, it is about the decisions of that time alone, as far as the log still has them.
    """
    with open_reader(path) as connection:
        descriptor = find_descriptor(connection, name)
        open_index = make_index_opener(connection) if isinstance(connection, apsw.Connection) else open_no_index
        bandit = recover_bandit(connection, descriptor, open_index=open_index).bandit
        view, rows_from, only = take_view(bandit), partial(read_rows_from, connection), None
        if since is not None or until is not None:
            only = count_range(view, rows_from, since=to_stamp(since), until=to_stamp(until))
        report = make_report(bandit, now=max(bandit.stamp, 1), only=only)
        return add_recent(report, view, rows_from)
