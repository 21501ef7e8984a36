"""The certificates that clients trust, read once in a process: each client would spend 30 ms on it, even for http."""

import ssl
from functools import cache

import httpx


@cache
def trusted_certificates() -> ssl.SSLContext:
    """Return httpx's own choice, which SSL_CERT_FILE and SSL_CERT_DIR may change."""
    return httpx.create_ssl_context()
