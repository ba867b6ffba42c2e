"""Methods that are compared, one file each; ``tuned`` and ``defaults`` list which."""
