"""The machinery that every policy shares."""
