"""Records: what a user hands over, checked by its containers alone, encoded on the lattice, and recoded."""
