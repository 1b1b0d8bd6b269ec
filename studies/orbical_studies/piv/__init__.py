"""Flow in particle images: D4, time reversal, any rotation; classical methods and learned ones."""

from .commands import main

__all__ = ["main"]
