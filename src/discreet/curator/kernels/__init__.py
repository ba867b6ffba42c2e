"""Compiled loops. Pure functions: noise and released values arrive as arrays, nothing is remembered.

Integer sums may be reordered and vectorized at will, because they are exact. Floating point never
crosses rows: a record's contribution depends on that record and on released values only.
"""
