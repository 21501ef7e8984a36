"""The delay law from conversions alone, as they come: O(1) a conversion, O(m) a question, and 16 bytes an open one.

Time is cut into ticks: a round, or `unit` of a clock. A conversion's delay is the tick in which it came less the tick
of its decision. Only ticks that are over count, for in those every conversion has been seen; so a decision of tick s
has been watched up to R = min(m, now − 1 − s), which grows from tick to tick until it is m. Hence

    n_j = #{D <= j} − #{R < j},

where the first is a histogram, and the second concerns the conversions of decisions less than m old, which are kept
one by one. Neither changes when time passes; decisions that have closed are dropped now and then.
"""

from array import array
from collections.abc import Mapping
from typing import Any, NoReturn, Self, overload

import numpy as np
import numpy.typing as npt

from latecomer.delays.distribution import Delays, Floats
from latecomer.delays.estimation.bands import DEFAULT_BAND, Band
from latecomer.delays.estimation.curve import DelayCurve
from latecomer.delays.laws.empirical import Empirical
from latecomer.errors import InputError
from latecomer.validation import check_integer, check_number, check_positive

_LARGEST = 10_000_000
_FEW = 1024  # open conversions, below which none is dropped
_KEYS = ("window", "unit", "prior", "now", "delays", "open", "fresh")


class DelayEstimate:
    """F_m, the law of the delay given that it is within the window, from conversions alone.

    Parameters
    ----------
    window
        m, in the measure of the stamps: rounds, or seconds, or any other. Longer delays are left out.
    unit
        How much of that measure makes a tick: 1 for rounds; for a clock, 1/500 of the window is fine enough. Delays
        are known to the tick, so F_m(age) is off by what comes within one tick of the age.
    prior
        c, the weight of the prior (a uniform delay) on each tick's reverse hazard, in conversions.

    Examples
    --------
    >>> from latecomer import delays
    >>> estimate = delays.DelayEstimate(window=3)
    >>> for decided, converted in [(1, 1), (2, 3), (1, 3), (5, 5), (4, 7)]:
    ...     seen = estimate.add(decided, converted)
    >>> estimate.advance(9)  # round 9 is being decided: what came up to round 8 has been seen
    >>> estimate.delays  # of each delay from 0 to 3
    array([2, 1, 1, 1])
    >>> estimate.cdf().round(3)
    array([0.363, 0.581, 0.792, 1.   ])
    >>> round(estimate.maturity(2), 3)
    0.792

    A clock: stamps in seconds, a week in ticks of a quarter of an hour.

    >>> weekly = delays.DelayEstimate(window=7 * 86_400, unit=900)
    >>> weekly.add(1_700_000_000.0, 1_700_050_000.0)
    True
    """

    def __init__(self, window: float, *, unit: float = 1, prior: float = 1.0) -> None:
        self.window, self.unit, self.prior = window, unit, check_positive("prior", prior)
        if not check_number("window", window, "a number of at least 0") >= 0.0:
            raise InputError(f"window must be at least 0; got {window!r}", field="window")
        ticks = -(-window // check_positive("unit", unit))
        if not ticks <= _LARGEST:
            raise InputError(
                f"window must be at most {_LARGEST:,} ticks of unit; got {ticks:,.0f}: choose a longer unit",
                field="window",
            )
        self._delays = np.zeros(int(ticks) + 1, np.int64)
        self._starts, self._waits = array("q"), array("q")  # decision ticks and delays of conversions that may be open
        self._most = _FEW
        self._fresh: list[int] = []  # ticks of the decisions whose conversions came in the tick that is not over
        self._now: int | None = None

    def add(self, decided: float, converted: float) -> bool:
        """Add a conversion, once. True where it is within the window; otherwise only the time has changed."""
        start, end = self._tick("decided", decided), self._tick("converted", converted)
        if converted < decided:
            raise InputError(
                f"converted must not lie before decided, {decided!r}; got {converted!r}", field="converted"
            )
        self.advance(converted)
        if converted - decided > self.window:
            return False
        if end == self._now:
            self._fresh.append(start)
        else:
            self._count(start, end)
        return True

    def advance(self, now: float) -> None:
        """Set the time to `now`: earlier ticks are over. An earlier `now` than the latest changes nothing."""
        tick = self._tick("now", now)
        if self._now is None:
            self._now = tick
        if tick <= self._now:
            return
        before, self._now = self._now, tick
        for start in self._fresh:
            self._count(start, before)
        self._fresh.clear()

    def curve(self) -> DelayCurve:
        """The delay curve of the counts: `cdf`, `confidence_band`, and the counts themselves."""
        size, (starts, waits) = len(self._delays), self._keep_open()
        by_age = np.bincount(self._over - starts, minlength=size)
        younger = np.concatenate([[0], np.cumsum(by_age)[:-1]])  # #{R < j}
        return DelayCurve(
            ends=np.arange(1.0, size + 1.0),
            events=self._delays.copy(),
            at_risk=np.cumsum(self._delays) - younger,
            prior=self.prior,
            closed=self._delays - np.bincount(waits, minlength=size),
        )

    def cdf(self) -> Floats:
        """F_m at every delay from 0 to m ticks; the last is 1."""
        return self.curve().cdf

    @overload
    def maturity(self, age: float) -> float: ...
    @overload
    def maturity(self, age: npt.NDArray[Any] | list[int] | list[float]) -> Floats: ...
    def maturity(self, age: npt.ArrayLike) -> float | Floats:
        """F_m(age): of the conversions that come within the window, the share that has come by an age."""
        ticks = np.floor_divide(np.asarray(age, np.float64), self.unit)
        if np.isnan(ticks).any():
            raise InputError(f"age must be a number, or an array of numbers; got {age!r}", field="age")
        shares = self.cdf()[np.clip(ticks, 0, len(self._delays) - 1).astype(np.int64)]
        matured = np.where(ticks < 0, 0.0, shares)
        return matured if matured.ndim else float(matured)

    def confidence_band(self, level: float = 0.9, *, band: Band = DEFAULT_BAND) -> tuple[Floats, Floats]:
        """The band of F_m at every delay from 0 to m ticks, as in `DelayCurve.confidence_band`."""
        return self.curve().confidence_band(level, band=band)

    def law(self) -> Empirical:
        """The estimate as a delay law in ticks, to simulate with; conversions beyond the window are not in it."""
        return Empirical(np.arange(len(self._delays)), np.diff(self.cdf(), prepend=0.0))

    @property
    def delays(self) -> Delays:
        """The number of conversions with each delay, from 0 to m ticks; those of the current tick are not in it yet."""
        return self._delays.copy()

    @property
    def conversions(self) -> int:
        """The number of conversions that were added, those of the current tick among them."""
        return int(self._delays.sum()) + len(self._fresh)

    def tau(self) -> NoReturn:
        """Raise `NotIdentifiableError`: τ_m does not follow from conversions alone."""
        self.curve().tau()

    def to_dict(self) -> dict[str, object]:
        """Return the whole state as plain data: `from_dict` continues from it."""
        pairs = [list(pair) for pair in zip(*(values.tolist() for values in self._keep_open()), strict=True)]
        lists = {"delays": self._delays.tolist(), "open": pairs, "fresh": list(self._fresh)}
        return {"window": self.window, "unit": self.unit, "prior": self.prior, "now": self._now, **lists}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Make an estimate from what `to_dict` gave."""
        if not isinstance(data, Mapping) or set(data) != set(_KEYS):
            raise InputError(
                f"data must be what to_dict gave, with {', '.join(_KEYS)}; got {data!r:.200}", field="data"
            )
        made = cls(data["window"], unit=data["unit"], prior=data["prior"])
        counts = _counts("delays", data["delays"])
        if len(counts) != len(made._delays):
            raise InputError(
                f"delays must have {len(made._delays)} counts, as the window has ticks; got {len(counts)}",
                field="delays",
            )
        made._delays[:] = counts
        made._fresh = _counts("fresh", data["fresh"], least=-(2**62))
        made._now = None if data["now"] is None else check_integer("now", data["now"], least=-(2**62))
        if made._now is None and made.conversions:
            raise InputError("now must be a tick where there are conversions; got None", field="now")
        made._restore_open(data["open"])
        return made

    def _restore_open(self, pairs: object) -> None:
        """Take the open conversions from `to_dict`; each must be among the delays, and over."""
        if not isinstance(pairs, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
            raise InputError(f"open must be a list of pairs of a tick and a delay; got {pairs!r:.200}", field="open")
        starts = _counts("open", [pair[0] for pair in pairs], least=-(2**62))
        waits = _counts("open", [pair[1] for pair in pairs])
        size = len(self._delays)
        late = [i for i, wait in enumerate(waits) if wait >= size or starts[i] + wait > self._over]
        if late or (np.bincount(np.array(waits, np.int64), minlength=size) > self._delays).any():
            raise InputError(
                f"open must hold conversions that are counted in delays, up to tick {self._over}; got "
                f"{pairs[late[0]] if late else pairs!r:.200}",
                field="open",
            )
        self._starts, self._waits = array("q", starts), array("q", waits)

    @property
    def _over(self) -> int:
        """The last tick that is over."""
        return -1 if self._now is None else self._now - 1

    def _count(self, start: int, end: int) -> None:
        """Count a conversion of a tick that is over."""
        self._delays[end - start] += 1
        if self._over - start >= len(self._delays) - 1:
            return
        self._starts.append(start)
        self._waits.append(end - start)
        if len(self._starts) > self._most:
            self._most = _FEW + 2 * len(self._keep_open()[0])

    def _keep_open(self) -> tuple[Delays, Delays]:
        """Drop the conversions of decisions that have closed; return the ticks and the delays of the others."""
        starts, waits = np.array(self._starts, np.int64), np.array(self._waits, np.int64)
        is_open = self._over - starts < len(self._delays) - 1
        if not is_open.all():
            starts, waits = starts[is_open], waits[is_open]
            self._starts, self._waits = array("q", starts.tobytes()), array("q", waits.tobytes())
        return starts, waits

    def _tick(self, name: str, stamp: float) -> int:
        value = check_number(name, stamp, "a finite number")
        if not abs(value / self.unit) < 2**62:
            raise InputError(f"{name} must be a finite number; got {stamp!r}", field=name)
        return int(stamp // self.unit)


def _counts(name: str, values: object, *, least: int = 0) -> list[int]:
    if not isinstance(values, list):
        raise InputError(f"{name} must be a list of whole numbers; got {values!r:.200}", field=name)
    return [check_integer(f"{name}[{i}]", value, least=least) for i, value in enumerate(values)]
