"""The history of clients, which record every request that they send with its answer or its error; and the log."""

import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import polars as pl
from typer.testing import CliRunner

from latecomer.cli.main import app
from latecomer.service.messages import DecisionAnswer

CONVERSION, REVOCATION = "conversion", "revocation"
ACCEPTED, UNKNOWN = "accepted", "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRecord:
    """A request for a decision. `answer` is None where it failed; `error` says how."""

    replica: str
    request_id: str | None
    sent_at: float
    ended_at: float
    answer: DecisionAnswer | None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRecord:
    """A report of a conversion or revocation. `sends`: how often it was sent at most, by a client with retries."""

    replica: str
    kind: str
    decision_id: str
    sent_at: float
    ended_at: float
    verdict: str | None
    error: str | None = None
    sends: int = 1


@dataclass(slots=True)
class ClientHistory:
    """The records of one client, in the order of their ends. One thread writes it."""

    decisions: list[DecisionRecord] = field(default_factory=list)
    reports: list[ReportRecord] = field(default_factory=list)
    acknowledged: int = 0

    def decided(
        self,
        replica: str,
        request_id: str | None,
        sent_at: float,
        *,
        answer: DecisionAnswer | None = None,
        error: str | None = None,
    ) -> None:
        """Record a request for a decision that has ended now."""
        self.acknowledged += answer is not None
        self.decisions.append(
            DecisionRecord(
                replica=replica,
                request_id=request_id,
                sent_at=sent_at,
                ended_at=time.monotonic(),
                answer=answer,
                error=error,
            )
        )

    def reported(
        self,
        replica: str,
        kind: str,
        decision_ids: Sequence[str],
        sent_at: float,
        *,
        verdicts: Sequence[str] | None = None,
        error: str | None = None,
        sends: int = 1,
    ) -> None:
        """Record the reports of one request that has ended now."""
        ended_at = time.monotonic()
        self.acknowledged += 0 if verdicts is None else len(verdicts)
        given: Sequence[str | None] = [None] * len(decision_ids) if verdicts is None else verdicts
        self.reports += [
            ReportRecord(
                replica=replica,
                kind=kind,
                decision_id=decision_id,
                sent_at=sent_at,
                ended_at=ended_at,
                verdict=verdict,
                error=error,
                sends=sends,
            )
            for decision_id, verdict in zip(decision_ids, given, strict=True)
        ]


class History:
    """The histories of all clients of one bandit."""

    def __init__(self) -> None:
        self._clients: list[ClientHistory] = []

    def add_client(self) -> ClientHistory:
        """Return an empty history for one more client."""
        self._clients.append(ClientHistory())
        return self._clients[-1]

    @property
    def decisions(self) -> list[DecisionRecord]:
        """Every request for a decision."""
        return [record for client in self._clients for record in list(client.decisions)]

    @property
    def reports(self) -> list[ReportRecord]:
        """Every report."""
        return [record for client in self._clients for record in list(client.reports)]

    @property
    def errors(self) -> list[str]:
        """The errors that clients saw."""
        records: list[DecisionRecord | ReportRecord] = [*self.decisions, *self.reports]
        return [record.error for record in records if record.error is not None]

    @property
    def acknowledged(self) -> int:
        """The number of decisions and reports that were acknowledged so far."""
        return sum(client.acknowledged for client in self._clients)


# ---- what the log has ----


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedDecision:
    """A decision of the log."""

    decision_id: str
    round: int
    chosen: int
    score: float
    action_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedReport:
    """A report of the log."""

    decision_id: str
    kind: str
    verdict: str


@dataclass(frozen=True, slots=True)
class Log:
    """The decisions and the reports of a bandit, each in the order of the log."""

    decisions: list[LoggedDecision]
    reports: list[LoggedReport]


def read_log(store: str | Path, bandit: str) -> Log:
    """Read a bandit's log by `latecomer log export`."""
    with tempfile.TemporaryDirectory(prefix="latecomer-export-") as folder:
        folders = {table: Path(folder, table) for table in ("decisions", "reports")}
        where = ["--out", str(folders["decisions"]), "--reports", str(folders["reports"])]
        result = CliRunner().invoke(app, ["log", "export", str(store), "--bandit", bandit, *where])
        assert result.exit_code == 0, f"log export: {result.output} {result.exception!r}"
        tables = {table: _read_table(folders[table], table) for table in folders}
    return Log(
        [LoggedDecision(**row) for row in _rows(tables["decisions"], LoggedDecision)],
        [LoggedReport(**row) for row in _rows(tables["reports"], LoggedReport)],
    )


def _read_table(folder: Path, table: str) -> pl.DataFrame | None:
    parts = sorted(folder.glob(f"{table}-*.parquet"))
    return pl.concat([pl.read_parquet(part) for part in parts]) if parts else None


def _rows(frame: pl.DataFrame | None, record: Any) -> Iterable[dict[str, Any]]:
    return [] if frame is None else frame.select([column.name for column in fields(record)]).iter_rows(named=True)
