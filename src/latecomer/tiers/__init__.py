"""Two tiers of every kernel: plain Python at once, and machine code, made in the background, that does the same."""
