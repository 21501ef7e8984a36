"""Advice on the window: which one to take, on one's own delays."""
