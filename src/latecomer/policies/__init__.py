"""The algorithms, one file each; base/ has the class that they share, persistence/ their files."""
