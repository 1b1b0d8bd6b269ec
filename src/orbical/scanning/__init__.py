"""Evaluate models along orbits: plan a scan, run it unit by unit, and commit each unit."""

from __future__ import annotations

from .description import describe_data, described_setting
from .engine import scan
from .forward_passes import Sweep, errors_in_pass, refuse_faults_of_pass
from .progress import scan_progress_bar
from .recipe import Recipe, checked_recipe_data, plan
from .units import UnitRunner, ready_unit_runner

__all__ = ["scan"]
