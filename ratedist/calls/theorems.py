"""Every theorem that certify takes, with its symbols."""

from __future__ import annotations

from typing import Any

from bounds import all_bounds

from .call import Call, Route


def theorems() -> dict[str, Any]:
    """Return every bound of the catalogue in plain values."""
    return {
        "theorems": [
            {
                "theorem": name,
                "symbols": [symbol.name for symbol in bound.parameters],
                "status": bound.status.value,
                "side": bound.side.value,
                "quantity": bound.quantity,
                "about": bound.setting.about(),
                "needs": {hypothesis.name.lower(): hypothesis.words for hypothesis in bound.setting.ordered()},
                "formula": bound.latex(),
            }
            for name, bound in all_bounds().items()
        ]
    }


CALL = Call(
    name="theorems",
    summary="every theorem that certify takes, with its symbols",
    route=Route(run=theorems, about="Every theorem that certify takes, with its symbols.", stated=False),
)
