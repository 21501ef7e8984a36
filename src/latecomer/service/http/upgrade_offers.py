"""Rewrites the head of a request that offers to upgrade to another protocol.

llhttp takes everything after such an offer, the body included, for the other protocol. Clients that prefer HTTP/2 offer
it with every request, and go on with HTTP/1.1 where the offer is ignored.
"""

Headers = list[tuple[bytes, bytes]]

_OFFERS = (b"upgrade", b"http2-settings")
"""Headers that offer another protocol; their names stand in Connection too."""


def decline_offers(headers: Headers) -> Headers:
    """Remove the headers that offer another protocol.

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


def head_size(target: bytes, headers: Headers) -> int:
    """Count the bytes of a target and its headers."""
    return len(target) + sum(len(name) + len(value) + 4 for name, value in headers)


def write_head(method: bytes, target: bytes, version: bytes, headers: Headers) -> bytes:
    r"""Write a head as a client sends it.

    >>> write_head(b"GET", b"/healthz", b"1.1", [(b"host", b"a")])
    b'GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n'
    """
    lines = [b"%b %b HTTP/%b" % (method, target, version), *(b"%b: %b" % header for header in headers), b"", b""]
    return b"\r\n".join(lines)
