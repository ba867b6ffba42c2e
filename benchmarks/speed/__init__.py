"""Times against peers, one file each."""
