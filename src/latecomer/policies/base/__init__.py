"""The class and the generic kernels that every policy shares."""
