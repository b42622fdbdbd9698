"""The largest stable outer rate of four merge rules, against the momentum and against a round's contraction."""

from __future__ import annotations

from typing import Any

import numpy as np
from common import curve, lines, panels, points, recorded

from bounds.dynamics.outer import largest_lr
from gpu_validation.judging.comparisons import exact_row
from gpu_validation.judging.verdict import Comparison
from gpu_validation.studies.study import Figure

RECORD = "outer_limits.jsonl"
TAU, WORKERS = 10, 4
RULES = {"blocking": 0, "corrected": 5, "eager": 0, "delayed": 0}  # and the steps in flight
MOMENTA = np.linspace(0, 0.95, 40)
CONTRACTIONS = np.geomspace(0.02, 0.98, 40)  # h


def rate(rule: str, h: float, momentum: float) -> float:
    """The limit where a round of TAU steps contracts by h."""
    x = -np.expm1(np.log1p(-h) / TAU)
    return float(largest_lr(rule, x=x, tau=TAU, delay=RULES[rule], m=WORKERS, momentum=momentum))


def measured(rule: str) -> list[dict[str, Any]]:
    """The recorded limits of one rule."""
    return [row for row in lines(RECORD) if row.get("rule") == rule]


def draw() -> Any:
    """Left the limit against the momentum at h = .5, right against h at momentum .9."""
    figure, (left, right) = panels(2, columns=2, height=4)
    for i, rule in enumerate(RULES):
        curve(left, i, MOMENTA, [rate(rule, 0.5, momentum) for momentum in MOMENTA], rule)
        curve(right, i, CONTRACTIONS, [rate(rule, h, 0.9) for h in CONTRACTIONS], rule)
        for row in measured(rule):
            if row["h"] == 0.5:
                points(left, i, row["momentum"], row["limit"])
            if row["momentum"] == 0.9:
                points(right, i, row["h"], row["limit"])
    left.plot([0.9], [0.7], "k*", markersize=10, label="DiLoCo's .7 at .9")
    right.axhline(0.7, color="k", linewidth=0.8)
    left.set(xlabel="outer momentum beta", ylabel="largest stable outer rate", title="h = .5", yscale="log")
    right.set(xlabel="h = 1 - (1 - eta lambda)^tau", title="beta = .9", xscale="log", yscale="log")
    left.legend()
    return figure


def figures() -> list[Figure]:
    """The one figure."""
    caption = (
        f"Theory as lines, Nesterov steps, tau = {TAU}, {WORKERS} workers; corrected: {RULES['corrected']} steps in "
        "flight. Below a line the rule is stable in an eigen-direction that a round contracts by h. Marks: measured, "
        "where runs with torch.optim.SGD as the outer optimizer begin to diverge. The star and the thin line are the "
        f"rate 0.7 at momentum 0.9 that DiLoCo's authors chose for blocking rounds."
    )
    late, own = (rate(rule, 0.5, 0.9) for rule in ("delayed", "corrected"))
    finding = f"At momentum 0.9 delayed merges are stable up to a rate of {late:.2f}, corrected up to {own:.2f}"
    return [recorded(draw, caption, RECORD, finding)]


def check() -> list[Comparison]:
    """Where runs begin to diverge, to half a per cent of the limit."""
    rows = []
    for rule in RULES:
        for row in measured(rule):
            limit = rate(rule, row["h"], row["momentum"])
            about = {"operator": rule, "workload": f"beta = {row['momentum']}, h = {row['h']}"}
            is_near = abs(row["limit"] / limit - 1) < 0.005
            rows.append(exact_row(row["limit"], limit, is_near, quantity="largest stable outer rate", **about))
    return rows
