"""The pytest plugin: fixtures that test networks for equivariance and stored scans for thresholds.

pytest loads this module in every session, so whatever it needs is imported inside the fixtures.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ..store.scan_result import Scan

__all__ = ["assert_equivariant", "orbical_check"]


@pytest.fixture
def assert_equivariant() -> Callable[..., None]:
    """Return `orbical.testing.assert_equivariant`."""
    from ..testing import assert_equivariant

    return assert_equivariant


@pytest.fixture
def orbical_check(pytestconfig: pytest.Config) -> Callable[..., None]:
    """Return a function that fails the test if a scan breaks a threshold.

    It takes a stored scan (a path) or a `Scan`, `models=` to check only some, and thresholds by
    name such as `max_gap=0.02`, which take precedence over the table `[tool.orbical.check]` of the
    `pyproject.toml` in pytest's root folder. Thresholds are those of `orbical check`.
    """

    def check(
        scan: str | Path | Scan, *, models: list[str] | None = None, **thresholds: float
    ) -> None:
        from ..cli.thresholds import judge, limits_from, settings_from
        from ..store import load

        config = pytestconfig.rootpath / "pyproject.toml"
        settings: dict[str, Any] = settings_from(config) if config.is_file() else {}
        limits = limits_from(thresholds, settings)
        loaded = load(scan) if isinstance(scan, str | Path) else scan
        verdicts = judge(loaded, limits, settings.get("bins", 15), models)
        broken = [verdict.line() for verdict in verdicts if not verdict.passed]
        if broken:
            pytest.fail("\n".join(broken), pytrace=False)

    return check
