"""Authorisation: a key in the Authorization header, unless the server is for this machine alone and has no keys."""

import asyncio
import math
import re
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache, partial
from time import monotonic
from typing import TYPE_CHECKING

from latecomer.errors import FileError, StoreError
from latecomer.service.http.errors import HTTPError
from latecomer.service.http.keys import EVERY_BANDIT, KEY_PATTERN, Key, KeyFile, Keys
from latecomer.service.http.logging_setup import Log
from latecomer.service.http.operations import Operation
from latecomer.service.http.personalizer_operations import PERSONALIZER
from latecomer.service.http.request import Request

if TYPE_CHECKING:
    from latecomer.service.store import Store

_BEARER = "bearer "
_SUBSCRIPTION_KEY = b"ocp-apim-subscription-key"
"""Personalizer's header for the key."""
_CHECK_INTERVAL = 0.5
"""Seconds between two checks of the key file where no request comes."""
_LOCAL_HOST = re.compile(rb"(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?", re.IGNORECASE)
"""The Host header of a client on this machine."""


class Authenticator:
    """Accepts the key of a request, or refuses the request before its body is read.

    Parameters
    ----------
    keys
        The keys. Once there were any, they are needed: where their file is missing, every request is refused.
    always
        Keys are needed from the beginning: there was a key file before, or there has to be one.
    remember
        Called twice a second once there is a key file, until it returns True: the store has noted it.
    on_change
        Called with the reason when keys cannot be checked any more, and with None when they can again.
    """

    def __init__(
        self,
        keys: Keys,
        *,
        always: bool,
        remember: Callable[[], bool] = lambda: True,
        on_change: Callable[[str | None], object] = lambda _: None,
    ) -> None:
        self._keys, self._needed = keys, always
        self._remember, self._on_change = remember, on_change
        self._remembered, self._remember_tried_at = False, -math.inf
        self._fault: str | None = None

    def check(self) -> bool:
        """Tell whether keys are needed; raise 503 where they are and cannot be checked."""
        try:
            needed = self._check_file()
            fault = None
        except FileError as error:
            fault = str(error)
        if fault != self._fault:
            self._fault = fault
            self._on_change(fault)
        if fault is not None:
            raise _uncheckable()
        return needed

    def has_keys(self) -> bool:
        """Tell whether there are keys, as far as that is known."""
        try:
            return self._keys.keys() is not None
        except FileError:
            return self._needed

    async def watch(self) -> None:
        """Check twice a second, so that a key file which comes and goes between two requests is noticed."""
        while True:
            with suppress(HTTPError):
                self.check()
            await asyncio.sleep(_CHECK_INTERVAL)

    def _check_file(self) -> bool:
        if self._keys.recent() is None:
            if self._needed:
                raise FileError(
                    f"{self._keys.path} is missing, and keys are needed: put it back, or make a key with `latecomer "
                    f"keys add`; to go back to no keys, start the server once with --no-require-keys"
                )
            return False
        self._needed = True
        if not self._remembered and monotonic() - self._remember_tried_at > _CHECK_INTERVAL:
            self._remember_tried_at = monotonic()
            with suppress(StoreError):  # the store cannot be written now; the next check tries again
                self._remembered = self._remember()
        return True

    def authorise(self, request: Request, operation: Operation) -> Key | None:
        """Return the request's key, or None where no key is needed; raise 401 or 403 where it may not do that."""
        if not self.check():
            _check_local(request)
            return None
        try:
            sent = _find_key(request)
            key = self._keys.find(sent)
        except FileError:  # the file was changed this very moment; the next check says why
            raise _uncheckable() from None
        if key is None:
            claimed = KEY_PATTERN.match(sent)
            raise HTTPError(
                401,
                "a valid key is needed: send it as `Authorization: Bearer KEY`",
                key=claimed["id"] if claimed else None,
            )
        bandit = request.bandit or (key.bandits[0] if operation.for_any_bandit else EVERY_BANDIT)
        if not key.allows(operation.scope, bandit):
            message = f"this key may not do that: it takes the scope {operation.scope!r} for this bandit"
            raise HTTPError(403, message, key=key.id)
        return key


def _find_key(request: Request) -> str:
    """Return the key of the Authorization header, for Personalizer's paths also of its own; or an empty text."""
    for name, value in request.headers:
        if name == b"authorization":
            text = value.decode("latin-1")
            return text[len(_BEARER) :].strip() if text[:7].lower() == _BEARER else ""
        if name == _SUBSCRIPTION_KEY and request.route.startswith(PERSONALIZER):
            return value.decode("latin-1").strip()
    return ""


def _check_local(request: Request) -> None:
    """Refuse a Host header that is not this machine's.

    Without keys, a page in a browser on this machine could otherwise act as a client, under a name that leads here.
    """
    for name, value in request.headers:
        if name == b"host" and not _is_local(value):
            raise HTTPError(
                403, "without keys, requests must be addressed to localhost: make a key to use another name"
            )


@lru_cache(maxsize=64)
def _is_local(host: bytes) -> bool:
    """Tell whether a Host header is this machine's."""
    return _LOCAL_HOST.fullmatch(host) is not None


def _uncheckable() -> HTTPError:
    """Make an error that leaves the reason out: that is for the owner of the file."""
    return HTTPError(503, "keys cannot be checked: the server's log says why")


def open_authenticator(keys: KeyFile, store: "Store", log: Log, *, required: bool, forget: bool) -> Authenticator:
    """Make the authenticator of a store.

    A store that has been served with keys is not served without, unless `forget` is given and there is no key file.
    """
    expected = store.settings.expects_keys()
    if expected and forget and keys.keys() is None:
        store.settings.set_expects_keys(False)
        expected = False
        log.warning("keys are not needed any more: there is no file of keys, and require_keys is false")
    return Authenticator(
        keys,
        always=expected or required,
        remember=(lambda: True) if expected else partial(_remember_keys, store),
        on_change=partial(_log_fault, log),
    )


def make_shared_authenticator(keys: Keys, log: Log, *, required: bool) -> Authenticator:
    """Make the authenticator of a replicated store, whose keys and whose need of them are in the database."""
    return Authenticator(keys, always=required, on_change=partial(_log_fault, log))


def _remember_keys(store: "Store") -> bool:
    """Have the store note that it is served with keys; return True once it has."""
    if store.settings.expects_keys():
        return True
    store.settings.set_expects_keys(True)
    return False


def _log_fault(log: Log, fault: str | None) -> None:
    if fault is None:
        log.info("keys can be checked again")
    else:
        log.error("keys cannot be checked: every request is refused", why=fault)
