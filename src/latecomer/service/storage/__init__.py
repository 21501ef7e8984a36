"""The log in one SQLite file: rows, snapshots, compaction, retention, recovery."""
