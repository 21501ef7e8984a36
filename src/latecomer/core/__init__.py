"""Arrays in, arrays out, compiled: no ids, no clocks, no files."""
