"""Worlds, the compiled loop, runs in parallel, regret."""
