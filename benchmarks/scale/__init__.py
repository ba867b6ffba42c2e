"""Tables that memory does not hold: from disk, and on a cluster."""
