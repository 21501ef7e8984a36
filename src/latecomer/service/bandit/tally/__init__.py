"""Counts of a bandit over time: decisions, conversions, choices and outcomes, in bounded memory."""
