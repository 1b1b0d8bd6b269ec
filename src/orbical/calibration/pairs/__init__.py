"""Pairs `(confidence, correct)`: read and checked, made from a model's outputs, or from a scan."""
