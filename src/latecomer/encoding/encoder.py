"""`latecomer.Encoder`: features of context and actions as rows of norm at most 1."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import msgspec

from latecomer.atomic_write import replace_file
from latecomer.core.state import Array
from latecomer.encoding.declarations import Declarations, Unfitted, parse_declarations, parse_interactions
from latecomer.encoding.fitting import fit_features
from latecomer.encoding.layout import list_pairs
from latecomer.encoding.rows import DeclaredRows, Rows, make_rows
from latecomer.encoding.scales import parse_scales
from latecomer.encoding.spec import EncoderSpec, Feature
from latecomer.encoding.spec_checks import check_spec, read_spec
from latecomer.encoding.table import Table, is_frame, read_columns, read_rows
from latecomer.encoding.values import FeatureRow
from latecomer.errors import DamagedFileError, InputError
from latecomer.extras import explain_missing_package
from latecomer.validation import check_integer, short_repr

if TYPE_CHECKING:
    import polars as pl

    from latecomer.encoding.explanation import LinearModel


class Encoder:
    """Rows of numbers of norm at most 1 from features: names with values.

    A row has a constant, the features of context and action, and products. Numbers are scaled and clipped to [-1, 1],
    categories one-hot or hashed; docs/how-to/features.md has the rules. An encoder that is used with a policy never
    changes: it is fitted once, or declared completely.

    Parameters
    ----------
    dim
        d, the number of columns; `latecomer.advise_dim` advises one.
    context, actions
        Names of the features of either side; or a dict, {name: declaration}: a scale such as {"scale": 200, "center":
        0}, a list of levels, "number", "one-hot", "hashed", or None. `fit` learns what is not declared. With neither,
        any name is a feature, and all are hashed: no fit is needed.
    interactions
        Pairs of names to multiply: one of the context with one of the action, or two of the action. By default every
        feature of the context with every one of the action.
    scales
        The scales of numbers, where neither `context` nor `actions` are given.

    Examples
    --------
    >>> encoder = Encoder(dim=8, context=["country"], actions={"price": {"scale": 200}})
    >>> encoder.fit([{"country": "NO", "price": 12}, {"country": "SE", "price": 150}])
    Encoder(dim=8, context=['country'], actions=['price'])
    >>> encoder.encode({"country": "NO"}, [{"price": 12}, {"price": 150}]).shape
    (2, 8)
    """

    def __init__(
        self,
        dim: int,
        *,
        context: Declarations = None,
        actions: Declarations = None,
        interactions: Sequence[tuple[str, str]] | None = None,
        scales: Mapping[str, Any] | None = None,
    ) -> None:
        self._dim = check_integer("dim", dim, least=1)
        is_open = context is None and actions is None
        self._context = parse_declarations(context, "context")
        self._actions = parse_declarations(actions, "actions")
        names = {
            "context": [feature.name for feature in self._context],
            "actions": [feature.name for feature in self._actions],
        }
        shared = sorted(set(names["context"]) & set(names["actions"]))
        if shared:
            raise InputError(
                f"context and actions must have different names; got {short_repr(shared[0])} in both: rename one",
                field="actions",
            )
        self._interactions = None if is_open and interactions is None else parse_interactions(interactions, **names)
        self._scales, self._is_open, self._is_fitted = parse_scales(scales), is_open, False
        self._rows: Rows | None = None
        if not any(isinstance(feature, Unfitted) for feature in (*self._context, *self._actions)):
            self._finish(self._context, self._actions)

    def _finish(self, context: Sequence[Any], actions: Sequence[Any]) -> None:
        """Compile the specification; nothing has changed where it is refused."""
        spec = EncoderSpec(
            dim=self._dim,
            context=None if self._is_open else list(context),
            actions=None if self._is_open else list(actions),
            interactions=self._interactions,
            scales=self._scales,
        )
        self._rows = make_rows(check_spec(spec))
        self._spec = spec

    # ---- readings ----

    @property
    def dim(self) -> int:
        """d, the number of columns."""
        return self._dim

    @property
    def spec(self) -> EncoderSpec:
        """The specification, complete; `InputError` before `fit`."""
        self._get_rows()
        return self._spec

    def __repr__(self) -> str:
        sides = "" if self._is_open else f", context={self._names(self._context)}, actions={self._names(self._actions)}"
        return f"Encoder(dim={self._dim}{sides})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Encoder) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    @staticmethod
    def _names(features: Sequence[Feature | Unfitted]) -> list[str]:
        return [feature.name for feature in features]

    def _get_rows(self) -> Rows:
        if self._rows is None:
            unknown = [f.name for f in (*self._context, *self._actions) if isinstance(f, Unfitted)]
            raise InputError(
                f"the encoder must know the scales and levels of {', '.join(unknown)}: call fit(sample), or declare "
                f'them, such as {{{short_repr(unknown[0])}: {{"scale": the size that it seldom exceeds}}}}'
            )
        return self._rows

    # ---- fitting and encoding ----

    def fit(self, sample: Table, *, actions: Table | None = None) -> Self:
        """Learn scales and levels from a sample, once; return the encoder.

        Parameters
        ----------
        sample
            Rows with the features of context and action together, such as a log of decisions: a frame of polars or
            pandas, a table with an Arrow interface, or a list of dicts. Other columns are ignored.
        actions
            A table of actions, where `sample` has contexts alone.
        """
        if self._is_fitted or self._is_open:
            state = "hashes any name, and has nothing to learn" if self._is_open else "has been fitted"
            raise InputError(
                f"the encoder {state}: make a new one, with a new policy; one that has learnt in the old scales would "
                "take rows of new ones for something else"
            )
        names, action_names = self._names(self._context), self._names(self._actions)
        if actions is None:
            columns, _ = read_columns(sample, [*names, *action_names], where="sample")
        else:
            columns, _ = read_columns(sample, names, where="sample")
            columns |= read_columns(actions, action_names, where="actions")[0]
        pairs = list_pairs(self._interactions, self._context, self._actions)
        fitted = fit_features([*self._context, *self._actions], columns, dim=self._dim, pairs=pairs)
        context, acting = [fitted[name] for name in names], [fitted[name] for name in action_names]
        self._finish(context, acting)
        self._context, self._actions, self._is_fitted = [*context], [*acting], True
        return self

    def encode(self, context: FeatureRow | None, actions: Table) -> Array:
        """Return a row of norm at most 1 for each action: a (K, d) array.

        Parameters
        ----------
        context
            Features of the decision, which all actions share: a dict, or a row of a DataFrame.
        actions
            Features of each action: a list of dicts or of rows, {id: features}, or a table. NumPy's scalars are taken.
            Columns of a table that are no features are ignored; another name in a dict is refused.
        """
        rows, around = self._get_rows(), {} if context is None else context
        if is_frame(actions) and isinstance(rows, DeclaredRows):
            columns, count = read_columns(actions, self._names(self._actions), where="actions")
            return rows.encode_table(columns, count, around)
        return rows.encode(around, read_rows(actions, where="actions"))

    def encode_frame(self, frame: Table) -> Array:
        """Return a row for each row of a table that has the features of context and action: a log, of one action each.

        The bits are those of `encode`. A million rows of five features on each side take some seconds.
        """
        rows = self._get_rows()
        if not isinstance(rows, DeclaredRows):
            raise InputError(
                "encode_frame needs an encoder that declares the names of its features: context and actions"
            )
        columns, count = read_columns(frame, [*self._names(self._context), *self._names(self._actions)], where="frame")
        return rows.encode_table(columns, count)

    # ---- explanations ----

    def explain(self, policy: "LinearModel", *, confidence: float = 0.9) -> "pl.DataFrame":
        """Return the weight of every term in θ̂, the largest first, with an interval.

        `weight` is what the term adds to an action's score; of a number, what a step of the size `step` adds. Terms
        that share columns with others, being hashed, have them counted in `shares`: their weights are mixed up with
        those of others. `low` and `high` take θ̂ as Gaussian around its mean, with the policy's covariance.
        """
        with explain_missing_package("Encoder.explain"):
            from latecomer.encoding.explanation import explain  # noqa: PLC0415 - it takes polars

        return explain(self.spec, policy, confidence=confidence)

    def collisions(self) -> "pl.DataFrame":
        """Return the terms that share columns with others: `term`, `columns`, how many `shares`, and `inseparable`.

        Those of `inseparable` have the same columns, and no number of decisions tells them apart. Hashed levels are
        those that `fit` remembers.
        """
        with explain_missing_package("Encoder.collisions"):
            from latecomer.encoding.explanation import find_collisions  # noqa: PLC0415 - it takes polars

        return find_collisions(self.spec)

    # ---- files ----

    def to_dict(self) -> dict[str, Any]:
        """Return the encoder as plain data, for JSON."""
        found: dict[str, Any] = msgspec.to_builtins(self.spec)
        return found

    @classmethod
    def from_dict(cls, data: Mapping[str, Any] | EncoderSpec) -> Self:
        """Return the encoder whose `to_dict` gave `data`."""
        spec = read_spec(data)
        encoder = cls.__new__(cls)
        encoder._dim, encoder._is_open, encoder._is_fitted = spec.dim, spec.is_open, True
        encoder._context, encoder._actions = [*(spec.context or ())], [*(spec.actions or ())]
        encoder._interactions, encoder._scales = spec.interactions, spec.scales
        encoder._rows, encoder._spec = make_rows(spec), spec
        return encoder

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the encoder to a file of JSON, atomically; `Encoder.load` reads it, and `policy.save` keeps it too."""
        data = msgspec.json.format(msgspec.json.encode(self.spec), indent=1)
        with replace_file(Path(os.path.realpath(path))) as temporary:
            temporary.write_bytes(data)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the encoder that was saved at `path`; `DamagedFileError` or `NewerFileError` where it cannot be."""
        try:
            return cls.from_dict(msgspec.json.decode(Path(path).read_bytes()))
        except (msgspec.DecodeError, InputError) as error:
            raise DamagedFileError(
                f"{os.fspath(path)} is not a whole encoder: {error}; restore it from a copy"
            ) from None


def check_encoder(encoder: object, dim: int) -> Encoder:
    """Return a fitted encoder for policies of this dimension."""
    if not isinstance(encoder, Encoder):
        raise InputError(f"encoder must be a latecomer.Encoder; got {short_repr(encoder)}", field="encoder")
    if encoder.spec.dim != dim:
        raise InputError(f"encoder must have the policy's dim, {dim}; got {encoder.dim}", field="encoder")
    return encoder


def read_encoder(given: Encoder | EncoderSpec | Mapping[str, Any]) -> EncoderSpec:
    """Return the specification of an encoder, or of its dict."""
    return given.spec if isinstance(given, Encoder) else read_spec(given)
