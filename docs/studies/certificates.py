"""Make the tables of certified floors: of one round, and of compressed and overlapped rounds (extra ``pep``).

python docs/measure.py studies/certificates.py {rounds,variants}  # minutes; writes the tables of bounds.pep
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, Literal

from bounds.pep import Entry, Variant, certify, one_round
from bounds.pep.table import write
from bounds.pep.variants import PROGRAMS, write_variants

CLASSES = (("gradient", "0"), ("gradient", "1/10"), ("gradient", "1"), ("gap", "0"))
RATES = ("1/20", "1/10", "1/5", "1/2")
WORKERS, PERIODS = (4, 16), (2, 4, 8)
LONG = (("1/20", 4, 12), ("1/20", 4, 16), ("1/5", 16, 16))  # convex
STAGES = (("1", "0"), ("1", "1/4"), ("1/10", "1/100"))  # omega1, omega2
COMPRESSED = ((4, 1), (4, 4), (16, 8))  # m, tau
FLIGHTS = ((4, 4, 1), (4, 4, 4), (16, 8, 4), (16, 8, 8))  # m, tau, in_flight
Place = dict[str, Any]


def rounds() -> Iterator[Place]:
    """Arguments of every row of the first table."""
    for (about, rho), x, m, tau in itertools.product(CLASSES, RATES, WORKERS, PERIODS):
        yield {"about": about, "x": Fraction(x), "m": m, "tau": tau, "rho": Fraction(rho)}
    for x, m, tau in LONG:
        yield {"about": "gradient", "x": Fraction(x), "m": m, "tau": tau, "rho": Fraction(0)}


def variants() -> Iterator[tuple[str, Place]]:
    """Kind and arguments of every row of the second; convex, then smooth."""
    for rho in (Fraction(0), Fraction(1)):
        for (m, tau), (first, second) in itertools.product(COMPRESSED, STAGES):
            stages = {"omega1": Fraction(first), "omega2": Fraction(second)}
            yield "two_shots", {"x": Fraction(1, 20), "m": m, "tau": tau, "rho": rho, **stages}
        for m, tau, in_flight in FLIGHTS:
            yield "overlapped", {"x": Fraction(1, 20), "m": m, "tau": tau, "rho": rho, "in_flight": in_flight}


def main(table: Literal["rounds", "variants"]) -> Iterator[dict[str, Any]]:
    """Certify every row, and write the table."""
    entries: list[Entry] = []
    others: list[Variant] = []
    for kind, at in variants() if table == "variants" else (("round", place) for place in rounds()):
        certificate, floor = certify(one_round(**at) if kind == "round" else PROGRAMS[kind](**at))
        if kind == "round":
            entries.append(Entry(**at, certificate=certificate))
        else:
            others.append(Variant(kind, at, certificate))
        yield {"kind": kind, **{name: str(value) for name, value in at.items()}, "floor": str(floor.hi)}
    if entries:
        write(entries)
    if others:
        write_variants(others)
