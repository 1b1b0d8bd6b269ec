"""Warnings point at the line of the user's that led to them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import orbical as ob

NET = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 4)).eval()
IMAGES = torch.rand(6, 1, 8, 8, generator=torch.Generator().manual_seed(0))


def noisy(x):
    return torch.nn.functional.dropout(NET(x))


def likely(x):
    return NET(x.float()).softmax(-1)


@pytest.mark.parametrize(
    ("model", "images", "words"),
    [
        (noisy, IMAGES, "different outputs for the same batch"),
        (likely, IMAGES, "outputs are read as logits but"),
        (lambda x: NET(x.float()), (255 * IMAGES).byte(), "pixels are passed to the models as"),
    ],
)
def test_those_of_a_scan_point_at_the_scan(model, images, words):
    with pytest.warns(UserWarning, match=words) as caught:
        ob.scan(model, images, group="cyclic:4", task="classification", progress=False)
    assert {one.filename for one in caught} == {__file__}


def test_those_of_saved_outputs_point_at_the_call_through_decorators_too():
    probs = np.random.default_rng(0).dirichlet([1, 1, 1], 40)
    with pytest.warns(UserWarning, match="if these are probabilities") as caught:
        torch.no_grad()(ob.calibration.nll)(logits=probs, labels=np.zeros(40, int))
    assert {one.filename for one in caught} == {__file__}
