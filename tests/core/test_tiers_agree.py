"""Both tiers of every policy do the same to the last bit: plain Python and machine code."""
