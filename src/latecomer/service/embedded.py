"""A bandit in this process: the same policies, log and verdicts as the server's, without a server."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latecomer.durations import Duration, Span
from latecomer.encoding.encoder import Encoder, read_encoder
from latecomer.encoding.scales import parse_scales
from latecomer.errors import InputError, UnknownBanditError
from latecomer.extras import require_packages
from latecomer.policies.base.subjects import Attribution
from latecomer.service.bandit.descriptor import check_name, check_policy
from latecomer.service.bandit_spec import (
    DEFAULT_POLICY,
    BanditSpec,
    parse_challenger,
    parse_reward_spec,
    parse_unit,
    to_plain,
)
from latecomer.service.durations import format_grace, format_window, parse_retention
from latecomer.service.open_bandit import OpenBandit
from latecomer.service.storage.clock import Clocks
from latecomer.service.storage.creation import check_not_lost, check_path
from latecomer.service.storage.postgres.address import hide_secrets, is_address
from latecomer.service.store import Store
from latecomer.validation import check_flag, short_repr, to_plain_text

if TYPE_CHECKING:
    from latecomer.service.blocking_store import BlockingStore


def open(
    path: str | os.PathLike[str],
    *,
    name: str = "default",
    dim: int | None = None,
    window: Span | None = None,
    policy: str = DEFAULT_POLICY,
    parameters: Mapping[str, Any] | None = None,
    features: Mapping[str, Any] | None = None,
    encoder: Encoder | Mapping[str, Any] | None = None,
    log_offers: bool = True,
    unit: Mapping[str, Any] | None = None,
    grace: Duration | None = None,
    activation_timeout: Span | None = None,
    attribution: Attribution = "last",
    reward: Mapping[str, Any] | str | None = None,
    returns: Span | None = None,
    challenger: Mapping[str, Any] | None = None,
    retention: str | None = None,
    clock: Clocks | None = None,
    create: bool = False,
) -> OpenBandit:
    """Open a bandit in a file, or on PostgreSQL; create it if need be.

    Parameters
    ----------
    path
        The file, which one process owns at a time; or the address of a database, "postgresql://user@host/name", which
        any number of processes share.
    name
        The bandit's name; a store may have several bandits.
    dim, window
        To create it: d, and the window in rounds (an int) or time ("7d", or a timedelta). An existing bandit
        needs neither, and is refused where they differ from its own.
    policy, parameters
        The policy's class and its keyword arguments.
    features
        The scales of numbers, for `decide_features`: {"price": {"scale": 200}, "age": {"center": 40, "scale": 30}}.
    encoder
        The encoder of `decide_features`, in place of `features`; `dim` is then its own.
    log_offers
        Whether the log gets the whole offer of each decision, which evaluating another policy needs.
    unit
        The unit of values in reports: {"name": "EUR", "scale": 250}, where a conversion of value 1 is worth 250 EUR.
    grace
        Where the window is a time: how long after it a conversion that occurred inside it may be reported; None is
        "1d", "0s" none.
    activation_timeout
        How long a deferred decision waits for its activation, in the unit of the window; None is as long as the window.
    attribution
        The decisions that a conversion of a subject is credited to: the "last" of those in the window, the "first", or
        "all" of them.
    reward
        {"scale": 200, "unit": "EUR", "aggregate": "sum"}: conversions have amounts, of which the "first", the "sum" or
        the "max" counts, and the scale at most. None is "binary": values in [0, 1], of which the first counts.
    returns
        In the unit of the window: how long after it a credited value can be taken back. None is "90d" or ten windows
        where conversions have amounts, and else as long as the grace.
    challenger
        {"policy": "LinUCB", "parameters": {}, "share": 0.1}: a second policy that makes a share of the decisions; both
        learn from all of them, and `stats` compares them.
    retention
        How long after its window a decision stays in the log, as "7d" or "forever"; the file keeps it. None: as it was
        set last, "7d" where it never was.
    clock
        The machine's clocks, where they are not this machine's own. On a database, the time is the database's.
    create
        Whether an empty file is created also where there was one before that is missing now; otherwise that is refused.
        On a database, whether its tables are created where there are none.

    Examples
    --------
    >>> import tempfile, latecomer as lc
    >>> with tempfile.TemporaryDirectory() as folder, lc.open(f"{folder}/shop.db", dim=2, window="7d") as bandit:
    ...     answer = bandit.decide([[1.0, 0.0], [0.0, 1.0]])
    ...     bandit.convert(answer.decision_id).name, bandit.convert(answer.decision_id).name
    ('ACCEPTED', 'DUPLICATE')
    """
    encoding = None if encoder is None else read_encoder(encoder)
    if dim is None and encoding is not None:
        dim = encoding.dim
    if (dim is None) != (window is None):
        raise InputError(f"dim and window go together; got dim={dim!r} and window={window!r}")
    if retention is not None:
        parse_retention(retention)
        retention = to_plain_text(retention)
    create = check_flag("create", create)
    address = os.fspath(path) if is_address(path) else None
    if dim is None and address is None and not Path(path).exists():
        check_path(real := Path(os.path.realpath(path)))
        check_not_lost(real)
        raise UnknownBanditError(f"{os.fspath(path)} is not there: give dim and window, and it is made")
    spec = None
    if dim is not None and window is not None:
        name = check_name(name)
        plain: dict[str, Any] = {
            "dim": dim,
            "window": format_window(window),
            "policy": policy,
            "parameters": dict(parameters or {}),
            "grace": format_grace(grace),
            "attribution": attribution,
        }
        if activation_timeout is not None:
            plain["activation_timeout"] = format_window(activation_timeout, name="activation_timeout")
        if returns is not None:
            plain["returns"] = format_window(returns, name="returns")
        spec = BanditSpec(
            **to_plain(plain),
            features=parse_scales(features),
            encoder=encoding,
            log_offers=check_flag("log_offers", log_offers),
            unit=parse_unit(unit),
            reward=parse_reward_spec(reward),
            challenger=parse_challenger(challenger),
        )
        check_policy(name, spec)  # a mistake leaves no file behind
    if address is None:
        store: Store | BlockingStore = Store.open(path, clock=clock, create=create)
    else:
        store = _open_database(address, clock, create=create)
    shown = hide_secrets(os.fspath(path))
    try:
        if spec is not None:
            store.create(name, spec)
        store.info(name)
        if retention is not None:
            store.set_retention(retention)
    except UnknownBanditError:
        store.close()
        raise UnknownBanditError(f"{shown} has no bandit {short_repr(name)}: give dim and window to make it") from None
    except BaseException:
        store.close()
        raise
    return OpenBandit(store, name, path=shown)


def _open_database(address: str, clock: Clocks | None, *, create: bool) -> "BlockingStore":
    if clock is not None:
        raise InputError("clock must be left out on a database, whose time is its own", field="clock")
    require_packages("a store on PostgreSQL", "psycopg")
    from latecomer.service.blocking_store import BlockingStore  # noqa: PLC0415 - it takes psycopg

    if create:
        from latecomer.service.storage.postgres.schema import initialise  # noqa: PLC0415

        initialise(address)
    return BlockingStore(address)
