"""The decision service: bandits, the log that keeps them, the store over both, its HTTP API and its tools."""
