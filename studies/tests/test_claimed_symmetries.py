"""Every network whose docstring claims a symmetry has it, by the package's own test."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import nn

import orbical as ob
from orbical import zoo
from orbical.zoo.group_cnn import GroupCNN
from orbical.zoo.pointnet import InvariantNet, PointNet
from orbical_studies import networks
from orbical_studies.networks.molecules import GIN, InvariantMPNN
from orbical_studies.networks.point_clouds import PointAttention, PointTransformer
from orbical_studies.networks.steerable import SteerableMPNN
from orbical_studies.networks.vector_fields import VectorFieldNet
from orbical_studies.swiss_roll.networks import HeightInvariant, SymmetricSets

DRAW = torch.Generator().manual_seed(0)
CLOUDS = torch.randn(3, 70, 3, generator=DRAW)
IMAGES = torch.rand(2, 3, 16, 16, generator=DRAW)
MOLECULES = {
    "pos": (torch.randn(3, 7, 3, generator=DRAW) + 1.5).cumsum(1),
    "numbers": torch.tensor([1, 6, 7, 8, 6, 1, 1]).expand(3, 7),
}
SPACE = ob.groups.product(ob.groups.rotations3d(8), ob.groups.inversion())
SHIFTS = ob.groups.from_matrices(
    space=np.stack([np.eye(4), np.eye(4) + np.array([[0, 0, 0, 2.0]] + [[0.0] * 4] * 3)])
)


class Claim(NamedTuple):
    """A network, its inputs, how these and its outputs move, and the group it is claimed for."""

    network: Callable[[], nn.Module]
    inputs: object
    task: ob.tasks.Task
    group: ob.Group | str


CLOUD = ob.tasks.Classification(ob.actions.Points())
ATOMS = ob.tasks.Regression({"pos": ob.actions.Points(), "numbers": ob.actions.Rows()})
ORDER = ob.groups.permutations(7, 12)
CLAIMS = {
    "GroupCNN C4": Claim(
        lambda: GroupCNN("cyclic:4", fields=(2, 2, 2)),
        IMAGES,
        ob.tasks.Classification(),
        "cyclic:4",
    ),
    "GroupCNN D4": Claim(
        lambda: GroupCNN("dihedral:4", fields=(2, 2, 2)),
        IMAGES,
        ob.tasks.Classification(),
        "dihedral:4",
    ),
    "PointNet order": Claim(lambda: PointNet(4), CLOUDS, CLOUD, ob.groups.permutations(70, 9)),
    "InvariantNet O(3)": Claim(lambda: InvariantNet(4), CLOUDS, CLOUD, SPACE),
    "InvariantNet shifts": Claim(lambda: InvariantNet(4), CLOUDS, CLOUD, SHIFTS),
    "InvariantNet order": Claim(
        lambda: InvariantNet(4), CLOUDS, CLOUD, ob.groups.permutations(70, 9)
    ),
    **{
        f"{kind.__name__} {name}": Claim(kind, MOLECULES, ATOMS, group)
        for kind in (GIN, InvariantMPNN, SteerableMPNN)
        for name, group in {"O(3)": SPACE, "shifts": SHIFTS, "order": ORDER}.items()
    },
    **{
        f"VectorFieldNet {form}": Claim(
            lambda form=form: VectorFieldNet(form),
            CLOUDS[0],
            ob.tasks.Regression(ob.actions.Vectors(), "vector", uncertainty=uncertainty),
            SPACE,
        )
        for form, uncertainty in {"scalar": "variance", "full": "covariance"}.items()
    },
}
"""The docstrings' claims. Inputs are in double precision in the tests."""
OTHERWISE = {
    SymmetricSets: "its docstring's example reorders a set",
    HeightInvariant: "its docstring's example swaps the heights",
}
"""Claims that no group of the package states, and what tests them."""


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claimed_symmetry_holds(name: str) -> None:
    if name.startswith(("InvariantNet", "Steerable")):
        pytest.importorskip("e3nn")
    torch.manual_seed(0)
    claim = CLAIMS[name]
    inputs = claim.inputs
    if isinstance(inputs, dict):
        inputs = inputs | {"pos": inputs["pos"].double()}
    else:
        inputs = inputs.double()
    network = claim.network().double().eval()
    ob.testing.assert_equivariant(network, inputs, group=claim.group, task=claim.task)


def test_attention_among_the_first_points_is_not_invariant_and_does_not_claim_to_be() -> None:
    torch.manual_seed(0)
    network = PointAttention(4, patches=16).double().eval()
    for group in (ob.groups.permutations(70, 9), "rotations3d:4"):
        with pytest.raises(AssertionError, match="not equivariant"):
            ob.testing.assert_equivariant(network, CLOUDS.double(), group=group, task=CLOUD)
    behind = np.arange(70)
    behind[16:] = behind[16:][::-1]
    others = ob.groups.from_parts("behind", {"rows": np.stack([np.arange(70), behind])})
    ob.testing.assert_equivariant(network, CLOUDS.double(), group=others, task=CLOUD)
    assert not claims_a_symmetry(PointAttention)


def test_a_point_transformer_ignores_the_order_of_points_and_sees_rotations() -> None:
    torch.manual_seed(0)
    network = PointTransformer(4, widths=(8, 16), neighbors=6).double().eval()
    order = ob.groups.permutations(70, 9)
    ob.testing.assert_equivariant(network, CLOUDS.double(), group=order, task=CLOUD)
    with pytest.raises(AssertionError, match="not equivariant"):
        ob.testing.assert_equivariant(network, CLOUDS.double(), group="rotations3d:4", task=CLOUD)


def claims_a_symmetry(kind: type) -> bool:
    text = inspect.getdoc(kind) or ""
    return bool(
        re.search(
            r"(?<!not )\b(in|equi)variant (to|under|output)|is (in|equi)variant|-equivariant", text
        )
    )


def test_every_claim_of_a_docstring_is_in_the_list() -> None:
    modules = [importlib.import_module("orbical_studies.swiss_roll.networks")]
    for package in (zoo, networks):
        for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            modules.append(importlib.import_module(found.name))
    kinds = {
        kind
        for module in modules
        for kind in vars(module).values()
        if inspect.isclass(kind)
        and issubclass(kind, nn.Module)
        and kind.__module__ == module.__name__
    }
    tested = {name.split()[0] for name in CLAIMS} | {kind.__name__ for kind in OTHERWISE}
    assert len(kinds) > 10
    assert {kind.__name__ for kind in kinds if claims_a_symmetry(kind)} <= tested
