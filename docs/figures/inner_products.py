"""Inner products of vector quantisers: bits above the limit of unbiased estimates."""

from __future__ import annotations

from typing import Any

import numpy as np
from common import curve, lines, panels, points, recorded

from bounds.limits import eden_inner_product_limit, inner_product_limit, turboquant_inner_product_limit
from gpu_validation.judging.comparisons import exact_row
from gpu_validation.judging.plotting import PALETTE, colour
from gpu_validation.judging.verdict import Comparison
from gpu_validation.studies.study import Figure
from operators import EDEN, Operator, RaBitQ, TurboQuant, parse

RECORD = "inner_products.jsonl"
UNBIASED = {"TurboQuant, prod": (TurboQuant, "prod"), "EDEN": (EDEN, "unbiased"), "RaBitQ": (RaBitQ, None)}
THEORY = {"TurboQuant, prod": turboquant_inner_product_limit, "EDEN": eden_inner_product_limit}
SPREAD = 4  # standard errors; the chance that one of the rows is further off is 1 in 500


def rows() -> list[tuple[Operator, dict[str, Any]]]:
    """(operator, record)."""
    return [(parse(row["operator"]), row) for row in lines(RECORD) if "operator" in row]


def excess(omega: Any, bits: Any) -> Any:
    """Bits per coordinate beyond those that the limit asks for at this error."""
    return bits - np.log2(1 + 1 / np.asarray(omega)) / 2


def measured(name: str, d: int) -> list[dict[str, Any]]:
    """The records of one unbiased quantiser, ascending in bits."""
    kind, form = UNBIASED[name]
    found = [
        row
        for op, row in rows()
        if type(op) is kind and row["d"] == d and form in (None, getattr(op, "form", getattr(op, "scale", None)))
    ]
    return sorted(found, key=lambda row: row["bits"])


def draw() -> Any:
    """Left the error against bits, right the bits above the limit."""
    figure, (left, right) = panels(2, columns=2, height=4)
    grid = np.arange(1, 5)
    limit = [inner_product_limit(bits=b, d=1) for b in grid]
    curve(left, 1, grid, limit, "limit of unbiased estimates", color=PALETTE[6])
    for i, name in enumerate(UNBIASED):
        if name in THEORY:
            line = [THEORY[name](bits_per_coordinate=int(b)) for b in grid]
            curve(left, i, grid, line, f"{name}, large d", color=colour(name))
            curve(right, i, grid, excess(line, grid), f"{name}, large d", color=colour(name))
        found = measured(name, 256)
        b, omega = np.array([row["bits"] for row in found]), np.array([row["omega_ip"] for row in found])
        points(left, i, b, omega, f"{name}, measured, d = 256", color=colour(name))
        points(right, i, b, excess(omega, b), f"{name}, measured, d = 256", color=colour(name))
    left.set(yscale="log", xlabel="bits per coordinate, norms not counted", ylabel="omega_ip")
    right.set(xlabel="bits per coordinate, norms not counted", ylabel="bits above the limit", ylim=(0, None))
    for ax in (left, right):
        ax.set_xticks(grid)
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def figures() -> list[Figure]:
    """The one figure."""
    n = measured("EDEN", 256)[0]["n"]
    caption = (
        f"Marks are measured: the mean of d (estimate - <q, x>)^2 / (|q| |x|)^2 over {n} Gaussian vectors of 256 "
        "coordinates with 16 Gaussian queries each. Lines are theory for large d: (pi/2) D(b - 1) for TurboQuant and "
        "D(b)/(1 - D(b)) for EDEN, D the Lloyd-Max distortion, and 1/(4^b - 1), which no unbiased estimate passes. At "
        f"one bit more than EDEN, TurboQuant has at best the same error."
    )
    turbo, eden = ([law(bits_per_coordinate=b) for b in range(1, 5)] for law in THEORY.values())
    ratios = np.divide(turbo, eden)
    finding = f"EDEN's error is {min(ratios):.1f} to {max(ratios):.1f} times smaller than TurboQuant's at equal bits"
    return [recorded(draw, caption, RECORD, finding)]


def check() -> list[Comparison]:
    """Errors lie near their constant, or below where it is a bound; no unbiased form is below the limit."""
    found = []
    for op, row in rows():
        about = {"operator": row["operator"], "workload": f"Gaussian, d = {row['d']}"}
        error, constant, allowed = row["omega_ip"], row["constant"], SPREAD * row["standard_error"]
        if row["kind"] == "exact":
            found.append(exact_row(error, constant, abs(error - constant) <= allowed, quantity="omega_ip", **about))
        elif row["kind"] == "bound":
            found.append(exact_row(error, constant, error <= constant, quantity="omega_ip", **about))
        if getattr(op, "form", None) != "mse":
            least = inner_product_limit(bits=row["message_bits"], d=row["d"])
            found.append(exact_row(error, least, error >= least, quantity="limit", **about))
    return found
