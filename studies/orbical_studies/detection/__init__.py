"""The detection study: how far the key object strayed in training, and where it is then found."""

from .commands import main

__all__ = ["main"]
