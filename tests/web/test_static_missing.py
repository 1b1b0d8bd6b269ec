"""Reports with gaps in their scores: lists, colors and calibration are those of the session."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import orbical as ob
from orbical.interface.reports.writing import report_to_write
from orbical.interface.session import Session
from orbical.interface.wire import as_base64


def bright(views):
    """Answer a box around the brightest pixel, or none where all is dim."""
    flat = views[:, 0].flatten(1)
    row, column = flat.argmax(1) // 24, flat.argmax(1) % 24
    sure = torch.where(flat.amax(1) < 0.93, 0.0, 0.3 + 0.6 * flat[:, 0])
    edges = [column - 4, row - 4, column + 4, row + 4]
    return torch.stack([*(edge.float() for edge in edges), sure, 0 * sure], -1)[:, None]


@pytest.fixture(scope="module")
def made():
    generator = torch.Generator().manual_seed(0)
    images = 0.92 * torch.rand(9, 1, 56, 56, generator=generator)
    objects = torch.zeros(9, 1, 5)
    for number in range(9):
        x, y = 8 + 2 * (number % 4), 8 + 3 * (number % 3)
        images[number, 0, 16 + y, 16 + x] = 1
        objects[number, 0, :4] = torch.tensor([x - 4, y - 4, x + 4, y + 4])
    scan = ob.scan(
        {
            "bright": bright,
            "right": lambda views: bright(views) + torch.tensor([4.0, 0, 4, 0, 0, 0]),
        },
        (images, objects),
        group="translations:16:8",
        task=ob.tasks.Detection(ob.actions.Window(24)),
        keep="inputs",
        progress=False,
    )
    session = Session({"scan": scan})
    view = session.scan_view()
    _, parts = report_to_write(view, samples=None, methods=("pca",))
    return session, {name: as_base64(part) for name, part in parts.items()}


def test_answers_are_those_of_the_session(report_answers, made):
    session, parts = made
    requests = [
        {"kind": "list", "selection": {"order": "worst"}},
        {"kind": "list", "selection": {"order": "variable", "metric": "confidence"}},
        *({"kind": "color", "selection": {"color": name}} for name in ("mean", "variance")),
        {"kind": "embedding", "selection": {}},
        *({"kind": "aggregate", "selection": {"metric": name}} for name in ("score", "ece")),
        *({"kind": "calibration", "selection": {"element": place}} for place in (0, 2, 7, 12)),
        {"kind": "calibration", "selection": {"scope": "orbit"}},
    ]
    asked = [{"sequence": 1, **one} for one in requests]
    for found, one in zip(report_answers(parts, asked), asked, strict=True):
        header, arrays = session.handle(one)
        assert found.get("count") == header.get("count"), one
        ours, theirs = (
            [(entry["model"], entry["name"], entry["value"]) for entry in part.get("measures", [])]
            for part in (found, header)
        )
        assert [entry[:2] for entry in ours] == [entry[:2] for entry in theirs], one
        assert [entry[2] for entry in ours] == pytest.approx([e[2] for e in theirs], abs=3e-4), one
        if one["kind"] == "list":
            assert {*found["arrays"]["samples"]["data"]} == {*range(9)}
        if header.get("count", 9) < 3:
            continue  # too few to be drawn
        for name, array in arrays.items():
            # Equal values may change places, and so may steps of a curve that meet a share of all.
            if name != "samples" and not name.startswith("cumulative_"):
                numbers = np.array(found["arrays"][name]["data"], float).reshape(np.shape(array))
                np.testing.assert_allclose(numbers, array, atol=3e-4, err_msg=f"{one} {name}")


def test_moments_and_means_of_models_leave_gaps_out(in_node):
    random = np.random.default_rng(0)
    values = random.random((2, 5, 4))
    values[0, 1, 2] = values[1, 1, 0] = values[0, 3] = values[:, 4] = np.nan
    weights = np.array([0.1, 0.2, 0.3, 0.4])
    held = np.where(np.isnan(values), None, values).ravel().tolist()
    body = """
        const data = Float32Array.from(given.held, (value) => value ?? NaN);
        const values = { data, shape: [2, 5, 4] };
        const state = {
          metrics: [{ name: "score", per_sample: true }], models: [{ name: "a" }, { name: "b" }],
          samples: 5, group: { names: ["0", "1", "2", "3"] }, task: { labeled: true },
          arrays: { weights: { data: given.weights }, sets: { data: [], shape: [0, 1] } },
          report: { sets: [] },
        };
        const pack = { take: async () => ({ arrays: { values } }) };
        const context = createContexts(pack, state)({
          reference: "truth", metric: "score", filter: [], subset: "", models: [], of: "",
        });
        const { mean, variance, models } = await context.moments("score");
        const joint = overModels({ data: mean, models }, [0, 1], 5);
        return [mean, variance, joint];
    """
    modules = {
        "hosts/static_context.js": "createContexts",
        "hosts/static_statistics.js": "overModels",
    }
    found = in_node(modules, body, {"held": held, "weights": weights.tolist()})
    seen = np.ma.masked_invalid(values)
    mean = np.ma.average(seen, 2, np.broadcast_to(weights, values.shape))
    variance = np.ma.average(
        (seen - mean[..., None]) ** 2, 2, np.broadcast_to(weights, values.shape)
    )
    for ours, expected in zip(found, (mean.ravel(), variance.ravel(), mean.mean(0)), strict=True):
        np.testing.assert_allclose(np.array(ours, float), expected.filled(np.nan), atol=1e-6)


def test_samples_that_failed_are_counted_as_in_the_session(report_answers):
    pytest.importorskip("ase", reason="ase is not installed")
    from ase.build import molecule
    from ase.calculators.emt import EMT

    molecules = [molecule(name) for name in ("H2O", "SiH4", "CH3CH2OH", "CH4", "NH3")]
    with pytest.warns(UserWarning, match="No EMT-potential for Si"):
        scan = ob.scan(
            {"emt": EMT()},
            molecules,
            group="rotations3d:8",
            task="atoms",
            keep="inputs",
            progress=False,
        )
    session = Session({"scan": scan})
    view = session.scan_view()
    _, made = report_to_write(view, samples=None, methods=("pca",))
    parts = {name: as_base64(part) for name, part in made.items()}
    some = {"filter": ["search:H4"]}
    kinds = [("aggregate", {}), ("aggregate", some), ("list", {}), ("list", some)]
    asked = [
        {"sequence": 1, "kind": kind, "selection": chosen}
        for kind, chosen in [*kinds, ("sample", {"sample": 1})]
    ]
    headers = [session.handle(one)[0] for one in asked]
    for found, header, one in zip(report_answers(parts, asked), headers, asked, strict=True):
        for name in ("count", "failed", "total"):
            assert found.get(name) == header.get(name), (name, one)
    assert [one.get("count") for one in headers[:4]] == [4, 1, 5, 2]
    assert "No EMT-potential" in headers[4]["failed"]["emt"]


def test_samples_that_failed_are_in_no_group(report_answers):
    images, labels = ob.datasets.digits()
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    scan = ob.scan(
        {"net": net}, (images[:30], labels[:30]), group="cyclic:4", task="classification",
        keep="inputs", progress=False,
    )  # fmt: skip
    session = Session({"scan": scan})
    view = session.scan_view()
    view.__dict__["without_result"] = np.arange(30) % 10 < 2  # labels 0 and 1, and others
    _, made = report_to_write(view, samples=None, methods=("pca",))
    asked = [{"sequence": 1, "kind": "classes", "selection": {"metric": "score"}}]
    header, _ = session.handle(asked[0])
    (found,) = report_answers({name: as_base64(part) for name, part in made.items()}, asked)
    assert found["groups"] == header["groups"]
    assert sum(group["count"] for group in header["groups"]) == 24
