"""Make the table of certified floors of one round: ``python docs/studies/certificates.py`` (minutes; extra ``pep``)."""

from __future__ import annotations

import itertools
from fractions import Fraction

from bounds.pep import Entry, certify, one_round
from bounds.pep.table import FILE, write

CLASSES = (("gradient", "0"), ("gradient", "1/10"), ("gradient", "1"), ("gap", "0"))
RATES = ("1/20", "1/10", "1/5", "1/2")
WORKERS, PERIODS = (4, 16), (2, 4, 8)
LONG = (("1/20", 4, 12), ("1/20", 4, 16), ("1/5", 16, 16))  # convex


def rows() -> list[tuple[str, str, int, int, str]]:
    grid = itertools.product(CLASSES, RATES, WORKERS, PERIODS)
    return [(about, x, m, tau, rho) for (about, rho), x, m, tau in grid] + [
        ("gradient", x, m, tau, "0") for x, m, tau in LONG
    ]


def main() -> None:
    table = []
    for about, x, m, tau, rho in rows():
        at_row = {"about": about, "x": Fraction(x), "m": m, "tau": tau, "rho": Fraction(rho)}
        certificate, floor = certify(one_round(**at_row))
        print(about, x, m, tau, rho, floor.hi, flush=True)
        table.append(Entry(**at_row, certificate=certificate))
    write(table)
    print(f"{len(table)} certificates, {FILE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
