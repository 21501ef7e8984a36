"""The arena: every policy in every world."""
