"""The interface without a transport: requests in, answers out.

A session answers requests about the scans it serves. Every request carries the whole selection, so
every answer is a function of scan, models and selection only: several pages, a notebook and a test
can use the same session at the same time.
"""

from __future__ import annotations

from .session import KINDS, Session

__all__ = ["KINDS", "Session"]
