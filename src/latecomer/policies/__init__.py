"""The algorithms, one file each, and the shell that they share."""
