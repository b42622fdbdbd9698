"""Certify floors of compressed and overlapped rounds: ``python docs/studies/variants.py`` (extra ``pep``)."""

from __future__ import annotations

from fractions import Fraction

from bounds.pep import Variant, certify
from bounds.pep.variants import PROGRAMS, VARIANTS, write_variants

RATE = Fraction(1, 20)
CLASSES = (Fraction(0), Fraction(1))  # rho/L: convex, smooth
STAGES = (("1", "0"), ("1", "1/4"), ("1/10", "1/100"))  # omega1, omega2
COMPRESSED = ((4, 1), (4, 4), (16, 8))  # m, tau
FLIGHTS = ((4, 4, 1), (4, 4, 4), (16, 8, 4), (16, 8, 8))  # m, tau, in_flight


def places() -> list[tuple[str, dict[str, int | Fraction]]]:
    """Return kind and arguments of every row."""
    rows: list[tuple[str, dict[str, int | Fraction]]] = []
    for rho in CLASSES:
        for m, tau in COMPRESSED:
            for first, second in STAGES:
                stages = {"omega1": Fraction(first), "omega2": Fraction(second)}
                rows.append(("two_shots", {"x": RATE, "m": m, "tau": tau, "rho": rho} | stages))
        for m, tau, in_flight in FLIGHTS:
            rows.append(("overlapped", {"x": RATE, "m": m, "tau": tau, "rho": rho, "in_flight": in_flight}))
    return rows


def main() -> None:
    """Write the file."""
    table = []
    for kind, at in places():
        certificate, floor = certify(PROGRAMS[kind](**at))
        print(kind, {name: str(value) for name, value in at.items()}, floor.hi, flush=True)
        table.append(Variant(kind, at, certificate))
    write_variants(table)
    print(f"{len(table)} certificates, {VARIANTS.stat().st_size} bytes")


if __name__ == "__main__":
    main()
