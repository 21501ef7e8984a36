"""The delay curve from conversions alone."""
