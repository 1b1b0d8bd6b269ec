"""The report: a scan as one HTML file that anyone can open.

The package is not called `report`: importing it would hide the function `orbical.interface.report`.
"""

from __future__ import annotations

from .writing import report

__all__ = ["report"]
