"""The store over HTTP: who may come in, what may be said, and how it is answered."""
