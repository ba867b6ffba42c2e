"""What a release costs: plans, events, prices and certificates. Nothing here reads data."""
