"""Infrared spectra with evidential heads: where along a spectrum does uncertainty bleed?"""

from .commands import main

__all__ = ["main"]
