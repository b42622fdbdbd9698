"""Certified floors of one round, kept with their proofs: a table that needs no solver to be checked."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..interval import Interval
from .certificate import Certificate, verify
from .one_round import GAP, Case

FILE = Path(__file__).with_name("certificates.json.gz")


@dataclass(frozen=True)
class Entry(Case):
    """One certified floor.

    Parameters
    ----------
    certificate : Certificate
        The proof; the others say of what, as in ``Case``.
    """

    certificate: Certificate

    @property
    def floor(self) -> Interval:
        """Float interval around the proved upper bound (L = sigma2 = 1), checked again."""
        return verify(self.program(), self.certificate)


def entries(file: Path = FILE) -> Iterator[Entry]:
    """Yield the certificates of the table."""
    with gzip.open(file, "rt") as lines:
        for line in lines:
            record = json.loads(line)
            certificate = Certificate(**{name: record[name] for name in Certificate.__dataclass_fields__})
            yield Entry(
                record["about"], Fraction(record["x"]), record["m"], record["tau"], Fraction(record["rho"]), certificate
            )


def write(rows: list[Entry], file: Path = FILE) -> None:
    """Write a table; the same rows give the same bytes.

    Parameters
    ----------
    rows : list of Entry
        Its rows.
    file : Path, optional
        Where to.
    """
    texts = []
    for row in rows:
        record: dict[str, Any] = {"about": row.about, "x": str(row.x), "m": row.m, "tau": row.tau, "rho": str(row.rho)}
        record |= {name: list(getattr(row.certificate, name)) for name in Certificate.__dataclass_fields__}
        texts.append(json.dumps(record, separators=(",", ":")) + "\n")
    file.write_bytes(gzip.compress("".join(texts).encode(), mtime=0))


@lru_cache(maxsize=1)
def _by_workers() -> dict[tuple[str, int, int], list[Entry]]:
    rows: dict[tuple[str, int, int], list[Entry]] = {}
    for row in entries():
        rows.setdefault((row.about, row.m, row.tau), []).append(row)
    return rows


def row_of(*, about: str, x: Fraction, m: int, tau: int, rho: Fraction) -> Entry | None:
    """Return the row of the table with exactly these arguments, or None.

    Parameters
    ----------
    about : str
        "gradient" or "gap".
    x : Fraction
        eta L.
    m : int
        Number of workers.
    tau : int
        Local steps.
    rho : Fraction
        Hessians are >= -rho L.
    """
    same = [row for row in _by_workers().get((about, m, tau), []) if (row.x, row.rho) == (x, rho)]
    return same[0] if same else None


@lru_cache(maxsize=1024)
def certified_floor(*, about: str, x: Fraction, m: int, tau: int, rho: Fraction = Fraction(0)) -> float | None:
    """Return a proved upper bound of the floor of one round (L = sigma2 = 1), or None where the table has none.

    Between rows a larger eta L and a larger rho serve: what is L-smooth is L'-smooth for L' >= L, and what has Hessians
    >= -rho has them >= -rho' for rho' >= rho.  At an unchanged eta the floor of the gradient, in sigma2, is then at
    most the row's; that of the gap, in sigma2/L, the row's times L/L'.  Workers and periods are never rounded.

    Parameters
    ----------
    about : str
        "gradient" or "gap".
    x : Fraction
        eta L.
    m : int
        Number of workers.
    tau : int
        Local steps.
    rho : Fraction, optional
        Hessians are >= -rho L; 0 where F is convex.
    """
    bounds = [
        float(row.floor.hi) * (float(x / row.x) * (1 + 2.0**-50) if about == GAP else 1.0)
        for row in _by_workers().get((about, m, tau), [])
        if row.x >= x and row.rho * row.x >= rho * x
    ]
    return min(bounds, default=None)
