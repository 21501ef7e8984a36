"""One bandit's state as a function of its events: no files, no threads, no event loop."""
