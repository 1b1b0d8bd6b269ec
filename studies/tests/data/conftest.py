"""Fixtures of the tests of calculated labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def stopping() -> Callable[[Callable[[], Any], int], Callable[[], Any]]:
    """Return `stopping(real, after)`: `real`, interrupted after some molecules."""

    def make(real: Callable[[], Any], after: int) -> Callable[[], Any]:
        done: list[int] = []

        def begun() -> Any:
            calculate = real()

            def one(numbers: Any, positions: Any) -> Any:
                if len(done) == after:
                    raise KeyboardInterrupt
                done.append(len(numbers))
                return calculate(numbers, positions)

            return one

        return begun

    return make
