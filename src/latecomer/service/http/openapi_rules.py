"""Adds to the schemas of msgspec the rules that types alone do not say."""

import inspect
from typing import Any

from latecomer.encoding.scales import MIN_DIM
from latecomer.encoding.spec import VERSION
from latecomer.policies.base.kernels import NORM_LIMIT
from latecomer.policies.base.limits import MOST as MAX_LIMITS
from latecomer.policies.base.randomisation import MAX_DRAWS
from latecomer.policies.base.reward import LARGEST_AMOUNT
from latecomer.policies.base.surrogates import MOST_STAGES, STAGE_NAME
from latecomer.policies.recommended import POLICY
from latecomer.policies.registry import policy_class, policy_names
from latecomer.service.bandit.spec_policies import NOT_PARAMETERS
from latecomer.service.bandit_spec import DEFAULT_POLICY
from latecomer.service.http.settings import Settings

Schema = dict[str, Any]

_LARGEST_DIM = 8192
_NULL = {"type": "null"}
_FACTOR = {"type": "number", "minimum": 0, "maximum": 1e9}
_ID = {"type": "string", "minLength": 1}
_LONGEST_WINDOW = {"s": 3_153_600_000, "m": 52_560_000, "h": 876_000, "d": 36_500, "w": 5_214}


def window_pattern() -> str:
    """Return the pattern of a window in time: at most 36500d in its unit, zeros before it allowed.

    >>> import re
    >>> [bool(re.search(window_pattern(), text)) for text in ("7d", "0036500d", "36501d", "5214w", "d", "7 d", "-1s")]
    [True, True, False, True, False, False, False]
    """
    units = (f"{_up_to(str(largest))}{unit}" for unit, largest in _LONGEST_WINDOW.items())
    return f"^0*(?:{'|'.join(units)})$"


def _up_to(largest: str) -> str:
    """Return a pattern of the whole numbers from 0 to `largest`, without zeros before them (0 itself as well)."""
    smaller = [f"[0-9]{{1,{len(largest) - 1}}}"] if len(largest) > 1 else []
    for place, digit in enumerate(largest):
        below = int(digit) - 1
        if below >= (place == 0):
            after = len(largest) - place - 1
            smaller.append(f"{largest[:place]}[{int(place == 0)}-{below}][0-9]{{{after}}}")
    return f"(?:{'|'.join([*smaller, largest])})"


_TIME = {"type": "string", "pattern": window_pattern(), "maxLength": 13}
PARAMETERS: dict[str, Schema] = {
    "ridge": {"type": "number", "minimum": 1e-12, "maximum": 1e12},
    "delta": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    "exploration": _FACTOR,
    "optimism": _FACTOR,
    "prior": _FACTOR,
    "shrinkage": {"type": "number", "minimum": 1, "maximum": 1e9},
    "context_discount": {"type": "number", "minimum": 0, "maximum": 1},
    "optimism_discount": {"type": "number", "minimum": 0, "maximum": 1},
    "final_exploration": _FACTOR,
    "false_alarms": {"type": "number", "minimum": 0, "maximum": 1},
    "half_life": {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 2**53}, _TIME]},
    "floor": {"type": "number", "minimum": 0, "maximum": 1},
    "ceiling": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
    "limits": {
        "type": "object",
        "propertyNames": {"minLength": 1},
        "maxProperties": MAX_LIMITS,
        "additionalProperties": {
            "type": "object",
            "properties": {key: {"type": "number", "minimum": 0, "maximum": 1} for key in ("floor", "ceiling")},
            "additionalProperties": False,
            "minProperties": 1,
        },
    },
    "draws": {"type": "integer", "minimum": 1, "maximum": MAX_DRAWS},
    "control": {
        "type": "object",
        "properties": {
            "share": {"type": "number", "minimum": 0, "exclusiveMaximum": 1},
            "policy": {"anyOf": [{"type": "integer", "minimum": 0, "exclusiveMaximum": 2**31}, _ID]},
        },
        "required": ["share", "policy"],
        "additionalProperties": False,
    },
    "guard": _FACTOR,
    "stages": {
        "type": "array",
        "items": {"type": "string", "pattern": f"^{STAGE_NAME.pattern}$"},
        "maxItems": MOST_STAGES,
        "uniqueItems": True,
    },
    "stage_prior": {"type": "number", "minimum": 1e-9, "maximum": 1e9},
    "seed": {"type": "integer", "minimum": 0, "exclusiveMaximum": 2**62},
    "width": {"type": "string", "enum": ["exact", "buffered", "tight", "variance"]},
    "beta": {"type": "string", "enum": ["heuristic", "conservative", "confidence"]},
}
"""Every parameter of every policy of the package."""
_ANY_PARAMETER: Schema = {"type": ["number", "string"]}
_SPANS = ("activation_timeout", "returns")
"""Fields in the unit of the window."""
DECISION_ID = "^w?[0-9a-f]+-[0-9a-f]+$"


def constrain(components: dict[str, Schema], settings: Settings) -> None:
    """Add the rules to the components of a document, with the limits of this server."""
    _constrain_spec(components["BanditSpec"], min(settings.max_dim, _LARGEST_DIM))
    challenger = components["ChallengerSpec"]
    challenger["allOf"] = _constrain_policy(challenger["properties"])
    challenger["properties"]["parameters"]["properties"]["control"] = False
    components["EncoderSpec"]["properties"]["version"] = {"const": VERSION, "default": VERSION}
    components["EncoderSpec"]["properties"]["dim"] |= {"minimum": 1, "maximum": _LARGEST_DIM}
    _constrain_decision(components, settings)
    times = {"type": "string", "format": "date-time", "pattern": "^(?!0000)"}
    for name in ("Conversion", "Correction", "Revocation", "StageReport"):
        components[name]["properties"]["occurred_at"]["anyOf"] = [times, _NULL]
    text: Schema = {"type": "string"}
    short = text | {"minLength": 1, "maxLength": 200}
    conversion = components["Conversion"]["properties"]
    conversion["value"]["anyOf"] = [{"type": "number", "minimum": 0, "maximum": LARGEST_AMOUNT}, _NULL]
    components["Correction"]["properties"]["value"] |= {"minimum": 0, "maximum": LARGEST_AMOUNT}
    conversion["subject"]["anyOf"] = conversion["conversion_id"]["anyOf"] = [short, _NULL]
    components["Revocation"]["properties"]["conversion_id"]["anyOf"] = [short, _NULL]
    components["Revocation"]["anyOf"] = [
        {"properties": {given: text}, "required": [given]} for given in ("decision_id", "conversion_id")
    ]
    components["Conversion"]["anyOf"] = [
        {"properties": {given: text, other: _NULL}, "required": [given]}
        for given, other in (("decision_id", "subject"), ("subject", "decision_id"))
    ]
    components["StageReport"]["properties"]["stage"] |= {"pattern": "^[A-Za-z0-9._-]{1,32}$"}
    components["DecisionAnswer"]["properties"]["decision_id"]["pattern"] = DECISION_ID
    ranking = {"type": "array", "items": {"type": "object"}, "description": "With k > 1: every position."}
    components["DecisionAnswer"]["properties"]["ranking"] = ranking


def _constrain_spec(spec: Schema, largest: int) -> None:
    fields = spec["properties"]
    fields["dim"] |= {"minimum": 1, "maximum": largest}
    rounds = {"type": "integer", "minimum": 0, "exclusiveMaximum": 2**62}
    fields["window"] = {"anyOf": [rounds, _TIME]}
    fields["grace"] = {"anyOf": [_TIME, _NULL], "default": None}
    fields["activation_timeout"] = {"anyOf": [rounds, _TIME, _NULL], "default": None}
    fields["returns"] = {"anyOf": [rounds, _TIME, _NULL], "default": None}
    spec["allOf"] = [
        {
            "if": {"properties": {"features": {"minProperties": 1}}, "required": ["features"]},
            "then": {"properties": {"dim": {"minimum": MIN_DIM}, "encoder": _NULL}},
        },
        {
            "if": {"properties": {"window": {"type": "integer"}}},
            "then": {"properties": {"grace": _NULL, **{name: {"type": ["integer", "null"]} for name in _SPANS}}},
            "else": {"properties": {name: {"type": ["string", "null"]} for name in _SPANS}},
        },
        *_constrain_policy(fields),
        {  # a challenger has no control beside it
            "anyOf": [
                {"properties": {"challenger": _NULL}},
                {"properties": {"parameters": {"properties": {"control": _NULL}}}},
            ]
        },
    ]


def _constrain_policy(fields: Schema) -> list[Schema]:
    """Name the policies and their parameters; return the rules that say which policy does not take which."""
    policies = [DEFAULT_POLICY, *policy_names()]
    fields["policy"]["enum"] = policies
    parameters = dict.fromkeys(set().union(*map(_parameters_of, policies)), _ANY_PARAMETER) | PARAMETERS
    fields["parameters"] |= {"properties": parameters, "additionalProperties": False}
    takers: dict[str, list[str]] = {}
    for policy in policies:
        for absent in sorted(parameters.keys() - _parameters_of(policy)):
            takers.setdefault(absent, []).append(policy)
    groups: dict[tuple[str, ...], list[str]] = {}
    for absent, names in takers.items():
        groups.setdefault(tuple(names), []).append(absent)
    return [_without(absent, names) for names, absent in groups.items()]


def _parameters_of(policy: str) -> set[str]:
    signature = inspect.signature(policy_class(POLICY if policy == DEFAULT_POLICY else policy))
    return set(signature.parameters) - set(NOT_PARAMETERS)


def _without(parameters: list[str], policies: tuple[str, ...]) -> Schema:
    """Say that these policies do not take the parameters; a specification without a policy is of the default one."""
    given: Schema = {"properties": {"policy": {"enum": list(policies)}}}
    if DEFAULT_POLICY not in policies:
        given["required"] = ["policy"]
    return {"if": given, "then": {"properties": {"parameters": {"properties": dict.fromkeys(parameters, False)}}}}


def _constrain_decision(components: dict[str, Schema], settings: Settings) -> None:
    """Say that a decision has rows of numbers, or actions described by features, or those of the catalogue."""
    request = components["DecisionRequest"]
    fields = request.pop("properties")
    closed = request.pop("additionalProperties")
    row = {
        "type": "array",
        "items": {"type": "number", "minimum": -NORM_LIMIT, "maximum": NORM_LIMIT},
        "minItems": 1,
        "maxItems": min(settings.max_dim, _LARGEST_DIM),
    }
    described = {"$ref": "#/components/schemas/DescribedAction"}
    some = {"minItems": 1, "maxItems": settings.max_actions}
    ids = {"anyOf": [fields["ids"]["anyOf"][0] | some, _NULL], "default": None}
    sent = fields | {"candidates": _NULL, "search": {"const": "exact"}}
    forms = (
        ("Vectors", sent | {"actions": {"type": "array", "items": row, **some}, "ids": ids, "context": _NULL}),
        ("Features", sent | {"actions": {"type": "array", "items": described, **some}, "ids": _NULL}),
        ("Catalogue", fields | {"actions": _NULL, "ids": _NULL, "pin": _NULL, "exclude": fields["candidates"]}),
    )
    components["CatalogueAction"]["anyOf"] = [
        {"properties": {"vector": row, "features": _NULL}, "required": ["vector"]},
        {"properties": {"vector": _NULL, "features": {"type": "object"}}, "required": ["features"]},
    ]
    del request["type"]
    request["anyOf"] = [
        {
            "title": title,
            "type": "object",
            "properties": properties,
            "required": [] if title == "Catalogue" else ["actions"],
            "additionalProperties": closed,
        }
        for title, properties in forms
    ]
