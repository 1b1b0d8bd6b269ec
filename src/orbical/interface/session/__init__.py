"""The interface without any transport: questions in, answers out.

A session answers requests about the scans it serves. Every request carries the whole selection, so
that every answer is a function of scan, models and selection alone: two pages, a notebook and a
test may ask the same session at the same time.
"""

from __future__ import annotations

from .dispatch import KINDS, Session

__all__ = ["KINDS", "Session"]
