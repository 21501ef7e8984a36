"""Verdicts on reports, and the health of the store and the server."""

from latecomer.service.bandit_report import BanditReport
from latecomer.service.page.markup import Markup, tag
from latecomer.service.page.parts import make_table, write_section
from latecomer.service.page.texts import format_duration, format_share


def write_verdicts(report: BanditReport) -> Markup:
    """Show the verdicts on reports, and the health of the store."""
    total = sum(report.conversion_verdicts.values())
    rows = [
        [
            verdict,
            f"{count:,}",
            format_share(count / total) if total else "–",
            f"{report.revocation_verdicts.get(verdict, 0):,}",
        ]
        for verdict, count in report.conversion_verdicts.items()
    ]
    verdicts = make_table("Verdicts on reports", ["verdict", "conversions", "share", "revocations"], rows)
    facts = _list_facts(report)
    health = make_table("Health", ["part", "state"], facts) if facts else None
    return write_section("Verdicts and health", "verdicts", tag("div", verdicts, health, class_="charts"))


def _list_facts(report: BanditReport) -> list[list[str]]:
    facts = []
    if report.health is not None:
        health = report.health
        each = health.commit_seconds / health.commits if health.commits else None
        facts += [
            ["store", health.failure or "can be written"],
            ["snapshots", health.snapshot_failure or "in order"],
            ["commits since its start", f"{health.commits:,}"],
            ["mean time of a commit", "–" if each is None else format_duration(each)],
            ["clock ahead of the machine's", f"{round(health.clock_offset, 1) + 0.0:,.1f} s"],
        ]
    if report.service is not None:
        service = report.service
        facts += [
            ["decisions since the server's start", f"{service.decisions:,}"],
            ["median time of an answer", _format_bound(service.median_seconds)],
            ["99% of answers", _format_bound(service.p99_seconds)],
            ["replicas", "one server with its own store" if service.replicas is None else f"{service.replicas:,}"],
        ]
    return facts


def _format_bound(seconds: float | None) -> str:
    return (
        "–"
        if seconds is None
        else "more than 2.5 s"
        if seconds == float("inf")
        else f"within {format_duration(seconds)}"
    )
