"""Reports of every task: vectors, fields and boxes are answered as the session answers them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.interface.reports.writing import report_to_write
from orbical.interface.session import Session
from orbical.interface.wire import as_base64


def dipoles():
    """Vectors from points under rotations of space: trees of fields, a truth that turns."""
    generator = torch.Generator().manual_seed(0)
    pos = torch.randn(12, 5, 3, generator=generator)
    charge = torch.randn(12, 5, generator=generator)
    truth = torch.einsum("bn,bnd->bd", charge, pos)
    task = ob.tasks.Regression(
        input={"pos": ob.actions.Points(), "charge": ob.actions.Trivial()}, representation="vector"
    )
    models = {
        "near": lambda batch: torch.einsum("bn,bnd->bd", batch["charge"], batch["pos"]) + 0.1,
        "far": lambda batch: batch["pos"].mean(1),
    }
    return ob.scan(
        models,
        ({"pos": pos, "charge": charge}, truth),
        group="rotations3d:12",
        task=task,
        keep="inputs",
        progress=False,
    )


def flows():
    """Fields from pairs of frames under turns and reversed time."""
    generator = torch.Generator().manual_seed(1)
    pairs = torch.rand(6, 2, 1, 16, 16, generator=generator)
    truth = torch.randn(6, 2, 16, 16, generator=generator)

    def still(batch):
        return batch.mean(2) - 0.5

    return ob.scan(
        {"still": still, "double": lambda batch: 2 * still(batch)},
        (pairs, truth),
        group="dihedral:4*time_reversal",
        task="flow",
        keep="inputs",
        progress=False,
    )


def unlabeled():
    """Classes without truth, along shifts of a window in larger images."""
    images = torch.rand(10, 3, 20, 20, generator=torch.Generator().manual_seed(2))
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 16 * 16, 4))
    task = ob.tasks.Classification(input=ob.actions.Window(16))
    return ob.scan(net, images, group="translations:2", task=task, keep=("inputs",), progress=False)


def segmented_volumes():
    """Classes of voxels under turns of the cube: slices of inputs, truth and answers."""
    volumes = torch.rand(5, 2, 4, 4, 4, generator=torch.Generator().manual_seed(3))
    models = {"same": lambda batch: 4 * batch, "shifted": lambda batch: 4 * batch.roll(1, -1)}
    data = (volumes, volumes.argmax(1))
    return ob.scan(models, data, group="pointgroup:222", task="segmentation",
                   keep=("inputs", "segments"), progress=False)  # fmt: skip


def labels():
    """Several labels of signals, along shifts and gains."""
    signals = torch.randn(6, 1, 12, generator=torch.Generator().manual_seed(3))
    truth = torch.tensor([[1.0, 0.0, torch.nan]]).repeat(6, 1)
    task = ob.tasks.MultiLabel(ob.actions.SignalWindow(8))
    return ob.scan(
        lambda batch: batch[:, 0, :3],
        (signals, truth),
        group="shifts:2*gains:0.5:2:3",
        task=task,
        keep="inputs",
        progress=False,
    )


def texts():
    """Texts that depend on the place of a bright pixel."""
    images = torch.rand(6, 1, 4, 4, generator=torch.Generator().manual_seed(4))
    return ob.scan(
        lambda batch: [str(int(image.argmax())) for image in batch],
        (images, [str(int(image.argmax())) for image in images]),
        group="dihedral:4",
        task=ob.tasks.Text(length=3),
        keep="inputs",
        progress=False,
    )


@pytest.fixture(scope="module", params=[dipoles, flows, unlabeled, labels, texts])
def made(request):
    return reported(request.param())


def reported(scan):
    session = Session({"scan": scan})
    view = session.scan_view()
    _, parts = report_to_write(view, samples=None, methods=("pca",))
    return session, {name: as_base64(part) for name, part in parts.items()}


def both(report_answers, made, requests):
    session, parts = made
    asked = [{"sequence": 1, "selection": {}, **one} for one in requests]
    ours = report_answers(parts, asked)
    return zip(ours, [session.handle(one) for one in asked], strict=True)


def compare(found, arrays, tolerance):
    for name, array in arrays.items():
        ours = found["arrays"][name]
        assert ours["shape"] == list(np.shape(array)), name
        numbers = np.array(ours["data"], float).reshape(np.shape(array))
        np.testing.assert_allclose(numbers, array, atol=tolerance, rtol=1e-4, err_msg=name)


@pytest.mark.parametrize("kind", ["aggregate", "sample", "embedding", "color", "subset"])
def test_answers_are_those_of_the_session(report_answers, made, kind):
    metrics = made[0].state()[0]["metrics"]
    names = [metric["name"] for metric in metrics if metric["per_sample"]]
    requests = [{"kind": kind, "selection": {"metric": name, "sample": 3}} for name in names]
    requests += [{"kind": kind, "selection": {"color": "gap", "reference": "consensus"}}]
    for found, (header, arrays) in both(report_answers, made, requests):
        assert "error" not in found, found
        assert found.get("models") == header.get("models")
        compare(found, arrays, 3e-4)


def test_the_list_is_that_of_the_session(report_answers, made):
    requests = [{"kind": "list", "selection": {"order": order}} for order in ("best", "variable")]
    for found, (_, arrays) in both(report_answers, made, requests):
        compare(found, {"values": arrays["values"]}, 3e-4)


def test_a_place_is_that_of_the_session(report_answers, made):
    last = len(made[0].scan_view().group) - 1
    compare_places(report_answers, made, [(0, 0), (3, 5), (5, last)])


def test_slices_of_volumes_are_those_of_the_session(report_answers):
    compare_places(report_answers, reported(segmented_volumes()), [(0, 0), (3, 3)])


def compare_places(report_answers, made, places):
    requests = [
        {"kind": "place", "selection": {"sample": sample, "element": element}}
        for sample, element in places
    ]
    for found, (header, arrays) in both(report_answers, made, requests):
        assert "error" not in found, found
        assert found["name"] == header["name"]
        assert {*found["arrays"]} >= {*arrays} - {"input/whole"}
        compare(
            found,
            {name: array for name, array in arrays.items() if not name.startswith("input/whole")},
            0.5 / 255 + 1e-3,
        )


def test_hovering_is_answered(report_answers, made):
    for found, (_, arrays) in both(report_answers, made, [{"kind": "hover", "samples": [1, 4]}]):
        compare(found, {"values": arrays["values"]}, 3e-4)
        assert ("thumbnail" in found["arrays"]) == ("thumbnail" in arrays)
