"""Lists saved beside a scan: how a request reads and changes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ...errors import InputError, StoreError, check_name
from .scan_view import ScanView
from .subsets import Answer

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Entry = TypeVar("_Entry", bound="DataclassInstance")
Change = Callable[[list[_Entry]], list[_Entry]]


@dataclass(frozen=True)
class SavedList(Generic[_Entry]):
    """A list in a document beside the scan.

    Attributes:
        name: The document, and the field of an answer.
        entry: Reads an entry of a file; what it refuses raises an `InputError`.
        most: The most entries.
        changes: What a request can `do`: from the request to a change of the list.
    """

    name: str
    entry: Callable[[Any], _Entry]
    most: int
    changes: Mapping[str, Callable[[ScanView, Mapping[str, Any]], Change[_Entry]]]

    def answer(self, view: ScanView, message: Mapping[str, Any]) -> Answer:
        """Answer the list, after a change if the request has any."""
        do = message.get("do")
        if do is None:
            found = self.saved(view)
        else:
            check_name("do", do, self.changes)
            found = self._update(view, self.changes[do](view, message))
        return {self.name: [asdict(one) for one in found], "unsaved": view.sidecar.unsaved}, {}

    def saved(self, view: ScanView) -> list[_Entry]:
        """Read the list beside a scan."""
        return self._read(view.sidecar.read(self.name, []))

    def _update(self, view: ScanView, change: Change[_Entry]) -> list[_Entry]:
        def changed(document: Any) -> Any:
            after = change(self._read(document))
            if len(after) > self.most:
                raise InputError(self.name, f"at most {self.most}", len(after))
            return [asdict(one) for one in after]

        return self._read(view.sidecar.update(self.name, [], changed))

    def _read(self, document: Any) -> list[_Entry]:
        """Read a document; what is no list of entries raises `StoreError` with the remedy."""
        try:
            if not isinstance(document, list):
                raise InputError(self.name, "a list", type(document).__name__)
            return [self.entry(one) for one in document[: self.most]]
        except InputError as error:
            raise StoreError(f"{self.name}.json: {error}; repair or remove the file") from None
