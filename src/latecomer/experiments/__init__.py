"""Experiments: the paper's and its report, the arena, advice on the window, and experiment files."""
