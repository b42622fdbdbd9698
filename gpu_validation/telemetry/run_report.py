"""Report on a run as text and as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bounds.frame import frame

from ..judging.verdict import Comparison, Verdict
from ..records.storage import plain
from .findings import Findings
from .text import text

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class RunReport(Findings):
    """Report on a run: ``str`` returns the text, ``to_dict`` and ``to_json`` the numbers."""

    @property
    def accused(self) -> list[Comparison]:
        """The rows with verdict VIOLATED."""
        return [row for row in self.comparisons if row.verdict is Verdict.VIOLATED and row.decides]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, with infinities and nan as texts."""
        fields = {name: plain(getattr(self, name)) for name in self.__dataclass_fields__ if name != "comparisons"}
        return fields | {"comparisons": [plain(row.line()) for row in self.comparisons]}

    def to_frame(self) -> DataFrame:
        """Return a frame with one row per comparison, with its fields, looseness and evidence."""
        return frame([row.line() for row in self.comparisons])

    def to_json(self) -> str:
        """Return ``to_dict`` as JSON text."""
        return json.dumps(self.to_dict(), allow_nan=False)

    def __str__(self) -> str:
        return text(self)
