"""Verify, export, replay and back up a store."""
