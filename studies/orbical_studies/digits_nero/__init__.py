"""NERO plots of all MNIST test digits: what is true of the paper's claims about them."""

from .commands import main

__all__ = ["main"]
