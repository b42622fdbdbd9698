"""Expected bits of Spherical Compression: counted, exact, and as published (after Albasyoni et al. 2020)."""

from __future__ import annotations

from typing import Any

import numpy as np
from common import curve, lines, panels, recorded

from bounds.limits import (
    spherical_compression_bits,
    spherical_compression_published_bits,
    spherical_compression_simple_bits,
    worst_case_bits,
)
from gpu_validation.judging.comparisons import exact_row
from gpu_validation.judging.plotting import MARKS, PALETTE, colour
from gpu_validation.judging.verdict import Comparison
from gpu_validation.studies.study import Figure
from operators import SphericalCompression, parse

RECORD = "bits_per_message.jsonl"
NORM_BITS = 31
BOUNDS = {
    "exact expectation": spherical_compression_bits,
    "published bound": spherical_compression_published_bits,
    "closed form": spherical_compression_simple_bits,
}
WIDER = 3.0  # times a 95 % half width: 5.9 standard errors, a false alarm below 10^-7 over all records together


def measured() -> list[tuple[float, int, dict[str, Any]]]:
    """(alpha, d, record)."""
    rows = [(parse(row["operator"]), row) for row in lines(RECORD) if "operator" in row]
    return [(op.alpha, row["d"], row) for op, row in rows if isinstance(op, SphericalCompression)]


def draw() -> Any:
    """Bits against alpha, one panel for each d."""
    dimensions = sorted({d for _, d, _ in measured()})
    figure, axes = panels(len(dimensions), columns=2, height=3)
    grid = np.linspace(0.15, 0.93, 40)
    for ax, d in zip(axes, dimensions, strict=True):
        found = sorted((alpha, row) for alpha, n, row in measured() if n == d)
        bits, half_widths = ([row[name] for _, row in found] for name in ("bits", "bits_half_width"))
        style = {"fmt": MARKS[0], "color": colour("spherical_compression"), "label": "measured"}
        ax.errorbar([alpha for alpha, _ in found], bits, half_widths, **style)
        for i, (label, bound) in enumerate(BOUNDS.items()):
            curve(ax, i, grid, [bound(alpha=a, d=d) for a in grid], label, color=PALETTE[i + 1])
        limit = [NORM_BITS + worst_case_bits(alpha=a, d=d) for a in grid]
        curve(ax, 3, grid, limit, "limit, with 31 bits of norm", color=PALETTE[6])
        ax.set(title=f"d = {d}", xlabel="alpha", ylabel="bits a message")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def figures() -> list[Figure]:
    """The one figure."""
    n = measured()[0][2]["n"]
    caption = (
        f"Marks are measured: mean length of {n} messages of Gaussian vectors, with 95 % intervals. Lines are theory: "
        "the exact expectation with the best Golomb code, two upper bounds on it, and the lower bound for messages of "
        "one length."
    )
    ratios = [row["bits"] / (NORM_BITS + worst_case_bits(alpha=alpha, d=d)) for alpha, d, row in measured()]
    finding = f"Messages are {min(ratios):.2f} to {max(ratios):.2f} times as long as the limit"
    return [recorded(draw, caption, RECORD, finding)]


def check() -> list[Comparison]:
    """The mean length is the exact expectation, and no error exceeds alpha."""
    rows = []
    for alpha, d, row in measured():
        about = {"operator": row["operator"], "workload": f"Gaussian, d = {d}"}
        exact = spherical_compression_bits(alpha=alpha, d=d)
        near = abs(row["bits"] - exact) <= WIDER * row["bits_half_width"]
        rows.append(exact_row(row["bits"], exact, near, quantity="expected bits", **about))
        small = row["most_nmse"] <= alpha * (1 + 2.0**-20)
        rows.append(exact_row(row["most_nmse"], alpha, small, quantity="largest error", **about))
    return rows
