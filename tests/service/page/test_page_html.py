"""The page as HTML: numbers of the report, names that are escaped, and a policy that allows nothing from elsewhere."""

import re
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from seeded_shop import open_shop
from servers import run_server
from typer.testing import CliRunner

from latecomer.cli.main import app
from latecomer.service.bandit_report import BanditReport, ExplorationReport, LevelReport
from latecomer.service.http.keys import KeyFile
from latecomer.service.messages import Alarm
from latecomer.service.page.choices import order_levels
from latecomer.service.page.decisions import write_explanation
from latecomer.service.page.layout import write_bandit, write_list, write_report
from latecomer.service.page.markup import Markup, tag
from latecomer.service.page.texts import format_share, format_value
from latecomer.service.store import Store
from latecomer.service.store_alarms import list_store_alarms

ROUNDS = 240


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, BanditReport]:
    path = tmp_path_factory.mktemp("shop") / "a.db"
    with open_shop(path, ROUNDS) as store:
        return path, store.bandit_report("offers")


def test_text_is_escaped_and_markup_is_not() -> None:
    assert (
        tag("p", "<script>", Markup("<b>x</b>"), None, title='"&')
        == '<p title="&quot;&amp;">&lt;script&gt;<b>x</b></p>'
    )
    assert tag("input", required=True, hidden=False) == "<input required>"


def test_page_has_the_numbers_and_sentences_of_the_report(shop: tuple[Path, BanditReport]) -> None:
    report = shop[1]
    html = write_bandit(report)
    assert report.lift is not None
    assert report.rates.matured is not None
    rates = (
        format_share(report.rates.matured),
        format_share(report.rates.naive),
        f"{100 * report.lift.low:+.2f} points",
        *(format_share(report.arms[arm].matured) for arm in ("policy", "control")),
    )
    words = (
        "coupon",
        "2d",
        "visitor=new × offer=coupon",
        "returning",
        "20 to 50",
        format_value(report.value, report.unit),
    )
    for text in (f"{report.decisions:,}", *rates, *words, *(item.decision_id for item in report.recent)):
        assert text in html
    assert report.lift.note[1:] in html
    assert report.rates.note in html
    assert html.count("<caption>") == html.count("<table>") >= 10
    assert len(set(re.findall(r' id="([^"]+)"', html))) == len(re.findall(r' id="', html))


def test_every_section_has_an_empty_state(shop: tuple[Path, BanditReport]) -> None:
    bare = msgspec.structs.replace(
        shop[1],
        lift=None,
        choices=[],
        segments=[],
        weights=[],
        recent=[],
        delay_curve=None,
        exploration=ExplorationReport(mean_propensity=None, unsure_share=None, propensity_counts=[0] * 10),
        health=None,
    )
    html = write_bandit(bare)
    assert html.count('class="empty"') == 7
    assert "control&quot;: {&quot;share" in html
    assert f"{{&quot;dim&quot;: {bare.dim}, &quot;window&quot;: &quot;2d&quot;," in html, "the bandit's own"
    nothing = msgspec.structs.replace(bare, decisions=0)
    assert "No decisions yet" in write_bandit(nothing)
    assert "no decision of this time" in write_report(msgspec.structs.replace(nothing, since=nothing.at))


def test_why_this_one_shows_the_actions_and_the_features(shop: tuple[Path, BanditReport]) -> None:
    path, report = shop
    with Store.open(path) as store:
        explanation = store.explain("offers", report.recent[0].decision_id)
    html = write_explanation("offers", explanation, report.unit)
    assert len(explanation.actions) == 4
    for action in explanation.actions:
        assert f"{action.estimate:.4g}" in html
    assert {part.feature for part in explanation.contributions} == {"visitor", "age", "offer"}
    assert report.recent[0].decision_id in html
    assert explanation.note in html


def test_list_says_where_an_alarm_rings_and_what_is_wrong_with_the_store(shop: tuple[Path, BanditReport]) -> None:
    with Store.open(shop[0]) as store:
        infos, health = store.list_bandits(), store.health
    ringing = Alarm(
        id="conversions_stopped",
        severity="critical",
        bandit="offers",
        since=None,
        sentence="none came",
        remedy="look at the feed",
    )
    stuck = list_store_alarms(msgspec.structs.replace(health, failure="disk full", clock_offset=90.0))
    html = write_list(infos, {}, [*stuck, ringing])
    assert '<span class="critical">conversions stopped</span>' in html
    assert [alarm.id for alarm in stuck] == ["store_failing", "clock_off"]
    assert "Alarms (2)" in html
    assert "<code>latecomer log adjust-clock</code>" in html
    assert "Alarms" not in write_list(infos, {}, [])
    assert '<th scope="col">pending</th>' in html, "decisions without a conversion, as in the stats"
    assert "Alarms (2)" in write_list([], {}, stuck)


def test_ranges_are_in_the_order_of_their_numbers_and_texts_by_their_counts() -> None:
    def order(*names: str | None) -> list[str | None]:
        levels = [LevelReport(level=name, decisions=1, conversions=0, choices={}) for name in names]
        return [level.level for level in order_levels(levels)]

    assert order("20 to 50", "0", "-5 to -2", None, "10 to 20") == ["-5 to -2", "0", "10 to 20", "20 to 50", None]
    assert order("shoes", "books", None) == ["shoes", "books", None]


def test_an_action_id_cannot_bring_markup(shop: tuple[Path, BanditReport]) -> None:
    bad = '<img src=x onerror="alert(1)">'
    text = msgspec.json.encode(shop[1]).replace(b'"coupon"', msgspec.json.encode(bad))
    html = write_report(msgspec.json.decode(text, type=BanditReport))
    assert "&lt;img" in html
    assert "<img" not in html


def test_page_is_served_with_a_strict_policy_and_the_parts_take_a_key(tmp_path: Path) -> None:
    keys = KeyFile(tmp_path / "a.db.keys")
    admin, reader = keys.add(scopes=["admin"])[0], keys.add(scopes=["read"], bandits=["c"])[0]
    with run_server(tmp_path / "a.db") as server:
        with server.client(key=admin) as client:
            client.create("b", dim=2, window=10)
            client.create("c", dim=2, window=10)
        for path in ("/", "/page/page.css", "/page/page.js", "/page/icon.svg"):
            answer = server.http.get(path)
            assert answer.status_code == 200
            assert "unsafe" not in answer.headers["content-security-policy"]
            assert answer.headers["content-security-policy"].startswith("default-src 'none'")
        shell = server.http.get("/").text
        assert not re.findall(r"https?://", shell)
        header = {"Authorization": f"Bearer {reader}"}
        assert server.http.get("/page/bandits").status_code == 401
        listed = server.http.get("/page/bandits", headers=header).text
        assert "?bandit=c" in listed
        assert "?bandit=b" not in listed
        assert server.http.get("/page/bandits/b", headers=header).status_code == 403
        assert "No decisions yet" in server.http.get("/page/bandits/c", headers=header).text


def test_report_verb_writes_one_file_from_a_store_and_from_a_server(
    shop: tuple[Path, BanditReport], tmp_path: Path
) -> None:
    path, report = shop
    page = tmp_path / "r.html"
    arguments = ["report", str(path), "--bandit", "offers", "--out", str(page)]
    done = CliRunner().invoke(app, arguments)
    assert (done.exit_code, done.output) == (
        0,
        f"{ROUNDS} decisions and {report.conversions} conversions of offers in {page}\n",
    )
    html = page.read_text(encoding="utf-8")
    day = report.periods[0].start.date() + timedelta(days=1)
    part = ["--from", str(day), "--to", str(day + timedelta(days=2)), "--out", str(tmp_path / "part.json")]
    assert CliRunner().invoke(app, [*arguments[:4], *part]).exit_code == 0
    found = msgspec.json.decode((tmp_path / "part.json").read_bytes(), type=BanditReport)
    assert 0 < found.decisions == sum(p.decisions for p in report.periods if 1 <= (p.start.date() - day).days + 1 <= 2)
    assert found.rates.note.startswith("they do not: every decision is old enough")  # the window is two days
    assert CliRunner().invoke(app, [*arguments, "--from", "yesterday"]).exit_code == 2
    assert not re.findall(r"src=|href=\"[^#]|<script|https?://(?!127\.0\.0\.1)", html)
    with run_server(path) as server:
        data = tmp_path / "r.json"
        done = CliRunner().invoke(app, ["report", server.url, "--bandit", "offers", "--out", str(data)])
        assert done.exit_code == 0
        found = msgspec.json.decode(data.read_bytes(), type=BanditReport)
        assert (found.periods[0].start, found.choices) == (report.periods[0].start, report.choices)
    assert CliRunner().invoke(app, ["report", str(path), "--bandit", "none", "--out", str(page)]).exit_code == 1
    nowhere = tmp_path / "no" / "r.html"
    assert CliRunner().invoke(app, ["report", str(path), "--bandit", "offers", "--out", str(nowhere)]).exit_code == 2
