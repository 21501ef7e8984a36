"""The parts of a server that its routes share."""

from typing import TYPE_CHECKING

from msgspec import Struct

from latecomer.service.http.auth import Authenticator
from latecomer.service.http.body_reader import BodyReader
from latecomer.service.http.logging_setup import Log
from latecomer.service.http.metrics import Metrics
from latecomer.service.http.settings import Settings
from latecomer.service.http.store_access import StoreAccess
from latecomer.service.http.tracing import Tracing

if TYPE_CHECKING:
    from latecomer.service.replicated_store import ReplicatedStore
    from latecomer.service.store import Store


class AppContext(Struct, frozen=True, kw_only=True):
    """The store, and the parts of the server that routes use."""

    store: "Store | ReplicatedStore"
    access: StoreAccess
    settings: Settings
    authenticator: Authenticator
    body_reader: BodyReader
    metrics: Metrics
    log: Log
    tracing: Tracing | None = None
