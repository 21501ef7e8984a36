"""A server with small limits, its document, and the rules that no schema can say."""

import re
from typing import Any

from latecomer.service.http.settings import read_settings

LIMITS: dict[str, Any] = {"LATECOMER_MAX_DIM": "3", "LATECOMER_MAX_BANDITS": "1", "LATECOMER_MAX_ACTIONS": "4"}
SETTINGS = read_settings(environment=LIMITS, given={})
MADE: dict[str, Any] = {"dim": 3, "window": 100, "features": {"price": {"scale": 9}}}

_BEYOND_A_SCHEMA = (
    r"actions must have 3 columns, one per dimension",  # it knows no bandit
    r"actions must have norm at most 1",  # it does not add up squares
    r"the catalogue has no actions",  # it does not know what was put
    r"(candidates|withdraw|actions): an id must be",
    r"candidates must be (in the catalogue|at least one id)",
    r"exclude must (leave at least one|be left out)",
    r"context is for a catalogue",
    r'search="approximate" needs',
    r"action \d+: actions must have 3 columns",
    r"actions must (all be vectors|have different ids|have (vectors|features), as|be at least one where)",
    r"withdraw must not have ids that are put",
    r"k must be at most \d+, the actions",
    r"examination must be \d+ numbers",
    r"deferred must be left out where k",
    r"ids must be one for each of the \d+ actions",  # it does not compare lengths
    r"(context|action \d+): .* must have a declared scale",  # it does not know what was declared
    r"(context|action \d+): .* must be a number, as declared",
    r"encoder must have the bandit's dim",  # it compares no fields
    r"encoder: (context|actions|interactions|scales|dim|'.*') must",
    r"Expected `int( \| (str|null))*`, got `float`",  # to it, 1e7 is a whole number
    r"parameters: seed must be a whole number of at least 0; got [0-9.]+(e\+[0-9]+)?:",
    r"parameters: limits: (the floors|'.*': floor must be at most)",  # it adds and compares no numbers
    r"parameters: half_life (must be|is for)",  # it does not compare units, nor know which policies forget
    r"occurred_at of report \d+ must not lie more than a day ahead",  # it has no clock
    r"value of (conversion|correction) \d+ must be in \[0, 1\]",  # it knows no bandit
    r"both policies must know the probability of each choice",  # it does not know which do
    r"unit must be left out where the reward has a scale",  # it compares no fields
    r"actions must be one for each of \d+ decisions",
    r"actions must be a \(K, 3\) array",
    r"decided_at must be in the order of time",
    r"times must not lie in the future",
    r"first_round must be given after the first batch",
    r"summaries must be \d+ rows of \d+ numbers",
    r"conversions must (have as many decisions, times and values|be of decisions 1 to)",
    r"there may be at most 1 bandits",
    r"confirm must repeat the bandit's name",
    r"(from|to) must be ",  # it does not read times
    r"decision_id must be that of a decision in the log",
    r"request_id must (stand in the body, where that is JSON|equal Idempotency-Key)",
    r"a bandit has at most 16 stages",
    r"the body must be a file as numpy.save writes it",
)


def is_beyond_a_schema(message: str) -> bool:
    """Tell if a refusal is for a reason that the document could not have said."""
    return any(re.match(rule, message.removeprefix("challenger: ")) for rule in _BEYOND_A_SCHEMA)
