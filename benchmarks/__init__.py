"""Benchmarks: ``python -m benchmarks [name ...]``. Ratios to a peer in the same run, never bare times."""
