"""Sparse Dithering against its bounds and the limit (after Albasyoni et al. 2020, bits against distortion)."""

from __future__ import annotations

from typing import Any

import numpy as np
from common import curve, lines, panels, points, recorded

from bounds.limits import (
    gaussian_bits,
    gaussian_unbiased_bits,
    sparse_dithering_random_coarse_bits,
    sparse_dithering_random_whole_bits,
    sparse_dithering_whole_bits,
)
from gpu_validation.judging.comparisons import exact_row
from gpu_validation.judging.plotting import PALETTE, colour, legend_below
from gpu_validation.judging.verdict import Comparison
from gpu_validation.studies.study import Figure
from operators import ArithmeticSparseDithering, RandomisedSparseDithering, SparseDithering, parse

RECORD = "bits_per_message.jsonl"
CLASSES = {
    SparseDithering: "deterministic",
    ArithmeticSparseDithering: "deterministic, arithmetic code",
    RandomisedSparseDithering: "randomised",
}


def measured(kind: type) -> list[tuple[float, dict[str, Any]]]:
    """(nu or omega, record), ascending."""
    rows = [(parse(row["operator"]), row) for row in lines(RECORD) if "operator" in row]
    found = [(getattr(op, "nu", None) or op.omega, row) for op, row in rows if type(op) is kind]
    return sorted(found, key=lambda pair: pair[0])


def random_bits(omega: float, d: int) -> float:
    """The better of the two bounds on the expected length; fields of whole bits take at most 2 more."""
    fine = sparse_dithering_random_whole_bits(omega=omega, d=d)
    return min(fine, sparse_dithering_random_coarse_bits(omega=omega, d=d) + 2) if omega >= 1 else fine


def draw() -> Any:
    """Left the deterministic forms against the worst error, right the randomised one against omega."""
    figure, (left, right) = panels(2, columns=2, height=4)
    own = colour("sparse_dithering")
    for i, kind in enumerate((SparseDithering, ArithmeticSparseDithering)):
        pairs = measured(kind)
        per_coordinate = [row["bits"] / row["d"] for _, row in pairs]
        points(left, i, [nu for nu, _ in pairs], per_coordinate, f"measured, {CLASSES[kind]}", color=own)
    d = pairs[0][1]["d"]
    grid = np.geomspace(0.008, 0.5, 40)
    whole = [sparse_dithering_whole_bits(nu=nu, d=d) / d for nu in grid]
    curve(left, 0, grid, whole, "its bound, worst case", color=own)
    limit = [gaussian_bits(alpha=nu, d=d) / d for nu in grid]
    curve(left, 1, grid, limit, "limit of any operator", color=PALETTE[6])
    left.set(xscale="log", xlabel="nu, the largest squared error / squared norm", ylabel="bits per coordinate")
    pairs = measured(RandomisedSparseDithering)
    points(right, 2, [w for w, _ in pairs], [r["bits"] / d for _, r in pairs], "measured, randomised", color=own)
    grid = np.geomspace(0.015, 80, 40)
    mean = [random_bits(w, d) / d for w in grid]
    curve(right, 0, grid, mean, "its bound, expected", color=own)
    limit = [gaussian_unbiased_bits(omega=w, d=d) / d for w in grid]
    curve(right, 1, grid, limit, "limit of any unbiased operator", color=PALETTE[6])
    right.set(xscale="log", yscale="log", xlabel="omega", ylabel="bits per coordinate")
    legend_below(figure, left, right)
    return figure


def figures() -> list[Figure]:
    """The one figure."""
    n, d = measured(SparseDithering)[0][1]["n"], measured(SparseDithering)[0][1]["d"]
    caption = (
        f"Marks are measured: mean length of {n} messages of Gaussian vectors, d = {d}, everything counted. Lines are "
        "theory: the bound on the length of a message at this nu or omega, and the least that any operator of the "
        f"class needs on such vectors."
    )
    pairs = measured(RandomisedSparseDithering)
    ratios = [row["bits"] / gaussian_unbiased_bits(omega=omega, d=d) for omega, row in pairs]
    finding = f"Unbiased messages are {min(ratios):.2f} to {max(ratios):.2f} times as long as the limit"
    return [recorded(draw, caption, RECORD, finding)]


def check() -> list[Comparison]:
    """No message longer than its bound, no error above its parameter; the mean length is above the limit."""
    rows = []
    for kind, label in CLASSES.items():
        for value, row in measured(kind):
            about = {"operator": row["operator"], "workload": f"Gaussian, d = {row['d']}"}
            if kind is RandomisedSparseDithering:
                most = random_bits(value, row["d"])
                least = gaussian_unbiased_bits(omega=value, d=row["d"])
                rows.append(exact_row(row["bits"], most, row["bits"] <= most, quantity="expected bits", **about))
            else:
                most, least = sparse_dithering_whole_bits(nu=value, d=row["d"]), gaussian_bits(alpha=value, d=row["d"])
                held = row["most_bits"] <= most
                rows.append(exact_row(row["most_bits"], most, held, quantity="bits of the longest message", **about))
                small = row["most_nmse"] <= value
                rows.append(exact_row(row["most_nmse"], value, small, quantity=f"largest error, {label}", **about))
            rows.append(exact_row(row["bits"], least, row["bits"] >= least, quantity="limit", **about))
    return rows
