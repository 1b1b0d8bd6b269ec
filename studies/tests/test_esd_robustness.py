"""What corrupted images decide, on numbers that are made up."""

from __future__ import annotations

import pandas as pd
import pytest

from orbical_studies.esd.front_claims import Robustness


def robustness(ends: dict[str, tuple[float, float]], worst: float = 0.3) -> Robustness:
    """Make networks whose change has the given interval, all alike on the images."""
    rows = [
        {"loss": loss, "corruption": name, "severity": severity, "accuracy": 0.5}
        | {"ece": worst if severity else 0.1, "ece_ts": 0.3 if severity else 0.1}
        for loss in ("NLL", *ends)
        for name, severity in (("none", 0), ("fog", 5), ("snow", 5))
    ]
    changes = [
        {"loss": loss, "scaled": scaled, "severity": 0, "change": (low + high) / 2}
        | {"low": low, "high": high, "low_joint": low, "high_joint": high}
        for loss, (low, high) in ends.items()
        for scaled in (False, True)
    ]
    return Robustness(pd.DataFrame(rows), pd.DataFrame(changes))


@pytest.mark.parametrize(
    ("esd", "verdict"),
    [((-0.2, -0.1), "confirmed"), ((0.1, 0.2), "contradicted"), ((-0.1, 0.1), "open")],
)
def test_all_losses_have_to_be_better_together(esd: tuple[float, float], verdict: str) -> None:
    found = robustness({"MMCE": (-0.2, -0.1), "ESD": esd})
    assert found.losses == ["MMCE", "ESD"]
    assert (found.robust, found.ahead) == (verdict, verdict)


def test_one_calibrated_network_refutes_that_none_stays_so() -> None:
    ends = {"ESD": (-0.1, 0.1)}
    assert robustness(ends).miscalibrated
    assert not robustness(ends, worst=0.19).miscalibrated
