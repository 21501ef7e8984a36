"""Rows of declared features, straight from the description, one term at a time, in dictionaries of named terms."""

import math
from collections.abc import Mapping
from typing import Any

from feature_oracle import mix, number_of

from latecomer.encoding.spec import EncoderSpec

MODULUS = 1 << 64


def slow_values(feature: Any, value: Any) -> list[tuple[str | None, float]]:
    """The texts of a value (None for a number), with their weights; all of them for a hashed feature."""
    if value is None:
        return []
    kind = type(feature).__name__
    if kind == "NumberFeature":
        return [(None, min(1.0, max(-1.0, (value - feature.center) / feature.scale)))]
    if type(value) is bool:
        value = "true" if value else "false"
    if type(value) in (int, float):
        value = str(int(value)) if value == int(value) else str(value)
    texts = sorted({value} if type(value) is str else set(value))
    known = texts if kind == "HashedFeature" else [text for text in texts if text in feature.levels]
    return [(text, 1 / math.sqrt(len(texts))) for text in known]


def slow_columns(spec: EncoderSpec) -> tuple[dict[tuple[Any, ...], int], int]:
    """The column of every term that has its own, by (name, text) or both of a pair, and the first hashed column."""
    features: dict[str, Any] = {feature.name: feature for feature in [*(spec.context or []), *(spec.actions or [])]}
    pairs = slow_pairs(spec)
    levels: dict[str, list[str | None] | None] = {}
    for name, feature in features.items():
        kind = type(feature).__name__
        levels[name] = [None] if kind == "NumberFeature" else list(feature.levels) if kind == "OneHotFeature" else None
    columns: dict[tuple[Any, ...], int] = {}
    for name, known in levels.items():
        for text in known or []:
            columns[name, text] = 1 + len(columns)
    sizes = {(one, other): len(levels[one] or []) * len(levels[other] or []) for one, other in pairs}  # 0: no end
    everything = 1 + len(columns) + sum(sizes.values())
    fits = everything <= spec.dim and 0 not in sizes.values() and None not in levels.values()
    limit = spec.dim if fits else spec.dim // 2
    for one, other in sorted(pairs, key=lambda pair: (sizes[pair], pair)):
        if sizes[one, other] and 1 + len(columns) + sizes[one, other] <= limit:
            for left in levels[one] or []:
                for right in levels[other] or []:
                    columns[one, left, other, right] = 1 + len(columns)
    return columns, 1 + len(columns)


def slow_pairs(spec: EncoderSpec) -> list[tuple[str, str]]:
    if spec.interactions is not None:
        return [(one, other) for one, other in spec.interactions]
    return [(one.name, other.name) for one in spec.context or [] for other in spec.actions or []]


def slow_encoded_row(spec: EncoderSpec, context: Mapping[str, Any], action: Mapping[str, Any]) -> list[float]:
    columns, start = slow_columns(spec)
    row = [1.0] + [0.0] * (spec.dim - 1)
    terms: dict[str, list[tuple[str | None, int, float]]] = {}
    for side, features, values in (("c", spec.context, context), ("a", spec.actions, action)):
        for feature in features or []:
            terms[feature.name] = [
                (text, number_of(side + feature.name + ("" if text is None else "\0" + text)), weight)
                for text, weight in slow_values(feature, values.get(feature.name))
            ]
    found: list[tuple[tuple[Any, ...], int, float]] = []
    for name, own in terms.items():
        found += [((name, text), number, weight) for text, number, weight in own]
    for one, other in slow_pairs(spec):
        for left, h, w in terms[one]:
            for right, g, v in terms[other]:
                found.append(((one, left, other, right), mix((h + 0x9E3779B97F4A7C15 * g) % MODULUS), w * v))
    for key, number, weight in found:
        if key in columns:
            row[columns[key]] += weight
            continue
        others = spec.dim - start
        first = ((number >> 2) % 2**31) % others
        second = (first + 1 + (number >> 33) % (others - 1)) % others
        row[start + first] += weight / math.sqrt(2) * (-1 if number % 2 else 1)
        row[start + second] += weight / math.sqrt(2) * (-1 if number // 2 % 2 else 1)
    divisor = max(math.sqrt(1 + len(terms) + len(slow_pairs(spec))), math.hypot(*row))
    return [entry / divisor for entry in row]
