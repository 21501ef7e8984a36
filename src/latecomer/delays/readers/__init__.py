"""Readers of logs: conversions, and the Criteo attribution data set."""
