"""Codebooks as drafts of schemas: CSV, Frictionless Table Schema, JSON Schema, pandera. No table is read."""
