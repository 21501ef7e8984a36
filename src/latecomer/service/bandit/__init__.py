"""A bandit as a fold over its events; no files, no threads."""
