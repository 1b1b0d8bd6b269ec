"""What a user passes as data, read as samples."""

from __future__ import annotations

from .samples import Samples

__all__ = ["Samples"]
