"""Which of two wines has more alcohol? Exchange the wines, and the answer should be exchanged.

Run: python examples/tables.py

178 wines, measured twice in a row of a table each: the columns of one wine end in 1, those of the
other in 2. A random forest learns both places separately, and some answers depend on which wine
comes first. A logistic regression of the differences cannot.
"""

import numpy as np
import pandas as pd
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import orbical as ob


def pairs(count: int, rows: pd.DataFrame, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Return pairs of wines, and which of them has more alcohol."""
    random = np.random.default_rng(seed)
    first, second = (random.integers(len(rows), size=count) for _ in range(2))
    alcohol = rows["alcohol"].to_numpy()
    decided = alcohol[first] != alcohol[second]
    facts = rows.drop(columns="alcohol")
    sides = [facts.iloc[place[decided]].reset_index(drop=True) for place in (first, second)]
    table = pd.concat([side.add_suffix(f"_{n}") for n, side in enumerate(sides, 1)], axis=1)
    return table, (alcohol[first] < alcohol[second])[decided].astype(int)


def differences(table: pd.DataFrame) -> np.ndarray:
    """Return the columns of the first wine less those of the second."""
    half = table.shape[1] // 2
    return table.iloc[:, :half].to_numpy() - table.iloc[:, half:].to_numpy()


def scanned() -> ob.Scan:
    """Fit on pairs of one half of the wines, and scan pairs of the other."""
    wines = load_wine(as_frame=True).data
    train, test = pairs(1500, wines[::2], seed=0), pairs(300, wines[1::2], seed=1)
    regression = LogisticRegression(fit_intercept=False)
    scaler = StandardScaler(with_mean=False)
    models = {
        "forest": RandomForestClassifier(200, random_state=0).fit(*train),
        "differences": make_pipeline(FunctionTransformer(differences), scaler, regression).fit(
            *train
        ),
    }
    names = [name for name in wines if name != "alcohol"]
    exchange = ob.groups.columns(",".join(f"{name}_1={name}_2" for name in names))
    task = ob.tasks.Classification(
        classes=["first", "second"], representation={"change": {"first": "second"}}
    )
    return ob.scan(models, test, group=exchange, task=task, progress=False)


def main() -> None:
    """Print the results."""
    scan = scanned()
    changed = (
        scan.data["predicted"].isel(element=0) != scan.data["predicted"].isel(element=1)
    ).mean("sample")
    for model in scan.models:
        right = scan.data["correct"].sel(model=model).mean("sample").values
        print(
            f"{model:>11}: {right[0]:.1%} right as given, {right[1]:.1%} exchanged; "
            f"{float(changed.sel(model=model)):.1%} of the predictions depend on the order"
        )


if __name__ == "__main__":
    main()
