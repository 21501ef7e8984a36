"""A TCP proxy that speaks TLS to PostgreSQL's clients, as the server does, and refuses those that do not ask for it.

The PostgreSQL of the tests may have been built without TLS; a client cannot tell the difference.
"""

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tcp_proxy import TcpProxy

TLS_REQUEST, GSS_REQUEST = (bytes.fromhex(f"0000000804d2{code}") for code in ("162f", "1630"))
"""The first messages of a client: for TLS, and for Kerberos."""


class TlsProxy(TcpProxy):
    """Forwards connections once they are encrypted."""

    def __init__(self, port: int, context: ssl.SSLContext) -> None:
        self._context = context
        self.encrypted = 0
        """Connections that were encrypted so far."""
        super().__init__([("127.0.0.1", port)])

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await reader.readexactly(len(TLS_REQUEST))
            if request == GSS_REQUEST:
                writer.write(b"N")
                request = await reader.readexactly(len(TLS_REQUEST))
            if request == TLS_REQUEST:
                writer.write(b"S")
                await writer.start_tls(self._context)
                self.encrypted += 1
                await super()._accept(reader, writer)
        except (OSError, asyncio.IncompleteReadError):  # a client that does not trust the certificate
            pass
        finally:
            writer.transport.abort()


@contextmanager
def run_tls_proxy(port: int, *, certificate: Path, key: Path) -> Iterator[TlsProxy]:
    """Run a proxy to a port of this machine, with a certificate, for the length of a block."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    proxy = TlsProxy(port, context)
    try:
        yield proxy
    finally:
        proxy.close()
