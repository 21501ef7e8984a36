"""Heads of requests, written again: without an offer to speak another protocol.

The parser takes what follows such an offer for that protocol, a body included. Clients that would rather speak HTTP/2
make one with every request, and go on with HTTP/1.1 where it is passed over.
"""

Headers = list[tuple[bytes, bytes]]

_OFFERS = (b"upgrade", b"http2-settings")
"""Headers, and words of Connection, of a client that offers another protocol."""


def decline_offers(headers: Headers) -> Headers:
    """Leave out what offers another protocol.

    >>> decline_offers([(b"connection", b"Upgrade, close"), (b"upgrade", b"h2c"), (b"host", b"a")])
    [(b'connection', b'close'), (b'host', b'a')]
    """
    kept = []
    for name, value in headers:
        if name == b"connection":
            words = (word.strip() for word in value.split(b","))
            kept.append((name, b", ".join(word for word in words if word.lower() not in _OFFERS)))
        elif name not in _OFFERS:
            kept.append((name, value))
    return kept


def write_head(method: bytes, target: bytes, version: bytes, headers: Headers) -> bytes:
    r"""Write a head as it would have been sent.

    >>> write_head(b"GET", b"/healthz", b"1.1", [(b"host", b"a")])
    b'GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n'
    """
    lines = [b"%b %b HTTP/%b" % (method, target, version), *(b"%b: %b" % header for header in headers), b"", b""]
    return b"\r\n".join(lines)
