"""Rules that choose tau and operator against every fixed tau and fixed pair, on the simulated clock, as JSON lines.

Run ``python docs/measure.py benchmarks/choosing.py > docs/data/choosing.jsonl``.

Fixed beforehand, here: problems, networks, coding seconds, targets and the grid.  m workers on equal links
(``Links``); D/Y is that of an uncompressed sum, a tenth of it latency, the rest bandwidth.  Coding takes so many local
steps a movement, as on a model whose step takes as long as 10 to 20 passes over its parameters.  A target is a share of
the fall of the loss that synchronous uncompressed training has in 300 steps with the same seed.  A time to it is read
between averagings, linear in log loss.

One line a problem, m, D/Y and share: seconds in local steps to the target, infinite (null) where it was not reached, of
whole models with every fixed tau, of the other operators with three of them, of "auto" for both, and of "auto" for tau
alone on whole models.  A fixed pair is simulated once, and timed on all networks: its losses do not depend on the
clock.  A last line has the quotients of all cells by D/Y and share: median, 90th percentile, largest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean, median
from typing import Any

from bounds.runtime import Coding, Links, RuntimeModel, ShiftedExponential
from gpu_validation.averaging.exchange.parts import LADDER, Candidates, exchange_named
from gpu_validation.records.storage import Record
from gpu_validation.studies.runs.batched_simulation import simulate_together
from gpu_validation.studies.runs.simulation import simulate
from gpu_validation.studies.runs.spec import TrainingRun
from gpu_validation.workloads import Kink, LogisticRegression, Quadratic, SmallNetwork, Workload
from gpu_validation.workloads.data import Dirichlet
from operators import specification

STEP = ShiftedExponential(0.9, 0.1)  # of a local step, the unit of time
RATIOS = (1.0, 5.0, 20.0)
SHARES = (0.9, 0.98)  # of the fall of the synchronous run
BUDGETS = {1.0: 1000, 5.0: 1600, 20.0: 4000}  # in local steps
LATENCY = 0.1  # of D
CODINGS = (Coding(0.0, 0.0), Coding(0.03, 0.015), Coding(0.1, 0.05), Coding(0.1, 0.05), Coding(0.1, 0.05))
TAUS = (4, 16, 64)
WHOLE_TAUS = (1, 2, 4, 8, 16, 32, 64, 128)
REFERENCE, LONGEST = 300, 600  # steps of the synchronous run, and of a fixed pair
SEED = 2
NAMES = ["whole" if operator is None else specification(operator) for operator in LADDER]


@dataclass(frozen=True)
class Problem:
    """Workload and optimizer; ``decay`` are steps and factors of the learning rate."""

    workload: Workload
    m: int = 4
    optimizer: str = "sgd"
    decay: tuple[tuple[int, float], ...] = ()


PROBLEMS = {
    "mlp, hidden 96": Problem(SmallNetwork(hidden=96, eta=0.15)),
    "logistic, Dirichlet(.3)": Problem(LogisticRegression(split=Dirichlet(4, alpha=0.3))),
    "kink of 8": Problem(Kink.hard(tau=8, d=800, noise=1.0, eta=0.1)),
    "quadratic": Problem(Quadratic(copies=200, noise=0.08, eta=0.08), m=2),
    "mlp, Dirichlet(.5)": Problem(SmallNetwork(split=Dirichlet(2, alpha=0.5)), m=2),
    "mlp, hidden 64": Problem(SmallNetwork(hidden=64, eta=0.1), m=8),
    "mlp, decay at 100": Problem(SmallNetwork(eta=0.15), decay=((100, 0.2),)),
    "mlp, momentum": Problem(SmallNetwork(eta=0.03), optimizer="momentum"),
    "mlp, Adam": Problem(SmallNetwork(hidden=48, eta=0.005), optimizer="adam"),
}


def links(ratio: float, m: int, d: int) -> Links:
    return Links(LATENCY * ratio / (2 * (m - 1)), 2 * (m - 1) / m * 4 * d / ((1 - LATENCY) * ratio))


def raced(runs: Sequence[TrainingRun], runtime: RuntimeModel, level: float, points: int) -> list[Record]:
    """Simulate until a little below the level."""
    budget = max(run.budget_s or float(LONGEST) for run in runs)
    looks = [budget * (k + 1) / points for k in range(points)]

    def enough(_: Sequence[float], losses: Sequence[float]) -> bool:
        return losses[-1] < 0.98 * level

    if all(run.optimizer == "sgd" for run in runs):
        return simulate_together(runs, runtime, looks=looks, until=enough)
    return [simulate(replace(run, points=points), runtime) for run in runs]


def time_to(seconds: Sequence[float], losses: Sequence[float], level: float) -> float:
    """First passage, linear in log loss between two looks."""
    for (s, a), (t, b) in pairwise(zip(seconds, losses, strict=True)):
        if b <= level:
            share = 1.0 if a <= level else math.log(a / level) / math.log(a / b)
            return s + share * (t - s)
    return math.inf


def exchange_s(record: Record, runtime: RuntimeModel, coding: Coding, two_shot: bool, whole: bool) -> float:
    """Mean seconds of an averaging, by the bits of the run."""
    m, rounds = runtime.workers(), sum(n for _, n in record["rounds"])
    each = record["bits"][-1] / rounds / (m + 1 if two_shot else m)
    kind = "sum" if whole else "two_shot" if two_shot else "gather"
    assert isinstance(runtime.communication, Links)
    coded = 0.0 if whole else coding.seconds(m=m, two_shot=two_shot)
    return runtime.communication.of(kind).seconds(m=m, bits=each) + coded


def measured(name: str) -> Iterator[dict[str, Any]]:
    problem = PROBLEMS[name]
    m, d = problem.m, sum(p.numel() for p in problem.workload.model().parameters())
    base = TrainingRun(
        problem.workload,
        1,
        STEP,
        SEED,
        steps=LONGEST,
        optimizer=problem.optimizer,
        decay=problem.decay,
    )
    still = RuntimeModel(STEP, m=m)
    (first,) = raced([replace(base, steps=REFERENCE)], still, 0.0, points=REFERENCE)
    start, end = first["losses"][0], fmean(first["losses"][-10:])
    levels = [start - share * (start - end) for share in SHARES]
    pairs = [(i, tau) for i in range(len(LADDER)) for tau in (TAUS if i else WHOLE_TAUS)]
    runs = [replace(base, exchange=exchange_named("auto", LADDER[i]), schedule=tau) for i, tau in pairs]
    fixed = raced(runs, still, levels[-1], points=LONGEST // 4)
    for ratio in RATIOS:
        runtime = RuntimeModel(STEP, communication=links(ratio, m, d), m=m)
        trained = {}
        for (i, tau), record in zip(pairs, fixed, strict=True):
            two_shot = LADDER[i] is not None and m > 2
            each = exchange_s(record, runtime, CODINGS[i], two_shot, LADDER[i] is None)
            seconds = [s + k / tau * each for s, k in zip(record["seconds"], record["step"], strict=True)]
            trained[f"{NAMES[i]}, tau = {tau}"] = seconds, record["losses"]
        timed = replace(base, steps=None, budget_s=float(BUDGETS[ratio]), schedule="auto")
        both = replace(timed, exchange=Candidates(codings=CODINGS))
        chosen = {}
        for method, run in (("auto", both), ("whole, auto", timed)):
            (chosen[method],) = raced([run], runtime, levels[-1], points=400)
            trained[method] = chosen[method]["seconds"], chosen[method]["losses"]
        for share, level in zip(SHARES, levels, strict=True):
            times = {method: time_to(*curve, level) for method, curve in trained.items()}
            yield {
                "problem": name, "m": m, "ratio": ratio, "share": share, "seed": SEED, "d": d, "level": level,
                "rounds": chosen["auto"]["rounds"][:20],
                "times": {method: None if math.isinf(t) else round(t, 2) for method, t in times.items()},
            }  # fmt: skip


def quotients(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Times over others', by D/Y and share: median, 90th percentile and largest over the problems."""
    table: dict[tuple[float, float], dict[str, list[float]]] = {}
    for line in lines:
        times = {name: math.inf if t is None else t for name, t in line["times"].items()}
        fixed = {name: t for name, t in times.items() if "tau = " in name}
        whole = min(t for name, t in fixed.items() if name.startswith("whole"))
        cell = table.setdefault((line["ratio"], line["share"]), {})
        for name, quotient in {
            "auto over the best fixed tau": times["auto"] / whole,
            "auto over the best fixed pair": times["auto"] / min(fixed.values()),
            "tau alone over the best fixed tau": times["whole, auto"] / whole,
        }.items():
            cell.setdefault(name, []).append(quotient)
    return [
        {"ratio": ratio, "share": share} | {name: spread(values) for name, values in cell.items()}
        for (ratio, share), cell in table.items()
    ]


def spread(values: Sequence[float]) -> list[float | None]:
    ordered = sorted(values)
    chosen = (median(ordered), ordered[math.ceil(0.9 * len(ordered)) - 1], ordered[-1])
    return [None if math.isinf(value) else round(value, 3) for value in chosen]


def main(only: tuple[str, ...] = tuple(PROBLEMS)) -> Iterator[dict[str, Any]]:
    """Every cell of the problems, and the quotients."""
    lines = []
    for name in only:
        for line in measured(name):
            lines.append(line)
            yield line
    yield {"quotients": quotients(lines), "cells": len(lines)}
