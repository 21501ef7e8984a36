"""Talking to a server: `Client`, and `AsyncClient` with the same calls."""
