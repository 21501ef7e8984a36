"""The paper's experiments, and reports on them."""
