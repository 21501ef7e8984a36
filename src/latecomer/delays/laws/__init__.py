"""Delay distributions, one file each."""
