"""`orbical orders`: which positions a model prefers, worst orders, and what averaging gains."""

from __future__ import annotations

from typing import SupportsFloat

from .._lazy import xr
from .._text import percent
from .arguments import Seed, Store
from .printing import Cell, Columns, Number, Sheet, format_flags, print_results
from .scan_summaries import position_summary_sheets, share_with_interval


@format_flags("json", "csv", "markdown", "latex")
def orders(
    store: Store,
    random: str = "2,4,8",
    level: float = 0.95,
    seed: Seed = 0,
    format_: str = "text",
) -> None:
    """Show how the order of options changes a model's predictions.

    \b
    orbical scan -t choice -m gemma=models/gemma -d questions.csv -o run.zarr
    orbical orders run.zarr

    Which positions are chosen and how far that is from fair, which questions are answered correctly
    in every order, in some and in none, and what averaging over orders gains and costs.

    Args:
        random: Numbers of random orders to average, such as 2,4,8.
        level: Nominal coverage of the intervals, which are over questions.
        seed: Seed of the sets of orders, which are drawn where they are too many to average all.
    """
    from ..errors import InputError
    from ..nero import order_averages, position_bias, worst_orders
    from ..store import load

    words = [word.strip() for word in random.split(",") if word.strip()]
    if not all(word.isdigit() for word in words):
        raise InputError("--random", "numbers such as 2,4,8", repr(random))
    scan = load(store)
    positions = position_bias(scan, level=level)
    sheets, records = position_summary_sheets(positions), _records("positions", positions)
    if scan.labeled:
        worst = worst_orders(scan, level=level)
        kinds = ("always", "sometimes", "never")
        rows: list[list[Cell]] = [
            [str(model), *(share_with_interval(worst.sel(model=model), kind) for kind in kinds)]
            for model in worst["model"].values
        ]
        sheets.append(Sheet("Questions answered correctly", ["model", *kinds], rows))
        means = order_averages(scan, [int(word) for word in words], level=level, seed=seed)
        shares = [name for name in worst if worst[name].dims == ("model",)]
        records += _records("questions", worst[shares]) + _records("averages", means)
        for model in means["model"].values:
            about = means.sel(model=model)
            lines = [about.isel(orders=place) for place in range(about.sizes["orders"])]
            sheets.append(Sheet.of(f"{model}: averaged over orders", lines, _AVERAGES))
    print_results(format_, records, sheets)


_AVERAGES: Columns = {
    "orders": lambda row: str(row["orders"].values),
    "passes": lambda row: str(int(row["cost"])),
    "accuracy": lambda row: share_with_interval(row, "accuracy", float(row["accuracy_error"])),
    "ECE": lambda row: Number(float(row["ece"]), spread=_drawn(row["ece_error"])),
    "depends on the orders": lambda row: percent(row["changed"], 1),
}


def _drawn(error: SupportsFloat) -> float | None:
    """Return the standard error of a mean over draws if it shows in four decimals."""
    return float(error) if float(error) >= 5e-5 else None


def _records(table: str, values: xr.Dataset) -> list[dict[str, object]]:
    """Return a labeled table as rows that name it."""
    rows = values.to_dataframe().reset_index().to_dict("records")
    return [{"table": table, **row} for row in rows]
