"""The section of the page that shows alarms: nothing where there are none."""

from collections.abc import Sequence

from latecomer.service.messages import Alarm
from latecomer.service.page.markup import Markup, tag
from latecomer.service.page.parts import set_code


def write_alarms(alarms: Sequence[Alarm]) -> list[Markup]:
    """Show each alarm with its sentence and what to do; the empty list where there are none."""
    if not alarms:
        return []
    items = [_write_alarm(alarm) for alarm in alarms]
    title = tag("h3", f"Alarms ({len(items)})", id="alarms-title")
    return [tag("section", title, tag("ul", *items, class_="alarms"), aria_labelledby="alarms-title")]


def name_alarm(alarm: Alarm) -> str:
    """Return the name of an alarm in words."""
    return alarm.id.replace("_", " ")


def _write_alarm(alarm: Alarm) -> Markup:
    whose = "the whole store" if alarm.bandit is None else alarm.bandit
    since = "" if alarm.since is None else f", since {alarm.since:%Y-%m-%d %H:%M} UTC"
    return tag(
        "li",
        tag("b", f"{alarm.severity.capitalize()}: {name_alarm(alarm)}"),
        tag("p", f"{alarm.sentence[0].upper()}{alarm.sentence[1:]}."),
        tag("p", tag("b", "What to do: "), set_code(f"{alarm.remedy}.")),
        tag("small", f"{whose}{since}"),
        class_=alarm.severity,
    )
