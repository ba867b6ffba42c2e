"""Minimizers and samplers in floating point whose distance from the exact ones is certified."""
