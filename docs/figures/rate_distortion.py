"""Distortion against real bits for every operator, with the limit, on synthetic vectors and real gradients."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from common import joined, lines, panels, recorded

from gpu_validation.judging.comparisons import exact_row
from gpu_validation.judging.plotting import PALETTE, colour, legend_below
from gpu_validation.judging.verdict import Comparison
from gpu_validation.studies.study import Figure

RECORD = "rate_distortion.jsonl"
LABELS = {"nmse": "squared error / squared norm", "gap": "bits above the limit"}
SYNTHETIC = ("gauss", "laplace", "t3", "sparse 5 %")
LEFT_OUT = "tcdq, 4 states"  # lies between those with 1 and 8 states
LEAST = 1e-6  # below it nothing is drawn
SAMPLING = 0.01  # of NMSE: three draws of 10^5 coordinates


def rows() -> list[dict[str, Any]]:
    """Records of one operator at one rate."""
    return [row for row in lines(RECORD) if "nmse" in row]


def sources(kind: str) -> list[str]:
    """Names of the vectors of a kind."""
    known = list(dict.fromkeys(row["source"] for row in rows()))
    return [s for s in known if s in SYNTHETIC] if kind == "synthetic" else [s for s in known if "dense" in s]


def operators() -> list[str]:
    """Those drawn."""
    return [name for name in dict.fromkeys(row["operator"] for row in rows()) if name != LEFT_OUT]


def groups() -> list[list[str]]:
    """Halves of the operators, in the order in which they were recorded."""
    names = operators()
    middle = -(-len(names) // 2)
    return [names[:middle], names[middle:]]


def draw(kind: str, quantity: str) -> Any:
    """One row a source, one column a group of operators; quantity is "nmse" or "gap"."""
    shown, columns = sources(kind), groups()
    figure, axes = panels(len(shown) * len(columns), columns=len(columns), height=3.2)
    rate = np.linspace(0.35, 6.1, 80)
    for n, ax in enumerate(axes):
        source, group = shown[n // len(columns)], columns[n % len(columns)]
        if quantity == "nmse":
            ax.plot(rate, 1 / (4**rate - 1), ":", color=PALETTE[6], label="limit, Gaussian")
        for i, operator in enumerate(group):
            own = [r for r in rows() if (r["source"], r["operator"]) == (source, operator) and r["nmse"] > LEAST]
            points = sorted((r["bits"], r[quantity]) for r in own)
            if points:
                look = {"color": colour(operator), "markersize": 4, "linewidth": 1}
                joined(ax, i, *zip(*points, strict=True), operator.replace("_", " "), **look)
        ax.set(title=source, xlabel="bits per coordinate", ylabel=LABELS[quantity])
        if quantity == "nmse":
            ax.set(yscale="log")
    for left, right in zip(axes[::2], axes[1::2], strict=True):  # one scale for what is compared
        ends = [(*ax.get_xlim(), *ax.get_ylim()) for ax in (left, right)]
        for ax in (left, right):
            ax.set(xlim=(min(e[0] for e in ends), max(e[1] for e in ends)))
            ax.set(ylim=(min(e[2] for e in ends), max(e[3] for e in ends)))
    legend_below(figure, *axes)
    return figure


def figures() -> list[Figure]:
    """Synthetic vectors, and gradients of networks in training."""
    common = (
        "Measured, every bit counted (entropy-coded QSGD is billed its entropy, and EDEN below one bit is not billed "
        "for naming what it sends). The limit is theory: the least for any unbiased operator (top-k: any contractive "
        "one) on Gaussian vectors; other vectors may be easier."
    )
    gaps = {kind: _gaps_of_tcdq(kind) for kind in ("gauss", *sources("gradients"))}
    finding = f"TCDQ comes within {min(gaps.pop('gauss')):.2f} bits per coordinate of the limit on Gaussian vectors"
    at_one = [_errors_at_one_bit(source) for source in sources("synthetic")]
    ratios = [errors["qsgd"] / errors["tcdq, 8 states"] for errors in at_one]
    least, most = min(ratios), max(ratios)
    times = f"At 1 bit per coordinate the error of QSGD is {least:.1f} to {most:.1f} times that of TCDQ with 8 states"
    below = -min(min(own) for own in gaps.values())
    fewer = f"On gradients TCDQ needs up to {below:.2f} bits per coordinate fewer than the limit for Gaussian vectors"
    vectors = f"Gaussian, Laplace, Student-t and sparse vectors. {common}"
    above = f"The same, as bits per coordinate above the limit. {common}"
    trained = f"Bits above the limit on gradients of an MLP and a CNN, coordinates exactly zero left out. {common}"
    return [
        recorded(partial(draw, "synthetic", "nmse"), vectors, RECORD, times),
        recorded(partial(draw, "synthetic", "gap"), above, RECORD, finding),
        recorded(partial(draw, "gradients", "gap"), trained, RECORD, fewer),
    ]


def _gaps_of_tcdq(source: str) -> list[float]:
    return [row["gap"] for row in rows() if row["source"] == source and row["operator"].startswith("tcdq")]


def _errors_at_one_bit(source: str) -> dict[str, float]:
    return {row["operator"]: row["nmse"] for row in rows() if (row["source"], row["rate"]) == (source, 1.0)}


def check() -> list[Comparison]:
    """No unbiased operator is below the limit on Gaussian vectors."""
    found = []
    for row in rows():
        if row["source"].startswith("gauss") and row["class"] == "unbiased":
            least = 1 / (4 ** row["bits"] - 1)
            about = {"operator": row["operator"], "workload": f"{row['source']}, d = {row['d']}", "quantity": "NMSE"}
            found.append(exact_row(row["nmse"], least, row["nmse"] >= least * (1 - SAMPLING), **about))
    return found
