"""Certified floors of rounds that compress their changes or average in flight, kept with their proofs."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from ..interval import Interval
from .certificate import Certificate, verify
from .overlapped import overlapped
from .program import Program
from .two_shots import two_shots

VARIANTS = Path(__file__).with_name("variants.json.gz")
PROGRAMS: dict[str, Callable[..., Program]] = {"two_shots": two_shots, "overlapped": overlapped}
COUNTS = ("m", "tau", "in_flight")


@dataclass(frozen=True)
class Variant:
    """One certified floor.

    Parameters
    ----------
    kind : str
        "two_shots" or "overlapped".
    at : dict of str to int or Fraction
        Arguments of the program of this name.
    certificate : Certificate
        The proof.
    """

    kind: str
    at: dict[str, int | Fraction]
    certificate: Certificate

    @property
    def floor(self) -> Interval:
        """Float interval around the proved upper bound (L = sigma2 = 1), checked again."""
        return verify(PROGRAMS[self.kind](**self.at), self.certificate)


def variants(file: Path = VARIANTS) -> Iterator[Variant]:
    """Yield the kept floors.

    Parameters
    ----------
    file : Path, optional
        Where from.
    """
    with gzip.open(file, "rt") as lines:
        for line in lines:
            record = json.loads(line)
            arguments = {name: value if name in COUNTS else Fraction(value) for name, value in record["at"].items()}
            weights = Certificate(**{name: record[name] for name in Certificate.__dataclass_fields__})
            yield Variant(record["kind"], arguments, weights)


def write_variants(rows: list[Variant], file: Path = VARIANTS) -> None:
    """Write the floors; the same rows give the same bytes.

    Parameters
    ----------
    rows : list of Variant
        What is kept.
    file : Path, optional
        Where to.
    """
    texts = []
    for row in rows:
        arguments = {name: value if name in COUNTS else str(value) for name, value in row.at.items()}
        weights = {name: list(getattr(row.certificate, name)) for name in Certificate.__dataclass_fields__}
        texts.append(json.dumps({"kind": row.kind, "at": arguments} | weights, separators=(",", ":")) + "\n")
    file.write_bytes(gzip.compress("".join(texts).encode(), mtime=0))
