"""Group convolutions: invariant to their group, and plain at order one."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import orbical as ob
from orbical.errors import InputError
from orbical.zoo.group_cnn import FieldNorm, GroupCNN, GroupConv


def network(group: str, **settings) -> GroupCNN:
    torch.manual_seed(0)
    model = GroupCNN(group, fields=(3, 4, 5), **settings).eval()
    for module in model.modules():
        if isinstance(module, FieldNorm):  # statistics as after training
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
    return model


@pytest.mark.parametrize("group", ["cyclic:2", "cyclic:4", "dihedral:1", "dihedral:4"])
def test_a_network_of_a_subgroup_of_d4_is_invariant_to_rounding(group):
    ob.testing.assert_equivariant(
        network(group), torch.rand(3, 3, 20, 20), group=group, task="classification"
    )


@pytest.mark.parametrize("group", ["cyclic:8", "cyclic:12", "dihedral:12"])
def test_quarter_turns_stay_exact_within_a_larger_group(group):
    ob.testing.assert_equivariant(
        network(group), torch.rand(2, 3, 20, 20), group="cyclic:4", task="classification"
    )


def test_the_plain_network_is_not_invariant():
    with pytest.raises(AssertionError, match="not equivariant"):
        ob.testing.assert_equivariant(
            network("cyclic:1"), torch.rand(3, 3, 20, 20), group="cyclic:4", task="classification"
        )


def smooth_blobs(count: int) -> torch.Tensor:
    """Off-center blobs that fade before the border, so that turning loses nothing."""
    axis = torch.linspace(-1, 1, 48)
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    centers = 0.4 * torch.randn(count, 3, 2, 1, 1, generator=torch.Generator().manual_seed(0))
    squared = (x - centers[:, :, 0]) ** 2 + (y - centers[:, :, 1]) ** 2
    return torch.exp(-squared / 0.05)


def test_kernels_turned_by_forty_five_degrees_act_alike_on_smooth_images():
    group = ob.groups.cyclic(8)
    layer = GroupConv(group, 3, 4, 5, regular=False)
    images = smooth_blobs(4)

    def turned(maps):
        return ob.actions.Images("bicubic").apply(group[1:2], maps)[0]

    def error():
        elements = layer(images).unflatten(1, (8, 4))
        expected = turned(elements.roll(1, 1).flatten(1, 2))[..., 12:-12, 12:-12]
        difference = layer(turned(images))[..., 12:-12, 12:-12] - expected
        return float((difference.norm() / expected.norm()).detach())

    corrected = error()
    pixels = torch.eye(25).view(-1, 1, 5, 5)
    layer.maps.copy_(ob.actions.Images().apply(group, pixels).reshape(8, 25, 25))
    assert corrected < 0.03
    assert error() > 10 * corrected


def test_the_group_of_one_element_is_an_ordinary_convolution():
    layer = GroupConv("cyclic:1", 3, 4, 5, regular=False)
    plain = nn.Conv2d(3, 4, 5, padding=2, bias=False)
    plain.weight.data = layer.kernel.data.view(4, 3, 5, 5)
    images = torch.rand(2, 3, 9, 9)
    assert torch.allclose(layer(images), plain(images), atol=1e-6)


def test_a_layer_turns_its_fields_and_permutes_their_elements():
    group = ob.groups.dihedral(4)
    layer = GroupConv(group, 2, 3, 3)
    fields = torch.rand(1, 2 * 8, 6, 6)
    for g in range(8):
        after = group.index_of(group[[g] * 8].compose(group[range(8)]))  # h stands at g h

        def moved(maps, fields_count, after=after, element=group[g : g + 1]):
            turned = ob.actions.Images().apply(element, maps)[0].unflatten(1, (8, fields_count))
            place = torch.empty_like(turned)
            place[:, after] = turned
            return place.flatten(1, 2)

        assert torch.allclose(layer(moved(fields, 2)), moved(layer(fields), 3), atol=1e-5)


def test_filters_that_were_kept_follow_every_change_of_the_kernel():
    layer = GroupConv("dihedral:4", 2, 3, 3)
    fields = torch.rand(1, 16, 6, 6)
    changes = [
        lambda: layer.kernel.data.mul_(2),  # in place, past every version counter
        lambda: setattr(layer.kernel, "data", torch.rand_like(layer.kernel)),
        lambda: layer.load_state_dict({"kernel": torch.rand_like(layer.kernel)}),
        layer.double,
    ]
    for change in changes:
        change()
        given = fields.to(layer.kernel.dtype)
        expected = layer(given).detach()
        for _ in range(2):
            with torch.inference_mode():
                assert torch.allclose(layer(given), expected, atol=1e-5)


def test_filters_are_made_once_for_an_unchanged_kernel(monkeypatch):
    layer = GroupConv("cyclic:4", 2, 3, 3)
    made = []
    monkeypatch.setattr(layer, "filters", lambda: made.append(1) or GroupConv.filters(layer))
    with torch.no_grad():
        layer(torch.rand(1, 8, 6, 6))
        layer(torch.rand(1, 8, 6, 6))
        assert len(made) == 1
        layer.eval()(torch.rand(1, 8, 6, 6))
        layer.kernel.mul_(2)
        layer(torch.rand(1, 8, 6, 6))
        assert len(made) == 3


def test_a_network_is_exported_with_its_filters():
    model = network("cyclic:4")
    images = torch.rand(2, 3, 16, 16)
    with torch.no_grad():
        program = torch.export.export(model, (images,))
        assert torch.allclose(program.module()(images), model(images), atol=1e-5)


@pytest.mark.parametrize("shape", [(2, 6, 5, 4), (1, 3, 1, 1), (2, 3, 1, 4)])
@pytest.mark.parametrize("training", [True, False])
def test_a_field_has_one_mean_and_variance_however_its_maps_are_stored(shape, training):
    fields = shape[1] // 3
    torch.manual_seed(0)
    maps = torch.randn(shape)
    norm = FieldNorm(fields, order=3).train(training)
    norm.running_mean.normal_()
    by_field = maps.unflatten(1, (3, fields)).transpose(1, 2).flatten(2)  # [n, fields, K h w]
    mean, variance = norm.running_mean.clone(), norm.running_var.clone()
    if training:
        mean, variance = by_field.mean((0, 2)), by_field.var((0, 2), correction=0)
    expected = (maps.unflatten(1, (3, fields)) - mean[:, None, None]) / (
        variance[:, None, None] + norm.eps
    ).sqrt()
    for stored in (maps, maps.contiguous(memory_format=torch.channels_last)):
        for recorded in (True, False):
            with torch.set_grad_enabled(recorded):
                found = norm(stored)
            assert torch.allclose(found, expected.flatten(1, 2), atol=1e-5)


def test_gradients_reach_the_base_kernel():
    model = network("cyclic:4").train()
    model(torch.rand(4, 3, 16, 16)).logsumexp(1).sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("group", ["translations:4:2", "rotations3d:8", "time_reversal"])
def test_a_group_that_is_no_point_group_of_the_plane_is_refused(group):
    with pytest.raises(InputError, match="expected cyclic:n or dihedral:n, got"):
        GroupCNN(group)


def test_an_even_kernel_is_refused():
    with pytest.raises(InputError, match="size: expected an odd kernel width, got 4"):
        GroupConv("cyclic:4", 1, 1, 4)
