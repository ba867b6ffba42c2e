"""Engines hold the private integer copy in the layout that kernels read. They add no noise; questions sum over them."""
