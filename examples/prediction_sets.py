"""Prediction sets that contain the true digit nine times in ten, and where rotations break them.

Run: python examples/prediction_sets.py
"""

from sklearn.linear_model import LogisticRegression

import orbical as ob

images, labels = ob.datasets.digits()
model = LogisticRegression(max_iter=1000).fit(images[:800].flatten(1), labels[:800])
scan = ob.scan(
    {"logistic": model},
    (images[800:], labels[800:]),
    group="rotations:12",
    task="classification",
    keep="probabilities",
    progress=False,
)
for place in ("identity", "pooled", "position", "average"):
    found = ob.conformal.along_orbit(scan, ob.conformal.LAC(0.9), calibrate=place)
    worst = int(found.coverage.argmin("element").squeeze())
    print(
        f"calibrated on {place}: coverage {float(found.coverage.mean()):.2f}, at worst"
        f" {float(found.coverage[0, worst]):.2f} ({scan.group.name(worst)}),"
        f" {float(found.size.mean()):.1f} classes in a set"
    )
