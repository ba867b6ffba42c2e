"""Engines compute exact integer sums over the private copy. They add no noise and keep no secrets apart."""
