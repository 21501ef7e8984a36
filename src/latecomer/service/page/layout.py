"""The page around the sections: the shell that a browser loads, the list of bandits, and a report as one file."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from latecomer.service.bandit_report import BanditReport
from latecomer.service.messages import Alarm, BanditCounts, BanditInfo
from latecomer.service.page.alarms import name_alarm, write_alarms
from latecomer.service.page.choices import write_choices, write_segments
from latecomer.service.page.decisions import write_recent
from latecomer.service.page.learning import write_delays, write_exploration, write_weights
from latecomer.service.page.markup import Markup, tag
from latecomer.service.page.operation import write_verdicts
from latecomer.service.page.over_time import write_time
from latecomer.service.page.overview import write_lift, write_rates
from latecomer.service.page.parts import make_table, write_curl, write_empty
from latecomer.service.page.texts import NONE, format_moment, format_window

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
"""The Content-Security-Policy of the page: nothing from elsewhere, and no script or style inside it."""


TITLES = {
    "rates": "Rate",
    "lift": "Lift",
    "time": "Over time",
    "choices": "What is chosen",
    "segments": "Who gets what",
    "delays": "Delays",
    "exploration": "Exploration",
    "weights": "What counts",
    "recent": "Latest decisions",
    "verdicts": "Health",
}


@cache
def read_asset(name: str) -> str:
    """Return the style sheet, the script or the icon."""
    return files("latecomer.service.page").joinpath("assets", name).read_text(encoding="utf-8")


def write_shell() -> str:
    """Write the page that a browser loads first: it has no data, and asks for a key where one is needed."""
    head = tag(
        "head",
        *_write_meta("Latecomer"),
        tag("link", rel="icon", href="/page/icon.svg"),
        tag("link", rel="stylesheet", href="/page/page.css"),
        tag("script", src="/page/page.js", defer=True),
    )
    form = tag(
        "form",
        tag("h2", "Log in"),
        tag(
            "p",
            "This server needs a key with the scope read. It stays in this tab, and is forgotten when it is closed.",
        ),
        tag("label", "Key", for_="key"),
        tag("input", id="key", type="password", autocomplete="off", spellcheck="false", required=True),
        tag("button", "Log in", type="submit"),
        id="login",
        hidden=True,
    )
    body = tag(
        "body",
        tag("a", "Skip to the content", href="#content", class_="skip"),
        tag(
            "header",
            tag("h1", tag("a", "Latecomer", href="/")),
            tag("p", "", id="status", role="status"),
            tag("button", "Log out", id="logout", type="button", hidden=True),
        ),
        form,
        tag(
            "main",
            tag("noscript", tag("p", "This page needs JavaScript; `latecomer report` writes one that does not.")),
            id="content",
            tabindex="-1",
        ),
    )
    return _write_document(head, body)


def write_list(infos: Sequence[BanditInfo], counts: Mapping[str, BanditCounts], alarms: Sequence[Alarm]) -> str:
    """Write the list of bandits with what each has counted, which alarms ring, and those of the store above it."""
    ringing = write_alarms([alarm for alarm in alarms if alarm.bandit is None])
    if not infos:
        text = "Create one, with the number of features and the time that conversions may take:"
        first = write_empty(text, write_curl("PUT", "offers", '{"dim": 8, "window": "7d"}'))
        return tag("article", tag("h2", "No bandits yet"), *ringing, first)
    rows = [_write_entry(info, counts.get(info.name), alarms) for info in infos]
    heads = ["name", "alarms", "decisions", "pending", "conversions", "policy", "window", "created (UTC)", "state"]
    return tag("article", tag("h2", "Bandits"), *ringing, make_table("Every bandit that may be read here", heads, rows))


def _write_entry(info: BanditInfo, counts: BanditCounts | None, alarms: Sequence[Alarm]) -> list[Markup | str]:
    ringing = [tag("span", name_alarm(alarm), class_=alarm.severity) for alarm in alarms if alarm.bandit == info.name]
    return [
        tag("a", info.name, href=f"/?bandit={info.name}", id=f"bandit-{info.name}"),
        tag("span", *ringing, class_="ringing") if ringing else NONE,
        NONE if counts is None else f"{counts.rounds:,}",
        NONE if counts is None else f"{counts.pending:,}",
        NONE if counts is None else f"{counts.conversions.get('accepted', 0):,}",
        info.policy,
        format_window(info.window),
        format_moment(info.created_at.replace(second=0, microsecond=0)),
        "quarantined: see the server's log" if info.quarantined else "served",
    ]


def write_bandit(report: BanditReport) -> str:
    """Write the sections of one bandit, for a server's page."""
    back = tag("p", tag("a", "← all bandits", href="/", id="back"))
    return tag("article", back, *_write_parts(report, is_live=True))


def _write_parts(report: BanditReport, *, is_live: bool) -> list[Markup]:
    facts = f"{report.policy}, window {format_window(report.window)}, since {format_moment(report.created_at)} UTC."
    parts = [tag("h2", report.name), tag("p", facts + _describe_range(report, is_live=is_live), class_="note")]
    parts += write_alarms(report.alarms)
    if not report.decisions:
        if report.since is not None or report.until is not None:
            return [*parts, write_empty("The log has no decision of this time: it was another time, or it was pruned.")]
        text = "No decisions yet. Ask for one: a row of numbers for each action, and their ids."
        body = '{"actions": [[0.6, 0.0], [0.0, 0.8]], "ids": ["left", "right"]}'
        return [*parts, write_empty(text, write_curl("POST", f"{report.name}/decisions", body))]
    sections = {
        "rates": write_rates(report),
        "lift": write_lift(report),
        "time": write_time(report),
        "choices": write_choices(report),
        "segments": write_segments(report),
        "delays": write_delays(report),
        "exploration": write_exploration(report),
        "weights": write_weights(report),
        "recent": write_recent(report, is_live=is_live),
        "verdicts": write_verdicts(report),
    }
    links = [tag("li", tag("a", TITLES[key], href=f"#{key}")) for key in sections]
    return [*parts, tag("nav", tag("ul", *links), aria_label="Sections"), *sections.values()]


def _describe_range(report: BanditReport, *, is_live: bool) -> str:
    """Say which decisions the report is about, and as of when."""
    found = ""
    if report.since is not None or report.until is not None:
        since = "the beginning" if report.since is None else format_moment(report.since)
        until = "now" if report.until is None else format_moment(report.until)
        found = f" Decisions from {since} to {until} (UTC); conversions whenever they came."
    elif report.first_round > 1:
        found = f" Counts begin with round {report.first_round:,}."
    return found if is_live else f"{found} As of {format_moment(report.at.replace(microsecond=0))} UTC."


def write_report(report: BanditReport) -> str:
    """Write the report as one file that needs nothing else."""
    style = read_asset("page.css")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    head = tag(
        "head",
        tag("meta", http_equiv="Content-Security-Policy", content=f"default-src 'none'; style-src 'sha256-{digest}'"),
        *_write_meta(f"{report.name}: report"),
        tag("style", Markup(style)),
    )
    body = tag(
        "body", tag("header", tag("h1", "Latecomer")), tag("main", tag("article", *_write_parts(report, is_live=False)))
    )
    return _write_document(head, body)


def _write_meta(title: str) -> list[Markup]:
    return [
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
    ]


def _write_document(head: Markup, body: Markup) -> str:
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"
