"""Who may come in: a key in the Authorization header, unless the server is for this machine alone and has no keys."""

import asyncio
import math
import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

from latecomer.errors import FileError, StoreError
from latecomer.service.http.errors import HTTPError
from latecomer.service.http.keys import EVERY_BANDIT, KEY, Key, KeyFile, Scope
from latecomer.service.http.logging_setup import Log

if TYPE_CHECKING:
    from latecomer.service.store import Store

_BEARER = "bearer "
_NOW_AND_THEN = 0.5
"""Seconds between two looks at the file of keys of a server that nobody asks."""
_HERE = re.compile(rb"(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?", re.IGNORECASE)
"""What a client on this machine calls this machine."""


class Authenticator:
    """Lets a request in, or refuses it before anything else is looked at.

    Parameters
    ----------
    keys
        The file of keys. Once there was one, it is needed: where it is missing, every request is refused.
    always
        Whether there was one before, or has to be.
    remember
        Called once there is one, twice a second, until it says that the store remembers it.
    on_change
        Called with the reason when keys cannot be checked any more, and with None when they can again.
    """

    def __init__(
        self,
        keys: KeyFile,
        *,
        always: bool,
        remember: Callable[[], bool] = lambda: True,
        on_change: Callable[[str | None], object] = lambda _: None,
    ) -> None:
        self._keys, self._expected = keys, always
        self._remember, self._on_change = remember, on_change
        self._remembered, self._asked = False, -math.inf
        self._fault: str | None = None

    def check(self) -> bool:
        """Tell whether keys are needed; a refusal where they are and cannot be checked."""
        try:
            needed = self._look()
            fault = None
        except FileError as error:
            fault = str(error)
        if fault != self._fault:
            self._fault = fault
            self._on_change(fault)
        if fault is not None:
            raise _unchecked()
        return needed

    async def watch(self) -> None:
        """Look now and then, also where nobody asks: keys that come and go between two requests were there."""
        while True:
            with suppress(HTTPError):
                self.check()
            await asyncio.sleep(_NOW_AND_THEN)

    def _look(self) -> bool:
        if self._keys.recent() is None:
            if self._expected:
                raise FileError(
                    f"{self._keys.path} is missing, and keys are needed: put it back, or make a key with `latecomer "
                    f"keys add`; to go back to no keys, start the server once with --no-require-keys"
                )
            return False
        self._expected = True
        if not self._remembered and monotonic() - self._asked > _NOW_AND_THEN:
            self._asked = monotonic()
            with suppress(StoreError):  # the store cannot remember it now, and is asked again
                self._remembered = self._remember()
        return True

    def admit(self, scope: Any, wanted: Scope, bandit: str | None = EVERY_BANDIT) -> Key | None:
        """The key that was shown, or none where none is needed. `bandit` None: any key of that scope will do."""
        if not self.check():
            _refuse_strangers(scope)
            return None
        try:
            shown = _shown(scope)
            key = self._keys.find(shown)
        except FileError:  # it was changed this very moment; the next look says why
            raise _unchecked() from None
        if key is None:
            claimed = KEY.match(shown)
            raise HTTPError(
                401,
                "a valid key is needed: send it as `Authorization: Bearer KEY`",
                key=claimed["id"] if claimed else None,
            )
        if not key.allows(wanted, key.bandits[0] if bandit is None else bandit):
            message = f"this key may not do that: it takes the scope {wanted!r} for this bandit"
            raise HTTPError(403, message, key=key.id)
        return key


def _shown(scope: Any) -> str:
    """The key of the Authorization header, or nothing."""
    for name, value in scope["headers"]:
        if name == b"authorization":
            text: str = value.decode("latin-1")
            return text[len(_BEARER) :].strip() if text[:7].lower() == _BEARER else ""
    return ""


def _unchecked() -> HTTPError:
    """Return the refusal that does not say what is wrong: that is for the owner of the file."""
    return HTTPError(503, "keys cannot be checked: the server's log says why")


def open_authenticator(keys: KeyFile, store: "Store", log: Log, *, required: bool, forget: bool) -> Authenticator:
    """Check keys for a store: once it has been served with keys it is not served without, unless told to forget it."""
    expected = store.settings.expects_keys()
    if expected and forget and keys.keys() is None:
        store.settings.set_expects_keys(False)
        expected = False
        log.warning("keys are not needed any more: there is no file of keys, and require_keys is false")
    return Authenticator(
        keys,
        always=expected or required,
        remember=(lambda: True) if expected else partial(_remember_keys, store),
        on_change=partial(_say, log),
    )


def _remember_keys(store: "Store") -> bool:
    """Have the store remember that there are keys; True once it does."""
    if store.settings.expects_keys():
        return True
    store.settings.set_expects_keys(True)
    return False


def _say(log: Log, fault: str | None) -> None:
    if fault is None:
        log.info("keys can be checked again")
    else:
        log.error("keys cannot be checked: every request is refused", why=fault)


def _refuse_strangers(scope: Any) -> None:
    """Without keys, a page in this machine's browser could pose as a client, under a name that leads here."""
    for name, value in scope["headers"]:
        if name == b"host" and _HERE.fullmatch(value) is None:
            raise HTTPError(
                403, "without keys, requests must be addressed to localhost: make a key to use another name"
            )
