"""A digest of the whole catalogue, so that a move of files can be shown to change nothing.

``python -m tests.bounds.digest > before.json`` before a change (from the root; about a minute), then ``python -m
tests.bounds.digest --against before.json`` after it: the second lists every bound that was added, removed or changed,
and ends with status 1 if one was removed or changed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp

from bounds import AssumptionViolated, Bound, NotCertifiable, all_bounds

from .point_samplers import points

POINTS = 20


def described(bound: Bound) -> dict[str, Any]:
    """All that a bound states, and its certified values at random points inside its assumptions, as plain values.

    The points depend on the bound's name and parameters only.
    """
    seed = int.from_bytes(hashlib.sha256(bound.name.encode()).digest()[:8], "big")
    at = points(bound, np.random.default_rng(seed), POINTS)
    return {
        "value": sp.srepr(bound.value),
        "assuming": sorted(map(sp.srepr, bound.assuming)),
        "free": repr(bound.free),
        "quantity": bound.quantity,
        "side": bound.side.name,
        "unit": bound.unit,
        "status": bound.status.name,
        "reference": str(bound.reference),
        "needs": sorted(item.name for item in bound.setting.needs),
        "concludes": bound.setting.concludes.name,
        "known_up_to": bound.setting.known_up_to,
        "examples": [[{name: str(value) for name, value in e.at.items()}, e.value, e.source] for e in bound.examples],
        "note": bound.note,
        "latex_name": bound.latex_name,
        "certified": [[point, certified(bound, point)] for point in at],
    }


def certified(bound: Bound, at: dict[str, float]) -> list[str]:
    """The ends of the enclosure as exact hexadecimal floats; no ends where there is no enclosure.

    A point on the edge of an assumption may miss it by a rounding that the fast evaluation allows.
    """
    try:
        interval = bound.enclose(**at)
    except (AssumptionViolated, NotCertifiable):
        return []
    return [float(interval.lo).hex(), float(interval.hi).hex()]


def digest(bound: Bound) -> str:
    """The hash of all that a bound states and of its certified values."""
    return hashlib.sha256(json.dumps(described(bound), sort_keys=True).encode()).hexdigest()


def main() -> int:
    """Print the digests, or what differs from those of a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", type=Path, help="digests printed earlier")
    options = parser.parse_args()
    now = {name: digest(bound) for name, bound in all_bounds().items()}
    if options.against is None:
        print(json.dumps(now, indent=0))  # noqa: T201
        return 0
    before = json.loads(options.against.read_text())
    changed = sorted(name for name in before.keys() & now if before[name] != now[name])
    removed, added = sorted(before.keys() - now), sorted(now.keys() - before)
    equal = len(before) - len(changed) - len(removed)
    print(f"{equal} equal; changed: {changed}; removed: {removed}; added: {added}")  # noqa: T201
    return 1 if changed or removed else 0


if __name__ == "__main__":
    sys.exit(main())
