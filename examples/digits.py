"""Scan two digit classifiers over rotations: where do they fail, and do they know it?

Run: python examples/digits.py (needs the extra `demo`)
"""

import orbical as ob
from orbical.zoo import digits

images, labels = ob.datasets.mnist()
scan = ob.scan(
    {name: digits.load(name) for name in digits.NAMES},
    (images[:100], labels[:100]),
    group="rotations:36",
    task="classification",
)

print(ob.nero.summary(scan)[["accuracy", "confidence"]].to_dataframe().round(3))
print("invariance gap:", ob.nero.invariance_gap(scan)["total"].values.round(3))

calibration = ob.calibration.along_orbit(scan, "ece")
worst = calibration.argmax("element").values
for model, place in zip(scan.models, worst, strict=True):
    error = float(calibration.sel(model=model)[place])
    print(f"{model}: ECE is largest, {error:.3f}, at {scan.group.name(int(place))}")

ob.figures.save(ob.figures.aggregate(ob.nero.aggregate(scan)), "digits-score.png")
ob.figures.save(ob.figures.calibration.error_along_orbit(calibration), "digits-ece.png")
