"""Comparisons: every method on every problem."""
