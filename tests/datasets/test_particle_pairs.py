"""Particle pairs made on the spot: the images show the flow that is given as their truth."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from orbical.datasets import particle_pairs, photograph
from orbical.datasets.particle_images import KINDS, ParticleImageDraws, Seeding, flow_fields
from orbical.errors import InputError

STILL = Seeding(noise=(0, 0), leaving=(0, 0), background=(0, 0), diameter=(2.5, 3))


def fetched(frame, flow, share):
    """Read a frame where a share of the flow points, by an independent bicubic lookup."""
    size = frame.shape[-1]
    y, x = torch.meshgrid(*[torch.arange(size) + 0.5] * 2, indexing="ij")
    places = torch.stack([x + share * flow[:, 0], y + share * flow[:, 1]], -1) * 2 / size - 1
    return F.grid_sample(frame, places, mode="bicubic", align_corners=False)


def likeness(first, second):
    inner = (slice(None), slice(None), slice(10, -10), slice(10, -10))
    both = torch.stack([first[inner].flatten(), second[inner].flatten()])
    return float(torch.corrcoef(both)[0, 1])


@pytest.mark.parametrize("kind", KINDS)
def test_frames_agree_at_half_the_flow_each_way(kind):
    made = particle_pairs(3, size=64, kinds=[kind], seed=1, seeding=STILL)
    before, after = made["pair"][:, 0], made["pair"][:, 1]
    there = likeness(fetched(before, made["flow"], -0.5), fetched(after, made["flow"], 0.5))
    assert there > 0.97
    assert likeness(before, after) < there - 0.1


def test_the_truth_belongs_to_the_middle_of_the_time():
    """Where the flow changes along its own path, neither frame alone carries it as well."""
    made = particle_pairs(4, size=128, kinds=["turbulence"], seed=4, seeding=STILL)
    before, after, flow = made["pair"][:, 0], made["pair"][:, 1], made["flow"]
    middle = likeness(fetched(before, flow, -0.5), fetched(after, flow, 0.5))
    first = likeness(before, fetched(after, flow, 1.0))
    second = likeness(fetched(before, flow, -1.0), after)
    assert middle > max(first, second) + 0.01


def test_the_same_seed_gives_the_same_pairs_and_another_seed_others():
    once, again, other = (particle_pairs(6, size=32, seed=seed) for seed in (5, 5, 6))
    assert torch.equal(once["pair"], again["pair"])
    assert torch.equal(once["flow"], again["flow"])
    assert not torch.equal(once["pair"], other["pair"])


def test_values_shapes_and_names():
    made = particle_pairs(8, size=48)
    assert made["pair"].shape == (8, 2, 1, 48, 48)
    assert made["flow"].shape == (8, 2, 48, 48)
    assert made["pair"].min() >= 0
    assert made["pair"].max() <= 1
    assert made["kinds"] == [*KINDS, "uniform", "vortex"]
    assert len({*made["names"]}) == 8


def test_the_brightness_follows_the_density_and_the_diameter():
    """A Gaussian spot holds pi d^2 / 8 times its peak; the sheet dims by sqrt(pi / 2) / 2."""
    seeding = Seeding(
        density=(0.01, 0.01), diameter=(2, 2), peak=(0.5, 0.5), background=(0, 0), noise=(0, 0)
    )
    made = particle_pairs(8, size=128, kinds=["uniform"], seeding=seeding)
    # 2 particles a unit of depth, over depths -2..2, each dimmed by exp(-2 depth^2).
    expected = 0.5 * (3.1416 * 2**2 / 8) * 0.01 * (3.1416 / 2) ** 0.5 / 2
    assert made["pair"].mean() == pytest.approx(expected, rel=0.05)


def test_particles_that_leave_the_sheet_lose_their_partner():
    def agreement(share):
        seeding = Seeding(noise=(0, 0), leaving=(share, share), diameter=(2, 2))
        made = particle_pairs(4, size=64, kinds=["uniform"], seed=2, seeding=seeding)
        before, after = made["pair"][:, 0], made["pair"][:, 1]
        return likeness(fetched(before, made["flow"], -0.5), fetched(after, made["flow"], 0.5))

    assert agreement(0.0) > agreement(0.3) + 0.05 > agreement(0.8) + 0.1


@pytest.mark.parametrize("size", [64, 128])
@pytest.mark.parametrize("kind", KINDS)
def test_the_largest_displacement_lies_in_the_range_of_the_kind(kind, size):
    flow = flow_fields(kind, ParticleImageDraws(torch.Generator().manual_seed(0), 16), size, 12)
    fastest = flow[..., 12:-12, 12:-12].norm(dim=1).amax((1, 2))
    least, most = (limit * size / 128 for limit in KINDS[kind][1])
    assert (fastest >= least * 0.999).all()
    assert (fastest <= most * 1.001).all()


@pytest.mark.parametrize("kind", ["uniform", "shear", "backstep", "cylinder"])
def test_streams_go_to_the_right(kind):
    flow = flow_fields(kind, ParticleImageDraws(torch.Generator().manual_seed(0), 16), 64, 12)
    assert (flow[:, 0].mean((1, 2)) > 0.3 * flow.norm(dim=1).mean((1, 2))).all()


def test_vortices_turn_counter_clockwise():
    flow = flow_fields("vortex", ParticleImageDraws(torch.Generator().manual_seed(0), 16), 64, 12)
    curl = torch.gradient(flow[:, 1], dim=-1)[0] - torch.gradient(flow[:, 0], dim=-2)[0]
    assert (curl.mean((1, 2)) < 0).all()  # y points down


def test_turbulence_is_free_of_divergence_and_of_a_mean():
    flow = flow_fields(
        "turbulence", ParticleImageDraws(torch.Generator().manual_seed(0), 8), 64, 12
    )
    assert flow.mean((2, 3)).abs().max() < 1e-4
    stretch = torch.gradient(flow[:, 0], dim=-1)[0], torch.gradient(flow[:, 1], dim=-2)[0]
    inner = (slice(None), slice(1, -1), slice(1, -1))
    assert (stretch[0] + stretch[1])[inner].std() < 0.2 * stretch[0][inner].std()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"count": 0}, "count"),
        ({"count": 2, "size": 8}, "size"),
        ({"count": 2, "kinds": ["vortx"]}, "vortex"),
        ({"count": 2, "kinds": []}, "kinds"),
    ],
)
def test_bad_arguments_are_named(arguments, words):
    with pytest.raises(InputError, match=words):
        particle_pairs(**arguments)


def test_bad_seeding_is_named():
    with pytest.raises(InputError, match="density"):
        Seeding(density=(0.2, 0.1))
    with pytest.raises(InputError, match="diameter"):
        Seeding(diameter=(0.0, 9.0))


def test_photographs_of_a_given_flow_show_it():
    flow = torch.zeros(2, 2, 88, 88)
    flow[:, 0], flow[:, 1] = 3.0, -2.0
    made = photograph(flow, seed=1, seeding=STILL)
    before, after = made["pair"][:, 0], made["pair"][:, 1]
    assert made["flow"].shape == (2, 2, 64, 64)
    moved = before.roll((-2, 3), (-2, -1))
    assert likeness(moved, after) > 0.99
    assert likeness(before, after) < 0.7
    with pytest.raises(InputError, match="flow"):
        photograph(flow[:, :1])
