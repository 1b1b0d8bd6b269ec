"""Group order and blur on galaxies: what a correct symmetry does to accuracy and calibration."""

from .commands import main

__all__ = ["main"]
