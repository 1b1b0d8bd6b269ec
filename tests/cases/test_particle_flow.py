"""Farneback's flow on real particle images: near-equivariant under D4 and time reversal."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import orbical as ob


@pytest.fixture(scope="module")
def scan(shared_data):
    pytest.importorskip("cv2", reason="opencv is not installed")
    from orbical.zoo.classical_flow import Farneback

    data = ob.datasets.piv(shared_data / "piv")
    chosen = [data["kinds"].index(kind) for kind in dict.fromkeys(data["kinds"])]
    result = ob.scan(
        {"farneback": Farneback()},
        (data["pair"][chosen], data["flow"][chosen]),
        group="dihedral:4*time_reversal",
        task=ob.tasks.Flow(),
        progress=False,
    )
    return result, data["flow"][chosen]


def test_the_nero_plot_is_nearly_flat(scan):
    """The paper says so: the error varies over the 16 elements by far less than it is large."""
    result, _ = scan
    error = result.data["score"].values[0]
    spread = error.std(1) / error.mean(1)
    assert spread.max() < 0.15
    assert spread.mean() < 0.05


def test_the_action_is_exact_and_the_gap_is_the_methods_own(scan):
    result, flow = scan
    assert float(result.data["action_defect"].max()) == 0
    speed = flow.norm(dim=1).mean((1, 2)).numpy()
    assert (result.data["invariance_gap"].values[0] < 0.3 * speed + 0.2).all()


def test_the_consensus_is_at_least_as_good_as_the_mean_element(scan):
    result, _ = scan
    alone = result.data["score"].values[0].mean(1)
    assert (result.data["consensus_vs_truth"].values[0] <= alone + 1e-4).all()


def test_a_flow_that_knows_up_from_down_is_found_out(shared_data):
    """The same pairs, a method that only ever sees motion to the right: not flat."""
    data = ob.datasets.piv(shared_data / "piv")

    def rightward(pairs):
        flow = torch.zeros(len(pairs), 2, *pairs.shape[-2:])
        flow[:, 0] = 2
        return flow

    result = ob.scan(
        rightward,
        (data["pair"][-3:], data["flow"][-3:]),
        group="dihedral:4*time_reversal",
        task="flow",
        progress=False,
    )
    error = result.data["score"].values[0]
    assert (np.ptp(error, axis=1) > 0.5).any()
    assert (result.data["invariance_gap"].values[0] > 1.9).all()


def test_the_shipped_networks_beat_farneback_where_the_flow_is_complex(shared_data):
    """Trained on generated pairs alone, on pairs that others made: all but uniform flow."""
    pytest.importorskip("cv2", reason="opencv is not installed")
    from orbical.zoo import flownet
    from orbical.zoo.classical_flow import Farneback

    data = ob.datasets.piv(shared_data / "piv")
    chosen = [data["kinds"].index(kind) for kind in dict.fromkeys(data["kinds"])]
    kinds = [data["kinds"][row] for row in chosen]
    pair, flow = data["pair"][chosen], data["flow"][chosen]

    def error(answer):
        return (torch.as_tensor(answer) - flow).norm(dim=1).mean((1, 2))

    classical = error(Farneback()(pair))
    with torch.inference_mode():
        learned = {name: error(flownet.load(name)(pair)) for name in flownet.NAMES}
    for name, found in learned.items():
        for kind, network, method in zip(kinds, found, classical, strict=True):
            if kind == "uniform":
                assert network < 0.1, name
            else:
                assert network < 0.95 * method, (name, kind)
