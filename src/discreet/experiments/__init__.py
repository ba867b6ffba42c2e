"""The papers' experiments and the comparisons, one file each."""
