"""Reports with gaps in their scores: lists and colours are those of the session."""

from __future__ import annotations

import numpy as np


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
          samples: 5, group: { names: ["0", "1", "2", "3"] }, task: { labelled: true },
          arrays: { weights: { data: given.weights } },
        };
        const pack = { take: async () => ({ arrays: { values } }) };
        const context = createContexts(pack, state)({
          reference: "truth", metric: "score", labels: [], lasso: [], models: [], of: "",
        });
        const { mean, variance, models } = await context.moments("score");
        const joint = overModels({ data: mean, models }, [0, 1], 5);
        return [mean, variance, joint];
    """
    modules = {
        "hosts/static_context.js": "createContexts",
        "hosts/static_subset.js": "overModels",
    }
    found = in_node(modules, body, {"held": held, "weights": weights.tolist()})
    seen = np.ma.masked_invalid(values)
    mean = np.ma.average(seen, 2, np.broadcast_to(weights, values.shape))
    variance = np.ma.average(
        (seen - mean[..., None]) ** 2, 2, np.broadcast_to(weights, values.shape)
    )
    for ours, expected in zip(found, (mean.ravel(), variance.ravel(), mean.mean(0)), strict=True):
        np.testing.assert_allclose(np.array(ours, float), expected.filled(np.nan), atol=1e-6)
