"""Peers: libraries that teams use today, fed in the two ways that teams feed them, for comparison alone."""
