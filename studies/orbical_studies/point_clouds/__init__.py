"""The point-cloud study: three networks, turned everywhere in space."""

from .commands import main

__all__ = ["main"]
