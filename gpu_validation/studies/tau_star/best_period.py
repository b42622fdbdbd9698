"""A problem on which Theorem 2's tau* is the best tau in truth, not only of a bound, and what is measured around it.

On a quadratic of equal eigenvalues with additive noise, the mean over the workers of ``|grad F|^2`` at their own
models, averaged over the steps of a time budget, is to leading order in eta L half the bound of Theorem 1 but for the
factor 1 - 1/m of its last term (``bounds.dynamics.additive``).  With many workers both are least at the same tau; here
the exact law is, among whole numbers, least at tau* = 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from bounds.dynamics import additive
from bounds.dynamics.fluctuation import at_workers, spread
from bounds.tau import tau_star
from operators import Identity

from ...measurement.batched_gradients import Rows
from ...measurement.ensemble import run_seeds
from ...records.storage import Record
from ...verdicts.comparisons import ratio_row
from ...verdicts.verdict import Comparison
from ...workloads import Quadratic
from .problems import DELAY_S, Problem

BEST = Problem(Quadratic(d=80, smallest=1.0, noise=62.5, eta=0.02), m=16)
AROUND = (1, 2, 4, 8, 16)  # so that half and double of a claim that is wrong by two are there as well
SEEDS, BLOCKS = 8, 4  # of one unit, and how many units there are


def claimed() -> int:
    """Return Theorem 2's choice."""
    w, c = BEST.workload, BEST.workload.constants()
    arguments = {"gap": c.gap, "eta": w.eta, "L": c.L, "sigma2": c.sigma2}
    best = tau_star(**arguments, delay_s=DELAY_S, time_s=BEST.time_s).integer
    assert best is not None  # there is noise
    return best


def exact_value_at_workers(tau: int) -> float:
    """Return the mean over workers and steps of ``E|grad F|^2`` at the workers' own models."""
    w, K = BEST.workload, BEST.steps(tau)
    assert isinstance(w, Quadratic)
    arguments: dict[str, Any] = {"eta": w.eta, "m": BEST.m}
    mean = additive.mean_squared_gradient(w.problem, K=K, **arguments)
    return float(mean + additive.mean_gradient_discrepancy(w.problem, tau=tau, **arguments))


@lru_cache(maxsize=8)
def variance_at_workers(tau: int) -> float:
    """Return the variance of one seed's value."""
    w, m = BEST.workload, BEST.m
    assert isinstance(w, Quadratic)
    return spread(w.problem, eta=w.eta, m=m, taus=(tau,), K=BEST.steps(tau), weights=at_workers(m)).variance


def measure_around(block: int) -> Record:
    """Return the value of some seeds at every tau of ``AROUND``, by simulated workers."""
    rows, seeds = Rows(BEST.workload), tuple(range(SEEDS * block, SEEDS * (block + 1)))
    values: dict[str, list[float]] = {}
    for tau in AROUND:
        steps = BEST.steps(tau)
        ensemble = run_seeds(BEST.workload, Identity(), tau=tau, steps=steps, seeds=seeds, m=BEST.m)
        _, squares = rows.evaluate(ensemble.points.reshape(-1, ensemble.points.shape[-1]))
        values[str(tau)] = squares.reshape(len(seeds), -1).mean(dim=1).tolist()
    variances = {str(tau): variance_at_workers(tau) for tau in AROUND}
    return {"claimed": claimed(), "values": values, "variances": variances}


def best_rows(records: Sequence[Record], level: float) -> list[Comparison]:
    """Return half and double the claimed tau against it: each ratio must be above 1."""
    if not records:
        return []
    claim = records[0]["claimed"]
    return [
        _ratio_row(records, claim, other, words, level)
        for other, words in ((claim // 2, "half"), (2 * claim, "double"))
        if str(other) in records[0]["values"] and str(claim) in records[0]["values"]
    ]


def _ratio_row(records: Sequence[Record], claim: int, other: int, words: str, level: float) -> Comparison:
    theirs, ours = ([v for r in records for v in r["values"][str(tau)]] for tau in (other, claim))
    variances = records[0]["variances"]
    return ratio_row(
        theirs,
        ours,
        (variances[str(other)], variances[str(claim)]),
        level=level,
        operator="whole models",
        workload=f"equal eigenvalues, m = {BEST.m}",
        quantity=f"mean of |grad F|^2 at the workers: {words} the tau of theorem 2 over that tau",
        theorem="theorem 2",
        tau=other,
    )
