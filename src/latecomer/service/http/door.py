"""Who may come in: a key in the Authorization header, unless the server is for this machine alone and has no keys."""

import re
from typing import Any

from latecomer.errors import FileError
from latecomer.service.http.errors import Refusal
from latecomer.service.keys import EVERY_BANDIT, Key, KeyFile, Scope

_BEARER = "bearer "
_HERE = re.compile(rb"(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?", re.IGNORECASE)
"""What a client on this machine calls this machine."""


class Door:
    """Lets a request in, or refuses it before anything else is looked at.

    Parameters
    ----------
    keys
        The file of keys.
    always
        Whether a key is needed even where there is no such file.
    """

    def __init__(self, keys: KeyFile, *, always: bool) -> None:
        self._keys, self._always = keys, always

    def admit(self, scope: Any, wanted: Scope, bandit: str | None = EVERY_BANDIT) -> Key | None:
        """The key that was shown, or none where none is needed. `bandit` None: any key of that scope will do."""
        try:
            if self._keys.recent() is None and not self._always:
                _refuse_strangers(scope)
                return None
            key = self._shown(scope)
        except FileError:  # what is wrong is for the owner of the file
            raise Refusal(503, "keys cannot be checked: on the server, `latecomer keys list` says why") from None
        if key is None:
            raise Refusal(401, "a valid key is needed: send it as `Authorization: Bearer KEY`")
        if not key.allows(wanted, key.bandits[0] if bandit is None else bandit):
            raise Refusal(403, f"this key may not do that: it takes the scope {wanted!r} for this bandit")
        return key

    def _shown(self, scope: Any) -> Key | None:
        for name, value in scope["headers"]:
            if name == b"authorization":
                text: str = value.decode("latin-1")
                return self._keys.find(text[len(_BEARER) :].strip()) if text[:7].lower() == _BEARER else None
        return None


def _refuse_strangers(scope: Any) -> None:
    """Without keys, a page in this machine's browser could pose as a client, under a name that leads here."""
    for name, value in scope["headers"]:
        if name == b"host" and _HERE.fullmatch(value) is None:
            raise Refusal(403, "without keys, requests must be addressed to localhost: make a key to use another name")
