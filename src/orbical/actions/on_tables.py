"""The action on tables: signs and exchanges of columns, by their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from .._lazy import pd
from ..errors import InputError, unknown_name
from ..groups import Elements, Group, parsed_columns_part
from .action import ByPart, Exact, action_matrices


class Columns(ByPart, Exact):
    """Rows of a table, `[B, F]`, of which `orbical.groups.columns` changes columns by name.

    Models receive a data frame. A pandas data frame as data has this action by itself.

    Args:
        names: the names of the columns, in their order.
        kinds: the types of the columns of the data frame, such as `"int64"`; by default numbers as
            they are.
        levels: for columns of text or categories, what their numbers stand for.

    Example:
        >>> from orbical.groups import columns
        >>> action = Columns(["dx", "dy", "age"])
        >>> action.apply(columns("-dx", "dx=dy"), torch.tensor([[1.0, 2.0, 30.0]]))[3].tolist()
        [[-2.0, 1.0, 30.0]]
    """

    part = "columns"
    parts: ClassVar[tuple[str, ...]] = ("columns",)
    dims: ClassVar[tuple[str, ...]] = ("sample", "column")

    def __init__(
        self,
        names: Sequence[str],
        kinds: Sequence[str] = (),
        levels: Mapping[str, Sequence[object]] | None = None,
    ) -> None:
        self.names, self.kinds = [str(name) for name in names], [str(kind) for kind in kinds]
        self.levels = {name: [*values] for name, values in (levels or {}).items()}

    def move_each(self, elements: Elements, x: Tensor) -> Tensor:
        """Change the columns of `x[K, B, F]`."""
        names, sources, signs = parsed_columns_part(elements.parts["columns"])
        places = np.array([self.names.index(name) for name in names])
        index = np.tile(np.arange(len(self.names)), (len(elements), 1))
        index[:, places] = places[sources]
        sign = np.ones(index.shape)
        sign[:, places] = signs
        rows = torch.as_tensor(index, device=x.device)[:, None].expand(x.shape)
        return x.gather(-1, rows) * action_matrices(sign, x)[:, None].to(x.dtype)

    def check(self, group: Group, x: Tensor) -> None:
        """Check that the columns exist, and that texts only change with texts."""
        super().check(group, x)
        if len(self.names) != x.shape[1]:
            raise InputError("names", f"the names of {x.shape[1]} columns", len(self.names))
        names, sources, signs = parsed_columns_part(
            group.parts.get("columns", np.empty((1, 0), str))
        )
        for place, name in enumerate(names.tolist()):
            if name not in self.names:
                raise unknown_name("group", name, self.names)
            others = {names[source] for source in sources[:, place]}
            alike = all(self.levels.get(other) == self.levels.get(name) for other in others)
            kinds = dict(zip(self.names, self.kinds, strict=False))
            numbers = name not in self.levels and "bool" not in kinds.get(name, "")
            if not alike or (not numbers and bool((signs[:, place] < 0).any())):
                raise InputError(
                    "group",
                    "signs of columns of numbers, and exchanges of columns of the same kind",
                    f"{name!r}, a column of {'numbers' if numbers else 'others'}, in {group.spec}",
                )

    def encode(self, given: pd.DataFrame) -> Tensor:
        """Return a data frame as numbers."""
        rows = [
            given[name]
            if name not in self.levels
            else given[name].map({level: code for code, level in enumerate(self.levels[name])})
            for name in self.names
        ]
        return torch.as_tensor(np.stack([np.asarray(row, float) for row in rows], 1))

    def decode(self, x: Tensor) -> pd.DataFrame:
        """Return rows `[N, F]` as a data frame of the types that were given."""
        frame = pd.DataFrame(x.cpu().numpy(), columns=self.names)
        for name, kind in zip(self.names, self.kinds, strict=False):
            if name in self.levels:
                codes = frame[name].fillna(-1).astype(int)
                words = pd.Categorical.from_codes(codes, self.levels[name])
                frame[name] = words if kind == "category" else words.astype(object)
            else:  # an unsigned number may have got a sign
                signed = kind.startswith("u") and bool((frame[name] < 0).any())
                frame[name] = frame[name].astype("int64" if signed else kind)
        return frame
