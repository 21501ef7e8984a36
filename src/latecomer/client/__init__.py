"""Clients of a server: `Client`, and `AsyncClient` with the same calls."""
