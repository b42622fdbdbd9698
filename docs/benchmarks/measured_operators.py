"""What every operator of the catalogue sends and loses on Gaussian vectors, beside its claim: the page's points.

    python docs/measure.py benchmarks/measured_operators.py  # writes ratedist/interfaces/page/measured.json

The first example of every operator with an unbiased or contractive claim, at three dimensions.  Every message is of a
vector of its own, with a key of its own; bits and nmse are means over the messages, with the half widths of 95 %
Student intervals.  ``constant`` is the claimed omega or alpha at that dimension,
``stated_bits`` the bits that the operator states for it: exact, at most on average, or at most.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from messages import LEVEL, of_gaussian_vectors

from bounds.claims import NoClaim, Unbiased
from gpu_validation.records.environment import environment
from operators import Operator, all_operators, specification

PAGE = Path(__file__).parents[2] / "ratedist" / "interfaces" / "page" / "measured.json"
SEED = 0
MESSAGES = {2**7: 400, 2**14: 40, 2**20: 5}  # by dimension; powers of two, at which rotations prove their claims
DIGITS = 6


def measure(op: Operator, d: int, n: int) -> dict[str, Any] | None:
    """One record; None where the operator claims nothing or does not take the dimension."""
    try:
        claim, size = op.claim(d), op.bits(d)
    except ValueError:
        return None
    if isinstance(claim, NoClaim):
        return None
    stated = next((b for b in (size.exact, size.expected_upper, size.worst_case) if b is not None), None)
    constant = claim.omega if isinstance(claim, Unbiased) else claim.alpha
    sent = of_gaussian_vectors(op, d, n, SEED)
    numbers = {"constant": constant, "stated_bits": stated}
    numbers |= {name: value for name, value in sent.items() if not name.startswith("most")}
    kind = "unbiased" if isinstance(claim, Unbiased) else "contractive"
    rounded = {name: None if value is None else float(f"{value:.{DIGITS}g}") for name, value in numbers.items()}
    return {"operator": specification(op), "kind": kind, "d": d, "n": n, **rounded}


def main() -> Iterator[dict[str, Any]]:
    """Write the points, one a line, and yield them."""
    subjects = [(cls.examples()[0], d, n) for d, n in MESSAGES.items() for cls in all_operators().values()]
    points = [point for subject in subjects if (point := measure(*subject))]
    head = {**environment(), "vectors": "standard normal", "seed": SEED, "level": LEVEL}
    lines = ",\n".join(json.dumps(point) for point in points)
    PAGE.write_text(f'{json.dumps(head)[:-1]}, "points": [\n{lines}\n]}}\n')
    yield from points
