"""The report of a bandit from a store that may be in use: its owner or its replicas go on writing."""

from os import PathLike

import apsw

from latecomer.service.bandit.report import make_report
from latecomer.service.bandit_report import BanditReport
from latecomer.service.storage.postgres.no_index import open_no_index
from latecomer.service.storage.recovery import make_index_opener, recover_bandit
from latecomer.service.tools.reader import find_descriptor, open_reader


def read_report(path: str | PathLike[str], name: str) -> BanditReport:
    """Report on a bandit as of its latest event; `UnknownBanditError` where there is none such."""
    with open_reader(path) as connection:
        descriptor = find_descriptor(connection, name)
        open_index = make_index_opener(connection) if isinstance(connection, apsw.Connection) else open_no_index
        bandit = recover_bandit(connection, descriptor, open_index=open_index).bandit
        return make_report(bandit, now=bandit.stamp)
