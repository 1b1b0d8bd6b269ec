"""The layer that breaks a symmetry, planted in networks that keep it otherwise, is found first."""

from __future__ import annotations

import copy
import json
import warnings

import numpy as np
import pytest
import torch
from torch import nn
from typer.testing import CliRunner

import orbical as ob
from orbical.cli import _register, app
from orbical.errors import InputError
from orbical.figures import layer_errors as draw
from orbical.testing import layer_errors

WIDTH = 8


class Pool(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.flatten(2).mean(2)


class Tokens(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.flatten(2).transpose(1, 2)


class Position(nn.Module):
    def __init__(self, tokens: int, width: int) -> None:
        super().__init__()
        self.position = nn.Parameter(torch.randn(1, tokens, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.position


class Mean(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean(1)


def conv(inputs: int, outputs: int, size: int = 3, **options) -> nn.Conv2d:
    """A convolution whose kernels are the same after quarter turns."""
    options = {"padding": size // 2, "bias": False} | options
    layer = nn.Conv2d(inputs, outputs, size, **options)
    with torch.no_grad():
        layer.weight.copy_(sum(layer.weight.rot90(k, (2, 3)) for k in range(4)) / 2)
    return layer


def network(*layers: nn.Module, width: int = WIDTH) -> nn.Sequential:
    """Join layers with a linear classifier, whose logits have a deviation of about 1."""
    return nn.Sequential(*layers, nn.Linear(width, 4)).eval()


def scaled(net: nn.Sequential, x: torch.Tensor) -> nn.Sequential:
    with torch.no_grad():
        outputs = net(x)
        net[-1].weight /= outputs.std(0)[:, None]
        net[-1].bias.zero_().sub_(net(x).mean(0))
    return net


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


@pytest.fixture
def blobs() -> torch.Tensor:
    """Images with a frame that shifts do not fill."""
    x = torch.zeros(48, 1, 32, 32)
    x[..., 9:23, 9:23] = torch.rand(48, 1, 14, 14)
    return x


def block(inputs: int = WIDTH, **options) -> tuple[nn.Module, nn.Module]:
    return conv(inputs, WIDTH, **options), nn.ReLU()


SHIFTED = {
    "stride": ("2", lambda: network(*block(1), *block(stride=4), *block(), Pool())),
    "pooling": ("2", lambda: network(*block(1), nn.MaxPool2d(4), *block(), Pool())),
    "patches": (
        "0",
        lambda: network(
            nn.Conv2d(1, WIDTH, 8, stride=8, bias=False), nn.ReLU(), *block(size=1), Pool()
        ),
    ),
    "flatten": (
        "4",
        lambda: network(*block(1), *block(), nn.Flatten(), width=WIDTH * 32 * 32),
    ),
}


def around(inputs: int = WIDTH, **options) -> tuple[nn.Module, nn.Module]:
    return block(inputs, **{"padding_mode": "circular"} | options)


AROUND = {
    "zero padding": ("2", lambda: network(*around(1), *block(), *around(), Pool())),
    "reflecting padding": (
        "2",
        lambda: network(*around(1), *block(padding_mode="reflect"), *around(), Pool()),
    ),
    "no padding": ("2", lambda: network(*around(1), *block(padding=0), Pool())),
    "stride": ("2", lambda: network(*around(1), *around(stride=4), *around(), Pool())),
    "flatten": ("4", lambda: network(*around(1), *around(), nn.Flatten(), width=WIDTH * 32 * 32)),
}
TURNED = {
    "stride": ("2", lambda: network(*block(1), *block(stride=2), *block(), Pool())),
    "padding": (
        "2",
        lambda: network(*block(1), nn.ZeroPad2d((0, 5, 0, 5)), *block(padding=0), Pool()),
    ),
    "kernel": (
        "2",
        lambda: network(
            *block(1), nn.Conv2d(WIDTH, WIDTH, 3, padding=1, bias=False), nn.ReLU(), Pool()
        ),
    ),
    "flatten": ("2", lambda: network(*block(1), nn.Flatten(), width=WIDTH * 32 * 32)),
    "position": (
        "2",
        lambda: network(
            conv(1, 16, 1), Tokens(), Position(1024, 16),
            nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True), Mean(), width=16,
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("culprit", SHIFTED)
def test_what_breaks_shifts_is_found_first(culprit, blobs):
    name, make = SHIFTED[culprit]
    net = scaled(make(), blobs)
    found = layer_errors(net, blobs, group="translations:3:1", task="classification")
    assert found.first == name, found
    assert found.share[found.layers.index(name)] > 0.6
    before = found.error[: found.layers.index(name)]
    assert (before < 1e-5).all()


@pytest.mark.parametrize("culprit", AROUND)
def test_what_breaks_shifts_around_an_image_is_found_first(culprit):
    name, make = AROUND[culprit]
    x = torch.rand(48, 1, 32, 32)
    net, task = scaled(make(), x), ob.tasks.Classification(input=ob.actions.Periodic())
    found = layer_errors(net, x, group="periodic:32:32", task=task)
    assert found.first == name, found
    assert found.share[found.layers.index(name)] > 0.6
    assert (found.error[: found.layers.index(name)] < 1e-5).all()
    kept = scaled(network(*around(1), *around(), Pool()), x)
    assert layer_errors(kept, x, group="periodic:32:32", task=task).total < 0.01 * found.total


def test_features_of_a_signal_move_around_it_too():
    x = torch.rand(48, 2, 32)
    convs = [nn.Conv1d(2, WIDTH, 3, padding=1, padding_mode="circular")]
    convs.append(nn.Conv1d(WIDTH, WIDTH, 3, padding=1))
    net = nn.Sequential(convs[0], nn.ReLU(), convs[1], nn.ReLU(), Pool())
    task = ob.tasks.Classification(input=ob.actions.Periodic())
    found = layer_errors(net, x, group="periodic:32", task=task)
    assert found.first == "2", found
    assert (found.error[:2] < 1e-5).all()


@pytest.mark.parametrize("culprit", TURNED)
def test_what_breaks_quarter_turns_is_found_first(culprit, blobs):
    name, make = TURNED[culprit]
    x = blobs + 0.2 * torch.rand_like(blobs)
    layers = [str(place) for place in range(6)] if culprit == "position" else None
    x = x[:16] if culprit == "position" else x
    net = scaled(make(), x)
    found = layer_errors(net, x, group="cyclic:4", task="classification", layers=layers)
    assert found.first == name, found
    assert found.share[found.layers.index(name)] > 0.6
    assert found.share.sum() + found.rest == pytest.approx(1.0)


def test_an_invariant_network_has_no_culprit(blobs):
    net = scaled(network(*block(1), *block(), Pool()), blobs)
    found = layer_errors(net, blobs, group="cyclic:4", task="classification")
    assert found.first == ""
    assert found.total < 1e-4
    assert not found.share.any()


def test_features_of_a_group_convolution_move_with_mixed_channels():
    images, _ = ob.datasets.digits()
    net = ob.zoo.group_cnn.GroupCNN("cyclic:4", classes=10, channels=1, fields=(4, 8)).eval()
    found = layer_errors(
        net, images[:64], group="cyclic:4", task="classification", layers=["features.0"]
    )
    assert found.moves == ("as a field with mixed channels",)
    assert found.error[0] < 0.05


def test_a_layer_that_features_flow_around_has_no_share(blobs):
    class Skip(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.pool, self.last = conv(1, 1), Pool(), nn.Linear(1, 4)

        def forward(self, x):
            return self.last(self.pool(x + self.inner(x)))

    found = layer_errors(Skip(), blobs, group="cyclic:4", task="classification")
    assert found.layers == ("inner", "pool", "last")
    assert np.isnan(found.share).tolist() == [True, False, False]


def test_layers_that_write_into_their_inputs_do_not_change_what_was_seen(blobs):
    nets = [scaled(network(*block(1), *block(stride=2), Pool()), blobs)]
    nets.append(copy.deepcopy(nets[0]))
    nets[1][1].inplace = nets[1][3].inplace = True
    errors = [layer_errors(net, blobs, group="cyclic:4", task="classification") for net in nets]
    assert errors[0].error == pytest.approx(errors[1].error)
    assert errors[0].share == pytest.approx(errors[1].share)


def test_points_move_linearly_and_vectors_not_at_all():
    x = torch.randn(32, 20, 3)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.lift, self.norm, self.last = nn.Linear(3, 6, bias=False), Pool(), nn.Linear(6, 2)
            self.norm.forward = lambda x: x.norm(dim=-1).mean(1, keepdim=True).expand(-1, 6)

        def forward(self, x):
            return self.last(self.norm(self.lift(x)))

    net = Net()
    with torch.no_grad():
        net.lift.weight.copy_(torch.linalg.qr(torch.randn(6, 3))[0])
    task = ob.tasks.Classification(input=ob.actions.Points())
    found = layer_errors(net, x, group="rotations3d:16", task=task)
    assert found.moves == ("linearly", "not at all", "not at all")
    assert found.error[0] < 0.01
    assert found.first == ""


def test_layers_are_named_and_grouped_as_asked(blobs):
    net = scaled(network(*block(1), *block(stride=2), Pool()), blobs)
    names = {"stem": "1", "strided": "3", "head": "5"}
    found = layer_errors(net, blobs, group="cyclic:4", task="classification", layers=names)
    assert found.layers == ("stem", "strided", "head")
    assert found.first == "strided"
    with pytest.raises(InputError, match="layers"):
        layer_errors(net, blobs, group="cyclic:4", task="classification", layers=["stem"])
    with pytest.raises(InputError, match="torch module"):
        layer_errors(lambda x: x, blobs, group="cyclic:4", task="classification")


def test_the_class_behind_an_import_path_is_named(blobs):
    with pytest.raises(InputError, match=r"a torch module, .* got builtin_function_or_method$"):
        layer_errors("math:sqrt", blobs, group="cyclic:4", task="classification")


def test_a_network_without_layers_is_named(blobs):
    class Whole(nn.Module):
        def forward(self, x):
            return {"logits": x.mean((1, 2, 3))[:, None].repeat(1, 2)}

    task = ob.tasks.Classification(read=lambda out: out["logits"])
    with pytest.raises(InputError, match=r"layers: expected modules .* got none in Whole"):
        layer_errors(Whole(), blobs, group="cyclic:4", task=task)


def test_the_figure_has_a_bar_for_each_layer_and_the_dictionary_is_plain(blobs):
    net = scaled(network(*block(1), *block(stride=2), Pool()), blobs)
    found = layer_errors(net, blobs, group="cyclic:4", task="classification")
    left, _ = draw(found).axes
    assert [tick.get_text() for tick in left.get_yticklabels()] == found.titles
    assert [bar.get_width() for bar in left.patches] == pytest.approx(found.share.tolist())
    assert json.loads(json.dumps(found.to_dict()))["layers"] == list(found.layers)


def test_the_command_prints_the_same(tmp_path, monkeypatch):
    images, labels = ob.datasets.digits()
    (tmp_path / "layered.py").write_text(
        "import torch\nfrom orbical.zoo.group_cnn import GroupCNN\ntorch.manual_seed(0)\n"
        "net, other = (GroupCNN('cyclic:1', 10, 1, (4, 8)).eval() for _ in range(2))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    torch.manual_seed(0)
    net = ob.zoo.group_cnn.GroupCNN("cyclic:1", 10, 1, (4, 8)).eval()
    scan = ob.scan(
        {"net": net}, (images[:32], labels[:32]), group="cyclic:4", task="classification",
        keep="inputs", preprocess="symmetric", out=tmp_path / "run.zarr", progress=False,
    )  # fmt: skip
    _register()
    words = ["why", str(scan.path), "-m", "net=layered:net", "--figure", str(tmp_path / "why.png")]
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".* not the one that was scanned")
        printed = CliRunner().invoke(app, [*words, "--json"])
    assert printed.exit_code == 0, printed.output
    with pytest.warns(UserWarning, match="model 'net' is not the one that was scanned"):
        CliRunner().invoke(app, ["why", str(scan.path), "-m", "net=layered:other"])
    options = {"group": "cyclic:4", "task": "classification", "preprocess": "symmetric"}
    found = layer_errors(net, images[:32], **options)
    assert json.loads(printed.output)["share"] == pytest.approx(found.share.tolist(), abs=1e-3)
    assert (tmp_path / "why.png").exists()
    assert CliRunner().invoke(app, words).exit_code == 0
    np.savez(tmp_path / "train.npz", inputs=images[32:200], labels=labels[32:200])
    told = CliRunner().invoke(app, [*words, "--train", str(tmp_path / "train.npz")])
    train, new = (images[32:200], labels[32:200]), (images[:32], labels[:32])
    wanted = ob.advice.cause(net, train, new, **options)
    assert f"Cause: {wanted.sentence}." in " ".join(told.output.split()), told.output
    bare = tmp_path / "bare.npz"
    np.savez(bare, inputs=images[32:200])
    refused = CliRunner().invoke(app, [*words, "--train", str(bare)])
    assert refused.exit_code
    assert isinstance(refused.exception, InputError)


def test_preprocessing_runs_after_the_move_and_before_the_network():
    class Prepared(nn.Module):
        def __init__(self, net: nn.Module) -> None:
            super().__init__()
            self.net = net

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.net(3 * x - 1)

    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.Tanh(), nn.Flatten(), nn.Linear(256, 3))
    x, names = torch.rand(16, 1, 8, 8), ["0", "2", "3"]
    options = {"group": "cyclic:4", "task": "classification"}
    found = ob.testing.layer_errors(
        net, x, layers=names, preprocess=lambda batch: 3 * batch - 1, **options
    )
    inside = [f"net.{name}" for name in names]
    same = ob.testing.layer_errors(Prepared(net), x, layers=inside, **options)
    bare = ob.testing.layer_errors(net, x, layers=names, **options)
    assert found.total == pytest.approx(same.total)
    assert found.share == pytest.approx(same.share)
    assert found.total != pytest.approx(bare.total)


def test_predictions_that_are_all_alike_have_no_relative_error() -> None:
    """A saturated softmax gives every upright sample the same probabilities."""
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 2))
    with torch.no_grad():
        net[1].weight.zero_()
        net[1].weight[0, 0] = 1e12
        net[1].bias.copy_(torch.tensor([1.0, 0.0]))
    x = torch.rand(8, 1, 8, 8)
    x[:, :, 0, 0], x[:, :, 0, -1] = 1.0, -1.0
    found = ob.testing.layer_errors(net, x, group="cyclic:4", task="classification")
    assert np.isnan(found.total)
