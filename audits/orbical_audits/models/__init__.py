"""The audits, one file a model."""
