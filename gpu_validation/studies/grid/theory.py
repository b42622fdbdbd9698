"""What theory says about a record: the bound that judges it, and the numbers that it predicts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from bounds import Bound
from bounds.dynamics import Quadratic, additive, heterogeneous, multiplicative
from bounds.dynamics.fluctuation import Spread, at_mean, at_workers, spread

from ...records.compression import Declared
from .records import Timing, Training


def covered(declared: Declared) -> bool:
    """Return whether a convergence theorem covers an operator with its own constants."""
    return declared.constant == 0 or (declared.kind == "Unbiased" and declared.constant is not None)


def theorem_for(record: Training) -> tuple[Bound | None, dict[str, float]]:
    """Return the convergence theorem that covers a cell, and the arguments that it needs beside those of Theorem 1."""
    from bounds import theorems

    declared = record.compression.declared
    if not covered(declared):
        return None, {}
    assert declared.constant is not None  # covered
    if declared.constant > 0:
        return theorems.pasgd_compressed, {"omega": declared.constant}
    if record.workload == MULTIPLICATIVE:
        return theorems.pasgd_multiplicative, {"noise_growth": record.parameters["noise_growth"]}
    return theorems.pasgd_iterations, {}


def left_over(bound: Bound, **at: float) -> float:
    """Return how much of the workers' own squared gradients the value of a theorem bounds beside that at their mean.

    The derivations of ``pasgd_iterations`` and of its two siblings end by leaving it out: one less the left side of
    their condition.
    """
    (condition,) = bound.assuming
    values = {symbol: at[symbol.name] for symbol in condition.free_symbols}
    return 1 - float(condition.lhs.subs(values))


def predicted_seconds(timing: Timing, tau: int, processes: int) -> float:
    """Return seconds per iteration by the runtime model: the slowest rank's mean over tau measured steps,
    and D / tau.
    """
    from bounds.runtime import Empirical, RuntimeModel

    model = RuntimeModel(step=Empirical(timing.step_s), delay_s=timing.delay_s.mean, m=processes)
    return float(model.seconds_per_iteration(tau=tau))


@dataclass(frozen=True)
class Law:
    """What a number of every seed is drawn from, where that is known.

    Parameters
    ----------
    quantity : str
        In words.
    values : tuple of float
        One number a seed.
    mean : float
        Of one of them; no variance where nothing is random.
    variance : float
        Of one of them; no variance where nothing is random.
    margin : float
        Up to which share of the mean a sample must be equal to it.
    """

    theorem: str
    quantity: str
    values: tuple[float, ...]
    mean: float
    variance: float
    margin: float


AT_MEAN = "squared gradient norm, average over steps"
AT_WORKERS = "squared gradient norm at the workers, average over steps"
LOSS = "loss at the end"
EXACT_ADDITIVE, EXACT_MULTIPLICATIVE = "exact dynamics with additive noise", "exact dynamics with multiplicative noise"
EXACT_DIFFERENT, SAME_NOISE = "exact dynamics of different data", "exact dynamics, same noise"
EXACT_LAWS = (EXACT_ADDITIVE, EXACT_MULTIPLICATIVE, EXACT_DIFFERENT)
ADDITIVE, MULTIPLICATIVE, DIFFERENT = "quadratic", "multiplicative", "heterogeneous"  # workloads of known law
NARROW, MIDDLE, WIDE = 0.1, 0.3, 0.5  # margins: of averages, of ends, of differences


def paired(quantity: str, tau: int) -> str:
    """Return the quantity of a difference to the run with the smallest tau, seed by seed."""
    return f"{quantity}: paired difference to tau = {tau}"


def exact_laws(record: Training) -> list[Law]:
    """Return the exact laws of a lossless operator on the quadratics; none for others."""
    if record.compression.declared.constant != 0:
        return []
    if record.workload == DIFFERENT and record.problem:
        return [_without_noise(record)]
    if record.workload not in (ADDITIVE, MULTIPLICATIVE):
        return []
    m, periods, K = record.processes, [record.tau], record.steps
    p, arguments = record.parameters, {"eta": record.parameters["eta"], "m": record.processes}
    problem = _quadratic(*_numbers(record))
    end = _spread(record, periods, 0.5 * at_mean(m), power=1)
    middle, local = _spread(record, periods, at_mean(m)), _spread(record, periods, at_workers(m))
    if record.workload == ADDITIVE:
        theorem = EXACT_ADDITIVE
        mean = float(additive.mean_squared_gradient(problem, K=K, **arguments))
        means = mean, mean + float(additive.mean_gradient_discrepancy(problem, tau=record.tau, **arguments))
        last = float(additive.suboptimality(problem, k=K, **arguments))
    else:
        theorem = EXACT_MULTIPLICATIVE
        rounds = {"tau": record.tau, "rounds": K // record.tau, "noise_growth": p["noise_growth"]}
        means = float(multiplicative.mean_squared_gradient(problem, **arguments, **rounds)), local.mean
        last = end.last_mean
    laws = [Law(theorem, AT_MEAN, record.gradient_norm2, means[0], middle.variance, NARROW)]
    if record.local_gradient_norm2 and record.tau > 1:  # at tau = 1 the workers are at their mean
        laws.append(Law(theorem, AT_WORKERS, record.local_gradient_norm2, means[1], local.variance, NARROW))
    return [*laws, Law(theorem, LOSS, record.final_loss, last, end.last_variance, MIDDLE)]


def paired_laws(record: Training, base: Training) -> list[Law]:
    """Return what more local steps cost against fewer, seed by seed with the same noise; where that is
    nothing, no law.
    """
    if record.compression.declared.constant != 0 or record.workload not in (ADDITIVE, MULTIPLICATIVE):
        return []
    m, periods, none = record.processes, [record.tau, base.tau], np.zeros((record.processes,) * 2)
    laws = []
    for quantity, field, weights in (
        (AT_MEAN, "gradient_norm2", at_mean(m)),
        (AT_WORKERS, "local_gradient_norm2", at_workers(m)),
    ):
        per_seed, other = getattr(record, field), getattr(base, field)
        spread = _spread(record, periods, np.block([[weights, none], [none, -weights]]))
        if per_seed and len(per_seed) == len(other) and spread.mean > 1e-6 * float(np.mean(other)):
            values = tuple(a - b for a, b in zip(per_seed, other, strict=True))
            words = paired(quantity, base.tau)
            laws.append(Law(SAME_NOISE, words, values, spread.mean, spread.variance, WIDE))
    return laws


def combined_variance(record: Training, weight: float) -> float | None:
    """Return variance of ``|grad F|^2`` at the mean plus so much of that at the workers, averaged over steps; None if
    unknown.
    """
    if record.compression.declared.constant != 0 or record.workload not in (ADDITIVE, MULTIPLICATIVE):
        return None
    m = record.processes
    return _spread(record, [record.tau], at_mean(m) + weight * at_workers(m)).variance


def _numbers(record: Training) -> tuple[int, float, float, int]:
    p = record.parameters
    return int(p["d"]), p["smallest"], p["noise"], int(p.get("copies", 1))


def _quadratic(d: int, smallest: float, noise: float, copies: int) -> Quadratic:
    from ...workloads import Quadratic as Workload

    return Workload(d=d, smallest=smallest, noise=noise, copies=copies).problem


def _spread(record: Training, taus: list[int], weights: np.ndarray, power: int = 2) -> Spread:
    p, table = record.parameters, tuple(map(tuple, weights.tolist()))
    run = record.processes, record.steps, power, *taus
    return _spread_of(_numbers(record), (p["eta"], p.get("noise_growth", 0.0)), run, table)


@lru_cache(maxsize=256)
def _spread_of(
    numbers: tuple[int, float, float, int],
    rates: tuple[float, float],
    run: tuple[int, ...],
    weights: tuple[tuple[float, ...], ...],
) -> Spread:
    m, K, power, *taus = run
    eta, growth = rates
    arguments = {"eta": eta, "noise_growth": growth}
    return spread(_quadratic(*numbers), m=m, taus=taus, K=K, weights=np.array(weights), power=power, **arguments)


def _without_noise(record: Training) -> Law:
    H, c = (np.array(record.problem[name], float) for name in ("hessians", "centres"))
    arguments: dict[str, Any] = {"eta": record.parameters["eta"], "tau": record.tau, "K": record.steps}
    mean = heterogeneous.mean_squared_gradient(H, c, np.zeros(c.shape[1]), **arguments)
    return Law(EXACT_DIFFERENT, AT_MEAN, record.gradient_norm2, mean, 0.0, NARROW)
