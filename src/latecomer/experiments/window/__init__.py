"""The choice of a window."""
