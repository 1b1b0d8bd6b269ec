"""The Swiss roll study: what a harmful invariance costs, in worlds where that is known exactly."""

from .commands import main

__all__ = ["main"]
