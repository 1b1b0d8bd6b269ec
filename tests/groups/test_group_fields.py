"""A group whose fields do not fit together is refused where it is made."""

from __future__ import annotations

import numpy as np
import pytest

import orbical as ob
from orbical.errors import InputError


def test_a_group_without_a_weight_for_each_element_is_refused():
    parts = {"time": np.array([1.0, -1.0])}
    with pytest.raises(InputError, match="weights: expected one for each of 2 elements, got 1"):
        ob.groups.Group(parts, 2)
    with pytest.raises(InputError, match="time: expected one for each of 3 elements, got 2"):
        ob.groups.Group(parts, 3, weights=np.full(3, 1 / 3))
