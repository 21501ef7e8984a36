"""The page around the sections: the shell that a browser loads, the list of bandits, and a report as one file."""

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from latecomer.service.bandit_report import BanditReport
from latecomer.service.messages import BanditInfo
from latecomer.service.page import sections
from latecomer.service.page.charts import make_scrollable
from latecomer.service.page.markup import Markup, tag

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
"""The Content-Security-Policy of the page: nothing from elsewhere, and no script or style inside it."""


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


def write_list(infos: Sequence[BanditInfo]) -> str:
    """Write the list of bandits."""
    if not infos:
        return tag(
            "section",
            tag("h2", "No bandits yet"),
            tag("p", "Create one, with the number of features and the time that conversions may take:"),
            sections.write_curl("PUT", "offers", '{"dim": 8, "window": "7d"}'),
        )
    rows = [
        tag(
            "tr",
            tag("th", tag("a", info.name, href=f"/?bandit={info.name}"), scope="row"),
            tag("td", info.policy),
            tag("td", str(info.window) if isinstance(info.window, str) else f"{info.window:,} rounds"),
            tag("td", sections.format_moment(info.created_at.replace(second=0))),
            tag("td", "quarantined: see the server's log" if info.quarantined else "served"),
        )
        for info in infos
    ]
    heads = ("name", "policy", "window", "created", "state")
    table = tag(
        "table",
        tag("caption", "Every bandit that may be read here"),
        tag("thead", tag("tr", *(tag("th", head, scope="col") for head in heads))),
        tag("tbody", *rows),
    )
    return tag("section", tag("h2", "Bandits"), make_scrollable(table, "Bandits"))


def write_bandit(report: BanditReport) -> str:
    """Write the sections of one bandit."""
    return tag("article", *_write_parts(report))


def _write_parts(report: BanditReport) -> list[Markup]:
    window = f"{report.window:,} rounds" if isinstance(report.window, int) else report.window
    parts = [
        tag("h2", report.name),
        tag("p", f"{report.policy}, window {window}. As of {report.at:%Y-%m-%d %H:%M:%S} UTC.", class_="note"),
    ]
    if report.first_round > 1:
        parts.append(tag("p", f"Counts begin with round {report.first_round:,}.", class_="note"))
    if not report.decisions:
        text = "No decisions yet. Ask for one: a row of numbers for each action, and their ids."
        body = '{"actions": [[0.6, 0.0], [0.0, 0.8]], "ids": ["left", "right"]}'
        return [*parts, tag("p", text), sections.write_curl("POST", f"{report.name}/decisions", body)]
    return [
        *parts,
        sections.write_rates(report),
        sections.write_lift(report.lift, report.name),
        sections.write_time(report),
        sections.write_choices(report),
        sections.write_delays(report),
        sections.write_exploration(report),
        sections.write_verdicts(report),
    ]


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
    body = tag("body", tag("header", tag("h1", "Latecomer")), tag("main", tag("article", *_write_parts(report))))
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
