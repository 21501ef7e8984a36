"""Rivals: policies that others have published since the paper, as rules of a simulation, for comparison alone."""
