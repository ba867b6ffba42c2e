"""Known answers: small problems with exact results that compiled code must reproduce before it sees a record."""
