"""Position bias, worst orders and averages over orders, against counts in plain Python."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

import orbical as ob

OPTIONS = 4
SIZE = 120
RNG = np.random.default_rng(7)
WORTH = {f"option {k}": float(RNG.normal()) for k in range(SIZE * OPTIONS)}
TABLE = [
    (f"question {q}", [f"option {OPTIONS * q + k}" for k in range(OPTIONS)], int(a))
    for q, a in enumerate(RNG.integers(0, OPTIONS, SIZE))
]
PLANTED = np.array([1.0, 0.25, 0.0, -0.25])


def model(bias):
    def answer(question, options):
        return [[WORTH[text] + bias[p] for p, text in enumerate(row)] for row in options]

    return answer


def scanned(bias=PLANTED, group="permutations:4"):
    return ob.scan(model(bias), TABLE, group=group, task="choice", progress=False)


@pytest.fixture(scope="module")
def planted():
    return scanned()


def by_hand(bias, orders):
    """Yield question, order, the chosen position and whether it is right."""
    for q, (question, options, answer) in enumerate(TABLE):
        for order in orders:
            shown = [options[row] for row in order]
            scores = model(bias)([question], [shown])[0]
            best = max(range(OPTIONS), key=scores.__getitem__)
            yield q, order, best, shown[best] == options[answer]


def test_shares_of_positions_are_counts(planted):
    orders = list(itertools.permutations(range(OPTIONS)))
    rows = list(by_hand(PLANTED, orders))
    counts = Counter(best for _, _, best, _ in rows)
    found = ob.nero.position_bias(planted).isel(model=0)
    expected = [counts[p] / len(rows) for p in range(OPTIONS)]
    assert np.allclose(found["chosen"], expected)
    assert np.allclose(found["fair"], 0.25)
    assert np.allclose(found["bias"], np.array(expected) - 0.25)
    assert np.allclose(found["distance"], np.abs(np.array(expected) - 0.25).sum() / 2)
    for position in range(OPTIONS):
        at = [right for q, order, _, right in rows if order.index(TABLE[q][2]) == position]
        assert float(found["accuracy"][position]) == pytest.approx(np.mean(at))
    assert (found["bias_low"] < found["bias"]).all()
    assert float(found["bias_low"][0]) > 0


def test_a_planted_bias_is_found_with_its_size(planted):
    found = ob.nero.position_bias(planted)["log_bias"].values[0]
    assert np.allclose(found, PLANTED - PLANTED.mean(), atol=1e-5)
    cyclic = ob.nero.position_bias(scanned(group="cyclic_orders:4"))["log_bias"].values[0]
    assert np.allclose(cyclic, PLANTED - PLANTED.mean(), atol=1e-5)


def test_a_bias_whose_probabilities_round_to_0_has_no_size():
    found = ob.nero.position_bias(scanned(1000 * PLANTED)).isel(model=0)
    assert np.isnan(found["log_bias"]).all()
    assert np.isfinite(found["bias"]).all()


@pytest.mark.parametrize("group", ["permutations:4", "permutations:4:5", "reversal:4"])
def test_a_fair_model_has_no_bias_with_any_sample_of_orders(group):
    found = ob.nero.position_bias(scanned(np.zeros(OPTIONS), group)).isel(model=0)
    assert np.abs(found["bias"]).max() < 1e-12
    assert np.abs(found["log_bias"]).max() < 1e-6
    assert float(found["bias_low"].max()) <= 0 <= float(found["bias_high"].min())


def test_intervals_of_the_bias_cover_that_of_all_questions():
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.ones(OPTIONS), (4000, 24))
    orders = ob.groups.permutations(OPTIONS).parts["rows"]
    place = np.argsort(orders, 1)
    chosen = probabilities.argmax(-1)
    shown = place[np.arange(24), chosen]
    per_question = (shown == 0).mean(1) - 0.25
    truth = per_question.mean()
    hits = 0
    for _draw in range(200):
        some = per_question[rng.choice(4000, 60, replace=False)]
        _, low, high = ob.calibration.bounded_mean_interval(some, low=-1.0, high=1.0)
        hits += bool(low <= truth <= high)
    assert hits >= 190


def test_worst_orders_are_those_of_a_search(planted):
    found = ob.nero.worst_orders(planted).isel(model=0)
    score = planted.data["score"].values[0]
    rights = {}
    for q, _, _, right in by_hand(PLANTED, [*itertools.permutations(range(OPTIONS))]):
        rights.setdefault(q, []).append(right)
    for q in range(SIZE):
        name = "order " + str(found["order"][q].item())
        place = [planted.group.name(k) for k in range(24)].index(name)
        assert score[q, place] == score[q].min()
        assert float(found["correct"][q]) == pytest.approx(np.mean(rights[q]))
    kinds = Counter("always" if all(r) else "sometimes" if any(r) else "never"
                    for r in map(rights.get, range(SIZE)))  # fmt: skip
    for kind in ("always", "sometimes", "never"):
        assert float(found[kind]) == pytest.approx(kinds[kind] / SIZE)


@pytest.mark.parametrize("scale", [1.0, 1e-12])
def test_orders_that_differ_by_rounding_alone_are_equally_bad(scale):
    """The first order of a fair model was called its worst, because 0.1 + 0.2 is not 0.3."""
    noise = np.random.default_rng(0)

    def answer(question, options, floor=0.0):
        worth = np.array([[WORTH[text] for text in row] for row in options])
        probabilities = np.exp(worth) / np.exp(worth).sum(-1, keepdims=True)
        probabilities *= 1 + 1e-6 * noise.random(probabilities.shape)  # of single precision
        return scale * probabilities / probabilities.sum(-1, keepdims=True)

    def late(question, options):  # worse where the second of all options comes last, or third
        number = np.array([[int(text.split()[1]) % OPTIONS for text in row] for row in options])
        harmed = np.isin(number, 1) & (np.arange(OPTIONS) > 1)
        return np.log(answer(question, options)) - np.where(harmed, 0.1, 0.0)

    models = {"fair": lambda question, options: np.log(answer(question, options)), "late": late}
    data = [(question, options, 1) for question, options, _ in TABLE[:20]]
    scan = ob.scan(models, data, group="permutations:4", task="choice", progress=False)
    found = ob.nero.worst_orders(scan)
    assert {*found["order"].sel(model="fair").values} == {"no order is worse"}
    assert {*found["order"].sel(model="late").values} == {"A C B D"}  # the first of twelve


def test_averages_over_orders_are_means_by_hand(planted):
    found = ob.nero.order_averages(planted, random=[3]).isel(model=0)
    assert found["orders"].values.tolist() == ["1", "3 random", "cyclic", "all"]
    assert found["cost"].values.tolist() == [1, 3, 4, 24]
    probabilities = planted.data["probabilities"].values[0].astype(float)
    labels = np.array([answer for _, _, answer in TABLE])
    whole = probabilities.mean(1).argmax(-1) == labels
    assert float(found["accuracy"].sel(orders="all")) == pytest.approx(whole.mean())
    single = (probabilities.argmax(-1) == labels[:, None]).mean()
    assert float(found["accuracy"].sel(orders="1")) == pytest.approx(single)
    assert float(found["changed"].sel(orders="all")) == 0
    names = [planted.group.name(k).removeprefix("order ") for k in range(24)]
    rotated = [names.index(name) for name in ("A B C D", "B C D A", "C D A B", "D A B C")]
    one_cycle = probabilities[:, rotated].mean(1)
    # A bias that is added to logits is nearly removed by a cycle.
    assert (one_cycle.argmax(-1) == probabilities.mean(1).argmax(-1)).mean() > 0.9
    assert float(found["changed"].sel(orders="cyclic")) < float(found["changed"].sel(orders="1"))


def test_the_mean_over_random_orders_is_that_of_all_their_pairs(planted):
    """A mean over 64 draws was printed with four decimals."""
    probabilities = planted.data["probabilities"].values[0].astype(float)
    labels = np.array([answer for _, _, answer in TABLE])
    pairs = np.array([*itertools.combinations(range(24), 2)])
    right = probabilities[:, pairs].mean(2).argmax(-1) == labels[:, None]
    found = ob.nero.order_averages(planted, random=[2]).isel(model=0).sel(orders="2 random")
    assert float(found["accuracy"]) == pytest.approx(right.mean())
    changed = (right != right[:, :1]).any(1).mean()
    assert float(found["changed"]) >= changed > 0


def test_where_sets_of_orders_are_too_many_their_draws_agree(planted):
    """There are 735,471 sets of 8, times 120 questions."""
    first, second = (
        ob.nero.order_averages(planted, random=[8], seed=seed).isel(model=0).sel(orders="8 random")
        for seed in (0, 1)
    )
    for name in ("accuracy", "ece"):
        spread = float(first[f"{name}_error"])
        assert 0 < spread < 2e-4
        assert 0 < abs(float(first[name]) - float(second[name])) < 4 * spread
    exact = ob.nero.order_averages(planted, random=[2])
    assert not exact[["accuracy_error", "ece_error"]].to_array().any()


def test_scans_of_other_classes_are_refused():
    import torch

    scan = ob.scan(lambda x: x.flatten(1)[:, :3], torch.rand(2, 1, 4, 4), group="cyclic:4",
                   task="classification", progress=False)  # fmt: skip
    with pytest.raises(ob.errors.InputError, match="task='choice'"):
        ob.nero.position_bias(scan)


def test_judges_with_ties_have_no_position_for_a_tie():
    def judge(question, options):
        return [[WORTH[a] + 0.5, WORTH[b], 1.0] for a, b in options]

    pairs = [(q, options[:2], int(a > 1)) for q, options, a in TABLE]
    scan = ob.scan(judge, pairs, group="reversal:2", progress=False,
                   task=ob.tasks.Choice(classes=["first", "second", "tie"]))  # fmt: skip
    found = ob.nero.position_bias(scan).isel(model=0)
    ties = float((scan.data["predicted"] == 2).mean())
    assert 0 < ties < 1
    assert float(found["chosen"].sum()) == pytest.approx(1 - ties)
    assert float(found["bias"][0]) > 0


@pytest.mark.parametrize("group", ["permutations:4", "cyclic_orders:4", "permutations:4:5"])
@pytest.mark.parametrize("bias", [PLANTED, np.array([0.0, 0.0, 99.0, 0.0])])
def test_intervals_of_a_bias_are_possible_and_agree_with_those_of_shares(bias, group):
    """A bias was said to be within [-46.8%, 10.3%] where no share can be below 0."""
    some = ob.scan(model(bias), TABLE[:6], group=group, task="choice", progress=False)
    found = ob.nero.position_bias(some).isel(model=0)
    assert (found["bias_low"] <= found["bias"] + 1e-12).all()
    assert (found["bias"] <= found["bias_high"] + 1e-12).all()
    fair = found["fair"]
    if group == "permutations:4:5":  # what is fair depends on the question
        rows = some.group.parts["rows"]
        shares = np.stack([(rows == option).mean(0) for option in range(OPTIONS)])
        assert (found["bias_low"] >= -shares.max(0) - 1e-12).all()
        assert (found["bias_high"] <= 1 - shares.min(0) + 1e-12).all()
        return
    assert np.allclose(found["bias_low"], found["chosen_low"] - fair)
    assert np.allclose(found["bias_high"], found["chosen_high"] - fair)


def test_an_average_of_equal_probabilities_does_not_depend_on_rounding():
    """Means of a model that knows positions alone tie, and rounding chose among them."""

    def positional(question, options):
        return np.log(np.tile([0.1, 0.1, 0.7, 0.1], (len(options), 1)))

    scan = ob.scan(positional, TABLE, group="permutations:4", task="choice", progress=False)
    found = ob.nero.order_averages(scan).isel(model=0)
    assert found["changed"].sel(orders=["cyclic", "all"]).values.tolist() == [0, 0]
