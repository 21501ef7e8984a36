"""Features, names with values, as rows of norm at most 1; and θ̂ explained by them."""
