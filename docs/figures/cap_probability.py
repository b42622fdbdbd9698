"""The share P(alpha, d) of the sphere within a cap, and the bracket it gives for every fixed-length code."""

from __future__ import annotations

from typing import Any

import numpy as np
from common import joined, lines, panels, recorded

from bounds.limits import fixed_length_bracket, worst_case_bits
from bounds.special.cap_probability import neg_log2_cap
from gpu_validation.judging.comparisons import exact_row
from gpu_validation.judging.plotting import LINES, PALETTE
from gpu_validation.judging.verdict import Comparison
from gpu_validation.studies.study import Figure
from operators import SphericalCompression, parse

RECORD = "bits_per_message.jsonl"
ALPHAS = (0.01, 0.1, 0.5)
DIMENSIONS = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


def draw() -> Any:
    """Left the cap's information content, right what lower and upper limit leave open."""
    figure, (left, right) = panels(2, columns=2, height=4)
    for i, alpha in enumerate(ALPHAS):
        joined(left, i, DIMENSIONS, [neg_log2_cap(alpha, d) / d for d in DIMENSIONS], f"alpha = {alpha}")
        left.axhline(-np.log2(alpha) / 2, color=PALETTE[i], linestyle=LINES[i], alpha=0.4)
        widths = [fixed_length_bracket(alpha, d).width / d for d in DIMENSIONS]
        joined(right, i, DIMENSIONS, widths, f"alpha = {alpha}")
    left.set(xscale="log", xlabel="d", ylabel="-log2 P(alpha, d) / d", title="bits per coordinate of one cap")
    right.set(xscale="log", yscale="log", xlabel="d", ylabel="bits per coordinate")
    right.set(title="upper minus lower limit, fixed length")
    left.legend(loc="center right", bbox_to_anchor=(1, 0.62))
    right.legend()
    return figure


def figures() -> list[Figure]:
    """The one figure."""
    caption = (
        "Theory. Left: the information in one cap of squared sine alpha, per coordinate; the thin lines are its limit "
        "log2(1/alpha)/2 for large d. Right: the distance between the lower limit for messages of one length and the "
        "random covering that reaches it. Messages of Spherical "
        "Compression were measured against the lower limit."
    )
    d = DIMENSIONS[-1]
    apart = max(fixed_length_bracket(alpha, d).width for alpha in ALPHAS) / d
    finding = f"At d = {d:,} the limits are less than {apart:.1g} bits per coordinate apart"
    return [recorded(draw, caption, RECORD, finding)]


def check() -> list[Comparison]:
    """The bracket is one, and no measured operator of the class is below its lower end."""
    rows = []
    for alpha in ALPHAS:
        for d in DIMENSIONS:
            found = fixed_length_bracket(alpha, d)
            about = {"operator": "any", "workload": f"alpha = {alpha}, d = {d}", "quantity": "bracket"}
            rows.append(exact_row(found.lo, found.hi, found.lo <= found.hi, **about))
    for row in lines(RECORD):
        op = parse(row["operator"]) if "operator" in row else None
        if isinstance(op, SphericalCompression):
            least = worst_case_bits(alpha=op.alpha, d=row["d"])
            about = {"operator": row["operator"], "workload": f"d = {row['d']}", "quantity": "longest message"}
            rows.append(exact_row(row["most_bits"], least, row["most_bits"] >= least, **about))
    return rows
