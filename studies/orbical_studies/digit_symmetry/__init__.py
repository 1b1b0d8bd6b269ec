"""The digit study: what rotation invariance costs where a 6 turned round is a 9."""

from .commands import main

__all__ = ["main"]
