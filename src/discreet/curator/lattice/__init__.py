"""The lattice: integers that stand for numbers, and exact noise on them."""
