"""The command line: ``discreet``, one file a command."""
