"""The pytest plugin: fixtures that test networks for equivariance and stored scans for thresholds.

pytest loads this module in every session, so whatever it needs is imported inside the fixtures.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ..store import Scan

__all__ = ["assert_conservative", "assert_equivariant", "orbical_check"]


@pytest.fixture
def assert_conservative() -> Callable[..., None]:
    """Return `orbical.testing.assert_conservative`."""
    from ..testing import assert_conservative

    return assert_conservative


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
    `pyproject.toml` in pytest's root folder. Thresholds are those of `orbical.check`. Where there
    are too few samples to tell, the test passes with a warning, or fails with `strict=True`.
    """

    def check(
        scan: str | Path | Scan,
        *,
        models: list[str] | None = None,
        strict: bool | None = None,
        **thresholds: float,
    ) -> None:
        from .._warnings import warn
        from ..checks import check as checked
        from ..checks import configured_check

        given = thresholds | {"strict": strict, "models": models}
        settings = configured_check(pytestconfig.rootpath / "pyproject.toml", given)
        broken = ("fail", "inconclusive") if settings.pop("strict", False) else ("fail",)
        rows = checked(scan, **settings)
        failed = [str(row) for row in rows if row.outcome in broken]
        if failed:
            pytest.fail("\n".join(failed), pytrace=False)
        for row in rows:
            if row.outcome == "inconclusive":
                warn(str(row))

    return check
