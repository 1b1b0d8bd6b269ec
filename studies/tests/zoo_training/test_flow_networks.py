"""The learned flow estimator: its training and the weights that ship."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from orbical.actions import ImagePair, VectorField
from orbical.datasets import particle_pairs
from orbical.errors import InputError
from orbical.groups import dihedral, product, time_reversal
from orbical.zoo import flownet
from orbical_studies.zoo_training import flow_networks


def test_random_symmetry_reaches_all_sixteen_elements_and_moves_flow_with_its_images():
    made = particle_pairs(1, size=32, seed=3)
    many = 400
    pair, flow = flow_networks.random_symmetry(
        made["pair"].expand(many, -1, -1, -1, -1),
        made["flow"].expand(many, -1, -1, -1),
        torch.Generator().manual_seed(0),
    )
    group = product(dihedral(4), time_reversal())
    pairs = ImagePair().apply(group, made["pair"])[:, 0]
    flows = VectorField().apply(group, made["flow"])[:, 0]
    which = (pair[:, None] - pairs[None]).abs().flatten(2).amax(2).argmin(1)
    assert np.bincount(which, minlength=16).min() > 10
    assert torch.allclose(pair, pairs[which])
    assert torch.allclose(flow, flows[which], atol=1e-6)


def test_the_same_seed_trains_the_same_network():
    losses: list[float] = []
    first, taken = flow_networks.train(
        False, steps=2, size=32, batch=2, after_step=lambda _, loss: losses.append(float(loss))
    )
    second, _ = flow_networks.train(False, steps=2, size=32, batch=2)
    assert taken == len(losses) == 2
    for a, b in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(a, b)


def test_wrong_settings_are_refused():
    with pytest.raises(InputError, match="size"):
        flow_networks.train(True, size=33)


def test_weights_go_to_a_file_and_come_back(tmp_path, monkeypatch):
    monkeypatch.setattr(flow_networks, "HELD_OUT_SIZE", 32)
    path = flow_networks.train_and_save(tmp_path, "symmetric", 1, steps=1, size=32, batch=1)
    assert path.stat().st_size < 1_000_000
    facts = flownet.provenance("symmetric", tmp_path)
    assert facts["moved by D4 x time reversal"] == "True"
    assert facts["steps"] == "1"
    net = flownet.load("symmetric", tmp_path)
    assert not net.training
    assert all(p.dtype == torch.float32 for p in net.parameters())
    with pytest.raises(InputError, match="flownet-directed"):
        flownet.load("directed", tmp_path)


def test_the_shipped_networks_are_what_their_files_say():
    """On held-out pairs: more accurate than Farneback; only one of them at every element."""
    pytest.importorskip("cv2", reason="opencv is not installed")
    from orbical.zoo.classical_flow import Farneback

    kinds = ["uniform", "shear", "cylinder"]
    made = particle_pairs(3, 96, kinds, seed=flow_networks.HELD_OUT_SEED)
    errors = {
        name: flow_networks.error_by_element(flownet.load(name), made["pair"], made["flow"])
        for name in flownet.NAMES
    }
    guess = torch.as_tensor(Farneback()(made["pair"]))
    classical = float((guess - made["flow"]).norm(dim=1).mean())
    assert errors["directed"][0] < 0.7 * classical
    assert errors["symmetric"].mean() < 0.2
    assert errors["directed"].max() > 1.5 * errors["directed"][0]
    assert errors["symmetric"].max() < 1.3 * errors["symmetric"][0]
    for name in flownet.NAMES:
        facts = flownet.provenance(name)
        upright = float(facts["held-out end-point error"])
        over = float(facts["held-out end-point error over 16 elements"])
        assert (over > 2 * upright) == (name == "directed")
