"""The vector-field study: where a wrong symmetry puts its variance."""

from .commands import main

__all__ = ["main"]
