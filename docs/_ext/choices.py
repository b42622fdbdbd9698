"""The decision table of compressors: which recorded operator comes closest to the limit, by kind of vector and rate."""

from __future__ import annotations

from markdown_text import table
from records import RATE_DISTORTION, RATES, Record, rows_of, with_provenance

VECTORS = {
    "gauss": "Gaussian",
    "laplace": "Laplace",
    "t3": "Student t, 3 degrees of freedom",
    "sparse 5 %": "Gaussian, 95 % of the coordinates zero",
    "mlp early, all": "gradient of a perceptron, early",
    "mlp late, all": "gradient of a perceptron, late",
    "cnn early, all": "gradient of a convolutional network, early",
    "cnn late, all": "gradient of a convolutional network, late",
}


def family(operator: str) -> str:
    """The operator's name without its options."""
    return operator.split(",", maxsplit=1)[0].split(maxsplit=1)[0]


def closest(kind: str, source: str, rate: float) -> list[Record]:
    """The record of least gap of every family, the least first.

    kind : class of the operators, ``"unbiased"`` or ``"contractive"``.
    source : vector, as it is recorded.
    rate : bits per coordinate.
    """
    found = [r for r in rows_of(RATE_DISTORTION, "gap") if (r["class"], r["source"], r["rate"]) == (kind, source, rate)]
    least: dict[str, Record] = {}
    for row in sorted(found, key=lambda row: row["gap"]):
        least.setdefault(family(row["operator"]), row)
    return list(least.values())


def compressor_choice(kind: str) -> str:
    """Show for every kind of vector and rate the two closest families, with bits above the limit of the class."""
    rows = [
        [words, *("; ".join(map(_cell, closest(kind, source, rate)[:2])) or "not recorded" for rate in RATES)]
        for source, words in VECTORS.items()
    ]
    return with_provenance(RATE_DISTORTION, table(["vector", *(f"{rate:g} bits" for rate in RATES)], rows))


def _cell(row: Record) -> str:
    return f"{row['operator'].replace('_', ' ')} {row['gap']:.3f}"
