"""Predictors from Python objects: modules, also of graphs, scikit-learn estimators, functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._imports_and_paths import import_extra, name_of, words_of
from .._ragged import EDGES, NODES, real_nodes, to_padded, to_ragged
from .._trees import Tree, as_tensors, leaves, tree_map
from ..errors import InputError, ModelError
from . import predictor
from .predictor import PartialOutputs, Predictor, Raw, Wrapper

_NEEDS_DERIVATIVES = ("nference tensor", "does not require grad", "not require gradient")
_MOST_CLASSES = 100_000  # whole numbers beyond are names, not column indices


class TorchPredictor(Predictor):
    """A torch module, run in eval and inference mode; its mode and device are restored.

    Inputs are cast to the precision of its weights. A tuple is passed as arguments, and a
    dictionary as keyword arguments if `forward` names all of its keys, as Hugging Face models do;
    else the dictionary is passed as it is. A module that differentiates in `forward` (forces as
    the gradient of an energy) cannot do so in inference mode; where that raises, it is run with
    derivatives from then on.

    Args:
        module: the module; it may be compiled, scripted or wrapped in `DataParallel`.
    """

    def __init__(self, module: torch.nn.Module) -> None:
        self.module = module
        self._inner = unwrapped_model(module)
        self._named = _forward_names(self._inner)
        self.source = name_of(type(self._inner))
        self._precisions = {p.dtype for p in module.parameters() if p.is_floating_point()}
        self._differentiates = False

    def __call__(self, batch: Tree) -> Raw:
        """Return the module's raw output for a batch."""
        batch = tree_map(self.cast, batch)
        if not self._differentiates:
            try:
                return self._run(batch)
            except torch.OutOfMemoryError:
                raise
            except RuntimeError as error:
                if not any(words in str(error) for words in _NEEDS_DERIVATIVES):
                    raise
        with torch.inference_mode(False), torch.enable_grad():
            batch = tree_map(lambda leaf: leaf.clone(), batch)  # not made in inference mode
            outputs = _detached(self._run(batch))
        self._differentiates = True
        return outputs

    def _run(self, batch: Tree) -> Raw:
        return as_tensors(predictor.call_model(self.module, batch, self._named))

    def cast(self, leaf: object) -> object:
        """Return a floating-point tensor in the precision of the weights, and anything else as is.

        Args:
            leaf: one field of a batch.

        Returns:
            The field.
        """
        if hasattr(leaf, "to_numpy"):  # a data frame
            leaf = torch.as_tensor(leaf.to_numpy(np.float32))
        if not isinstance(leaf, torch.Tensor) or not leaf.is_floating_point():
            return leaf
        # A module with weights in several precisions chooses for itself, but for double.
        mixed = len(self._precisions) > 1 and leaf.dtype != torch.float64
        if mixed or not self._precisions or leaf.dtype in self._precisions:
            return leaf
        return leaf.to(max(self._precisions, key=lambda kind: kind.itemsize))

    @contextmanager
    def ready(self, device: torch.device) -> Iterator[None]:
        """Put every submodule in eval mode on the device, and restore each of them."""
        modes = {module: module.training for module in self.module.modules()}
        try:
            if any(modes.values()):  # a view asks often, and both eval and to visit every module
                self.module.eval()
            with predictor.model_on_device(device, self.module, self.source):
                yield
        finally:
            for module, training in modes.items():
                module.training = training

    def fingerprint(self) -> str | None:
        """Return a hash of the printed architecture and of all parameters and buffers."""
        return predictor.predictor_state_hash(repr(self._inner), self._inner.state_dict())


def unwrapped_model(module: torch.nn.Module) -> torch.nn.Module:
    """Return the module inside of `torch.compile` and `DataParallel`."""
    inner = getattr(module, "_orig_mod", module)
    parallel = (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)
    while isinstance(inner, parallel):
        inner = getattr(inner.module, "_orig_mod", inner.module)
    return inner


def _forward_names(module: torch.nn.Module) -> frozenset[str]:
    if isinstance(module, torch.jit.ScriptModule):
        forward: Any = module.forward
        return frozenset(argument.name for argument in forward.schema.arguments)
    return predictor.parameter_names(module.forward)


def _detached(raw: object) -> Raw:
    """Detach the tensors of a raw output, inside plain containers and Hugging Face outputs."""
    if isinstance(raw, torch.Tensor):
        return raw.detach()
    if isinstance(raw, dict) and type(raw) is not dict:  # a ModelOutput keeps its attributes
        return type(raw)(**{name: _detached(value) for name, value in raw.items()})
    return tree_map(_detached, raw) if type(raw) in (dict, tuple, list) else raw


class SklearnPredictor(Predictor):
    """A scikit-learn estimator on flattened inputs: `predict_proba` if it has it, else `predict`.

    Data frames are passed as they are if it was fitted with names of columns.

    If its classes are whole numbers, column `c` of the output is class `c`, even if it was fitted
    without some of them. Of a multi-output classifier, column `k` is the probability that output
    `k` is 1, as a task of several labels takes it.

    Args:
        estimator: a fitted estimator.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator
        self.source = name_of(type(estimator))
        self.outputs = "probabilities" if hasattr(estimator, "predict_proba") else None
        if not _is_fitted_estimator(estimator):
            raise InputError("model", f"a fitted {type(estimator).__name__}", "an unfitted one")
        self._columns = _class_columns(estimator)

    def __call__(self, batch: Tree) -> Raw:
        """Return class probabilities, or values."""
        table = self._table(batch)
        if self.outputs is None:
            return torch.as_tensor(self.estimator.predict(table))
        found = self.estimator.predict_proba(table)
        if isinstance(found, list):
            return _label_probabilities_of_estimator(found, self.estimator.classes_)
        known = torch.as_tensor(found)
        if self._columns is None:
            return known
        every = known.new_zeros(len(known), int(self._columns.max()) + 1)
        every[:, self._columns] = known
        return every

    def _table(self, batch: Tree) -> object:
        """Return a data frame as it is, unless the estimator was fitted without column names."""
        if not hasattr(batch, "to_numpy"):
            columns = [leaf.flatten(1).cpu().numpy() for leaf in leaves(batch)]
            return np.concatenate(columns, axis=1)
        nameless = hasattr(self.estimator, "n_features_in_")
        named = hasattr(self.estimator, "feature_names_in_") or not nameless
        return batch if named else batch.to_numpy()


def _is_fitted_estimator(estimator: object) -> bool:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(estimator)
    except (NotFittedError, TypeError):  # estimators of other packages
        return hasattr(estimator, "n_features_in_")
    return True


def _label_probabilities_of_estimator(
    found: list[np.ndarray], classes: list[np.ndarray]
) -> torch.Tensor:
    """Return the probability of 1, `[N, K]`, from one table for each of K outputs."""
    for output, known in enumerate(classes):
        if not np.isin(known, (0, 1)).all():
            raise ModelError(
                f"model output: expected the classes 0 and 1 of each output, got {list(known)} of "
                f"output {output}; scan one model for each output"
            )
    # An output that was always 0 in training has no column for 1, and its sum is 0.
    columns = [part[:, known == 1].sum(1) for part, known in zip(found, classes, strict=True)]
    return torch.as_tensor(np.stack(columns, 1))


def _class_columns(estimator: object) -> np.ndarray | None:
    """Return the class of each column of `predict_proba`, None if they are 0, 1, 2, ..."""
    classes = getattr(estimator, "classes_", None)
    if not isinstance(classes, np.ndarray) or classes.dtype.kind not in "iu":
        return None
    usual = np.array_equal(classes, np.arange(len(classes)))
    indices = bool(((classes >= 0) & (classes < _MOST_CLASSES)).all())
    return classes if indices and not usual else None


class FunctionPredictor(Predictor):
    """A function on torch tensors, or on NumPy (or JAX) arrays.

    Batches are passed as to a torch module: a tuple as arguments, a dictionary as keyword arguments
    if the function names all of its keys.

    Args:
        function: the function.
        on: `"torch"` or `"numpy"`, the arrays it takes; None tries both once, torch first.
    """

    def __init__(self, function: Callable[..., object], on: str | None = None) -> None:
        self.function = function
        self._on = on
        self._named = predictor.parameter_names(function)
        self.source = name_of(function)

    def __call__(self, batch: Tree) -> Raw:
        """Return the function's raw output for a batch."""
        return self._first(batch) if self._on is None else self._call(batch, self._on)

    def _call(self, batch: Tree, on: str) -> Raw:
        given = predictor.to_numpy(batch) if on == "numpy" else batch
        return as_tensors(predictor.call_model(self.function, given, self._named))

    def _first(self, batch: Tree) -> Raw:
        """Find out which arrays the function takes; one that works is called once."""
        if predictor.takes_nothing(self.function):
            raise ModelError(
                f"{self.source}: expected a function of a batch, got one without parameters: if it "
                f"makes the model, pass what it returns, on the command line {self.source}()"
            )
        errors = []
        texts = not any(isinstance(leaf, torch.Tensor) for leaf in leaves(batch))
        for on in ("torch",) if texts else ("torch", "numpy"):
            try:
                outputs = self._call(batch, on)
            except torch.OutOfMemoryError:
                raise
            except Exception as error:
                where = "on texts" if texts else f"on {on} arrays"
                errors.append(f"{where}: {type(error).__name__}: {words_of(error)}")
            else:
                self._on = on
                return outputs
        raise ModelError(
            f"{self.source}: expected outputs for a batch of {predictor.count_inputs(batch)}, got "
            f"errors ({', '.join(errors)}){self._how_called(batch)}"
        )

    def _how_called(self, batch: Tree) -> str:
        """Describe what a function received whose parameters are not the fields of a dictionary."""
        if not isinstance(batch, dict) or self._named.issuperset(batch):
            return ""
        fields = ", ".join(batch)
        return f"; it received one dictionary: to receive its fields, name the parameters {fields}"

    def ready(self, device: torch.device) -> AbstractContextManager[None]:
        """Keep torch from recording gradients."""
        return torch.inference_mode()


def numpy_function(function: Callable[..., object]) -> FunctionPredictor:
    """Adapt a function on NumPy arrays, without trying it on tensors first.

    Args:
        function: the function.

    Returns:
        The predictor.

    See Also:
        FunctionPredictor: A function on tensors, or on what it takes.

    Example:
        >>> import torch
        >>> numpy_function(lambda x: x.astype(float).mean((1, 2, 3)))(torch.ones(2, 1, 4, 4))
        tensor([1., 1.], dtype=torch.float64)
    """
    return FunctionPredictor(function, on="numpy")


Pack = Callable[[dict[str, Tensor]], object]


class RaggedPredictor(Wrapper):
    """A model that takes graphs of different sizes in one batch, without padding.

    It receives a dictionary: the fields of all nodes one after the other (`pos [total, 3]`,
    `numbers [total]`), `edge_index [2, edges]` if there is one, the fields of graphs (`cell
    [N, 3, 3]`), `batch [total]` with the graph of each node, and `ptr [N + 1]` with the place where
    each graph begins. Outputs with a row for each node are padded for the scan, those with a row
    for each graph are taken as they are.

    Args:
        model: any model that `orbical.scan` takes: `model(batch) -> {energy, forces, stress}`.
        pack: a function from that dictionary to what the model takes; `orbical.predictors.to_pyg`
            for a `torch_geometric.data.Batch`.
        nodes: the names of the fields, and of the outputs, with a row for each node.
        edges: the names of the fields with a row for each edge.

    See Also:
        to_pyg: A batch of PyTorch Geometric.
        to_ragged: A padded batch without its padding.

    Example:
        >>> import torch
        >>> def springs(batch):
        ...     energy = torch.zeros(len(batch["cell"])).double()
        ...     energy.index_add_(0, batch["batch"], batch["pos"].square().sum(1))
        ...     return {"energy": energy, "forces": -2 * batch["pos"]}
        >>> import orbical as ob
        >>> from ase.build import molecule
        >>> scan = ob.scan(RaggedPredictor(springs), [molecule("H2O"), molecule("CH4")],
        ...                group="rotations3d:8", task="atoms", progress=False)
        >>> float(scan.data["forces_vs_consensus"].max()) < 1e-12
        True
    """

    def __init__(
        self,
        model: object,
        pack: Pack | None = None,
        nodes: Iterable[str] = NODES,
        edges: Iterable[str] = EDGES,
    ) -> None:
        from . import as_predictor

        if pack is not None and not callable(pack):
            raise InputError("pack", "a function of a ragged batch", repr(pack))
        super().__init__(as_predictor(model), f"ragged {'' if pack is None else name_of(pack)}")
        self.pack = pack
        self.nodes, self.edges = frozenset(nodes), frozenset(edges)

    def __call__(self, batch: Tree) -> Raw:
        """Return the model's outputs for a padded batch, padded alike."""
        if not isinstance(batch, dict):
            expected, remedy = "graphs, a dictionary of fields", "pass pos and mask"
            raise InputError("data", expected, type(batch), remedy=remedy)
        ragged = to_ragged(batch, self.nodes, self.edges)
        if isinstance(self.model, TorchPredictor):
            ragged = tree_map(self.model.cast, ragged)  # a packed batch is not looked into
        raw = self.model(ragged if self.pack is None else self.pack(ragged))
        mask = real_nodes(batch, self.nodes)
        if isinstance(raw, PartialOutputs):
            return PartialOutputs(self._padded(raw.outputs, mask), raw.errors)
        return self._padded(raw, mask)

    def _padded(self, raw: object, mask: Tensor, name: str = "") -> Raw:
        """Pad the outputs with a row for each node, by their names or their length."""
        if isinstance(raw, Mapping):
            return {key: self._padded(value, mask, str(key)) for key, value in raw.items()}
        if isinstance(raw, tuple | list):
            return tuple(self._padded(value, mask) for value in raw)
        total = int(mask.sum())
        if not isinstance(raw, Tensor) or raw.ndim == 0 or len(raw) != total:
            return raw  # of graphs, or the task says what is wrong
        # If every graph has one node, the length does not tell.
        return to_padded(raw, mask) if name in self.nodes or total != len(mask) else raw


def to_pyg(batch: dict[str, Tensor]) -> Any:
    """Return a ragged batch as a `torch_geometric.data.Batch`; needs the extra `graphs`.

    Args:
        batch: fields of nodes, edges and graphs, with `batch` and `ptr`.

    Returns:
        The batch, with the same fields; atomic numbers `numbers` are also `z`.

    See Also:
        RaggedPredictor: The predictor that packs its batches so.

    Example:
        >>> import torch
        >>> ragged = {"pos": torch.zeros(3, 3), "numbers": torch.tensor([1, 1, 8]),
        ...           "batch": torch.zeros(3).long(), "ptr": torch.tensor([0, 3])}
        >>> to_pyg(ragged).z.tolist(), to_pyg(ragged).num_graphs
        ([1, 1, 8], 1)
    """
    data = import_extra("torch_geometric.data", "graphs", "a batch of PyTorch Geometric")
    fields = {"z": batch["numbers"], **batch} if "numbers" in batch else batch
    return data.Batch(**fields)
