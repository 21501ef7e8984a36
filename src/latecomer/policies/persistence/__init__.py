"""Policies as files and as snapshots."""
