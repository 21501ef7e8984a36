"""Single decisions: the latest ones with their fates, and why one was made."""

from urllib.parse import urlencode

from latecomer.service.bandit_report import BanditReport
from latecomer.service.bandit_spec import ValueUnit
from latecomer.service.decision_report import DecisionExplanation, DecisionReport
from latecomer.service.page.charts import draw_interval
from latecomer.service.page.markup import Markup, tag
from latecomer.service.page.parts import make_table, write_card, write_cards, write_empty, write_section
from latecomer.service.page.texts import NONE, format_moment, format_share, format_value

FATES = {
    "converted": "converted",
    "revoked": "taken back",
    "open": "open: it may still convert",
    "closed": "did not convert in time",
}


def write_recent(report: BanditReport, *, is_live: bool) -> Markup:
    """Show the latest decisions with their fates; on a server's page each leads to its explanation."""
    form = None
    if is_live:
        form = tag(
            "form",
            tag("label", "Decision id", for_="decision"),
            tag("input", id="decision", type="text", autocomplete="off", spellcheck="false", required=True),
            tag("button", "Why this one?", type="submit"),
            id="why",
            class_="why",
        )
    if not report.recent:
        text = "The log has none of these decisions any more: they have been pruned."
        return write_section("Latest decisions", "recent", write_empty(text), form)
    rows = [_write_row(report, decision, is_live=is_live) for decision in report.recent]
    heads = ["decided (UTC)", "decision", "chosen", "fate", "by", "propensity"]
    return write_section("Latest decisions", "recent", form, make_table("The latest first", heads, rows))


def _write_row(report: BanditReport, decision: DecisionReport, *, is_live: bool) -> list[Markup | str]:
    shown: Markup | str = decision.decision_id or NONE
    if is_live and decision.decision_id:
        query = urlencode({"bandit": report.name, "decision": decision.decision_id})
        shown = tag("a", _shorten(decision.decision_id), href=f"/?{query}", id=f"why-{decision.round}")
    return [
        format_moment(decision.decided_at.replace(microsecond=0)),
        shown,
        _name_action(decision.action_id, decision.index),
        tag("span", _name_fate(decision, report.unit), class_=f"fate {decision.fate}"),
        "control" if decision.is_control else "policy",
        format_share(decision.propensity),
    ]


def _shorten(decision_id: str) -> str:
    number, _, tag_ = decision_id.partition("-")
    return f"{number}-{tag_[:6]}…"


def _name_action(action_id: str | None, index: int) -> str:
    return f"number {index}" if action_id is None else action_id


def _name_fate(decision: DecisionReport, unit: ValueUnit | None) -> str:
    text = FATES[decision.fate]
    if decision.fate != "converted" or decision.converted_at is None:
        return text
    worth = f", {format_value(decision.value or 0.0, unit)}" if unit or decision.value != 1.0 else ""
    return f"{text} {format_moment(decision.converted_at.replace(microsecond=0))}{worth}"


def write_explanation(name: str, explanation: DecisionExplanation, unit: ValueUnit | None = None) -> str:
    """Write why a decision was made."""
    decision = explanation.decision
    cards = write_cards(
        write_card(
            "Chosen",
            _name_action(decision.action_id, decision.index),
            "by the control" if decision.is_control else "by the policy",
            main=True,
        ),
        write_card("Propensity then", format_share(decision.propensity), "with which it was chosen"),
        write_card("Score then", f"{decision.score:.4g}", "that it was chosen by"),
        write_card("Fate", decision.fate, _name_fate(decision, unit).removeprefix("open: ")),
    )
    return tag(
        "article",
        tag("p", tag("a", f"← {name}", href=f"/?{urlencode({'bandit': name})}", id="back")),
        tag("h2", "Why this one?"),
        tag(
            "p",
            f"Decision {decision.decision_id}, round {decision.round:,}, "
            f"{format_moment(decision.decided_at.replace(microsecond=0))} UTC.",
            class_="note",
        ),
        cards,
        tag("p", explanation.note, class_="verdict"),
        _write_context(explanation),
        _write_actions(explanation),
        _write_contributions(explanation),
    )


def _write_context(explanation: DecisionExplanation) -> Markup | None:
    if not explanation.context:
        return None
    rows = [[name, str(value)] for name, value in explanation.context.items()]
    return write_section("The context", "context", make_table("As it was sent", ["feature", "value"], rows))


def _write_actions(explanation: DecisionExplanation) -> Markup:
    if not explanation.actions:
        return write_section("The actions", "actions", write_empty("Only the chosen action is in the log."))
    rows = [
        [
            _name_action(action.action_id, action.index) + (" (chosen)" if action.is_chosen else ""),
            f"{action.estimate:.4g}",
            f"{action.score:.4g}",
            format_share(action.propensity),
            ", ".join(f"{key} {value}" for key, value in (action.features or {}).items()) or NONE,
        ]
        for action in sorted(explanation.actions, key=lambda action: -action.estimate)
    ]
    heads = ["action", "estimate", "score", "propensity", "features"]
    return write_section(
        "The actions",
        "actions",
        make_table("Judged by the policy as it is now, the highest estimate first", heads, rows),
        lead="The estimate is the expected value within the window; the score adds what the policy would like to know.",
    )


def _write_contributions(explanation: DecisionExplanation) -> Markup:
    if not explanation.contributions:
        return write_section("What made it", "contributions", write_empty("No feature adds to this estimate yet."))
    reach = max(abs(part.contribution) for part in explanation.contributions)
    rows = [
        [
            f"{part.feature} ({part.side})" if part.side != "column" else part.feature,
            part.value,
            draw_interval(
                min(part.contribution, 0.0),
                part.contribution,
                max(part.contribution, 0.0),
                reach=reach,
                label=f"{part.contribution:+.4f}",
            ),
            f"{part.contribution:+.4f}",
        ]
        for part in explanation.contributions
    ]
    return write_section(
        "What made it",
        "contributions",
        make_table("The largest parts first", ["feature", "value", "below 0 | above 0", "adds"], rows),
        lead="How much the estimate of the chosen action would be lower without each feature, as of now.",
    )
