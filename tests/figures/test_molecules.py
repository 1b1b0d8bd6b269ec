"""Pictures of pictures."""

import numpy as np
import pytest

from orbical.errors import InputError
from orbical.figures import individual
from orbical.figures.pictures import molecule_picture

CO = np.array([[-0.6, 0, 0], [0.6, 0, 0]])


def test_atoms_have_the_colors_of_their_elements_and_stand_where_they_are():
    picture = molecule_picture(CO, [6, 8], size=80, yaw_deg=0, pitch_deg=0)
    red = (picture[..., 0] > 0.7) & (picture[..., 1] < 0.4)
    assert red.any()
    assert np.flatnonzero(red.any(0)).min() > 40  # oxygen lies to the right
    np.testing.assert_allclose(picture[40, 40], 0.55, atol=0.02)  # the bond
    assert (picture[:8] == 1).all()


def test_what_is_near_covers_what_is_far():
    line = [[0, 0, -1.0], [0, 0, 1.0]]
    front = molecule_picture(line, [6, 8], size=60, yaw_deg=0, pitch_deg=0)[30, 30]
    back = molecule_picture(line, [8, 6], size=60, yaw_deg=0, pitch_deg=0)[30, 30]
    assert front[0] > front[1] + 0.3  # oxygen, red
    assert np.ptp(back) < 0.1  # carbon, gray


def test_padding_is_not_drawn():
    padded = molecule_picture(np.vstack([CO, np.zeros((2, 3))]), [6, 8, 0, 0])
    np.testing.assert_array_equal(padded, molecule_picture(CO, [6, 8]))
    assert (molecule_picture(np.zeros((2, 3)), [0, 0], size=16) == 1).all()


def test_a_picture_stands_beside_the_orbit_of_a_molecule():
    import torch

    import orbical as ob

    pos = torch.tensor([[[0.0, 0, 0], [0.96, 0, 0], [-0.24, 0.93, 0]]])
    numbers = torch.tensor([[8, 1, 1]])

    def net(batch):
        return {"energy": batch["pos"].square().sum((1, 2)), "forces": batch["pos"].abs()}

    data = {"pos": pos, "numbers": numbers}
    scan = ob.scan(net, data, group="rotations3d:16", task="atoms", progress=False)
    response = ob.nero.individual(scan, 0, metric="score_vs_consensus")
    figure = individual(response, molecule_picture(pos[0], numbers[0]))
    assert len(figure.axes) >= 2


def test_what_is_no_molecule_is_refused():
    with pytest.raises(InputError, match="positions: expected shape"):
        molecule_picture(CO, [6])
    with pytest.raises(InputError, match="size: expected an integer >= 8"):
        molecule_picture(CO, [6, 8], size=2)
