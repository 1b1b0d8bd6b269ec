"""The six examples of the equivariant-calibration paper, and what is true of them."""

from .commands import main

__all__ = ["main"]
