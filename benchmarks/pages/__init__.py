"""Results as tables for the documentation, and as pictures."""
