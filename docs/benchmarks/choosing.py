"""Rules that choose tau and operator against every fixed pair, on the simulated clock, as JSON lines.

Run ``python docs/benchmarks/choosing.py {design,seen,held-out} > docs/data/choosing_DESIGN.jsonl``.

The held-out half is the second one: the first, of three networks, a regression and a kink, was looked at when the rule
learnt to see bends, and is the half "seen" now.  The new one has other kinks, rates, widths, splits and another seed.

Fixed beforehand, here: problems, halves, networks, coding seconds, targets and the grid.  m workers on equal links
(``Links``); D/Y is that of an uncompressed sum, a tenth of it latency, the rest bandwidth.  Coding takes so many local
steps a movement, as on a model whose step takes as long as 10 to 20 passes over its parameters.  The target is the loss
of synchronous uncompressed SGD after so many steps; on the kinks of the second half, whose floor it has reached by then
and reaches again by chance only, a tenth above its mean from there to the end.  A time to it is read between
averagings, linear in log loss.

One line a problem, m and D/Y: seconds in local steps to the target, infinite (null) where it was not reached, of every
fixed pair of operator and tau, of AdaComm from tau_0 = 16 with every operator, of "auto" for both, and of "auto" for
tau alone on whole models, as it is and blind to bends, as it was before.  A fixed pair is simulated once, and timed on
all networks: its losses do not depend on the clock.  A last line has the quotients of all cells: medians, 90th
percentiles, largest.
"""

# ruff: noqa: E402  the search path must be set before the imports
from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean, median
from typing import Any, ClassVar

# A neighbour of this file has the name of a package: its folder must not be searched.
sys.path[:] = [f for f in sys.path if os.path.abspath(f or ".") != os.path.dirname(os.path.abspath(__file__))]
os.environ.setdefault("OMP_NUM_THREADS", "1")

from bounds.runtime import Coding, Links, RuntimeModel, ShiftedExponential
from bounds.schedules import AdaComm, GradientRetention, GradientRetentionState, Observation, Schedule
from gpu_validation.local_sgd.ladder import LADDER, Ladder
from gpu_validation.measurement.batched_simulation import simulate_together
from gpu_validation.measurement.simulation import simulate
from gpu_validation.measurement.spec import TrainingRun
from gpu_validation.records.storage import Record
from gpu_validation.workloads import Kink, LogisticRegression, Quadratic, SmallNetwork, Workload
from gpu_validation.workloads.data import Dirichlet
from operators import specification

STEP = ShiftedExponential(0.9, 0.1)  # of a local step, the unit of time
RATIOS = (0.5, 4.0, 20.0, 50.0)
BUDGETS = {0.5: 700, 4.0: 1600, 20.0: 4000, 50.0: 8000}  # in local steps
LATENCY = 0.1  # of D
CODINGS = (Coding(0.0, 0.0), Coding(0.03, 0.015), Coding(0.1, 0.05), Coding(0.1, 0.05), Coding(0.1, 0.05))
TAUS = (4, 16, 64)  # whole models also 1
TARGET, LONGEST = 200, 600  # steps of the synchronous run, and of any
TAU_0, INTERVAL = 16, 1 / 16
NAMES = ["whole" if operator is None else specification(operator) for operator in LADDER]


def problems(half: str, m: int) -> dict[str, tuple[Workload, str, tuple[tuple[int, float], ...]]]:
    """Workload, optimizer and decay by name."""
    network = SmallNetwork()
    if half == "design" and m == 8:
        return {"mlp": (network, "sgd", ())}
    if half == "design":
        return {
            "quadratic": (Quadratic(copies=200, noise=0.08, eta=0.08), "sgd", ()),
            "logistic": (LogisticRegression(), "sgd", ()),
            "mlp": (network, "sgd", ()),
            "mlp, Dirichlet(.5)": (replace(network, split=Dirichlet(m, alpha=0.5)), "sgd", ()),
        } | ({"mlp, momentum": (replace(network, eta=0.03), "momentum", ())} if m == 4 else {})
    if half == "held-out" and m == 8:
        return {"mlp, hidden 96": (SmallNetwork(hidden=96, eta=0.15), "sgd", ())}
    if m == 8:
        return {"mlp, hidden 64": (SmallNetwork(hidden=64, eta=0.1), "sgd", ())}
    if half == "held-out":
        return {
            "kink of 8": (Kink.hard(tau=8, d=800, noise=1.0, eta=0.1), "sgd", ()),
            "logistic, Dirichlet(.3)": (LogisticRegression(split=Dirichlet(m, alpha=0.3)), "sgd", ()),
            "mlp, hidden 96": (SmallNetwork(hidden=96, eta=0.15), "sgd", ()),
            "mlp, decay at 100": (replace(network, eta=0.15), "sgd", ((100, 0.2),)),
        } | (
            {
                "kink of 32": (Kink.hard(tau=32, d=800, noise=0.5, eta=0.05), "sgd", ()),
                "mlp, Adam": (replace(network, hidden=48, eta=0.005), "adam", ()),
            }
            if m == 4
            else {}
        )
    return {
        "kink": (Kink.hard(tau=16, d=1000, noise=2.0, eta=0.08), "sgd", ()),
        "logistic, Dirichlet(.2)": (LogisticRegression(split=Dirichlet(m, alpha=0.2)), "sgd", ()),
        "mlp, hidden 64": (SmallNetwork(hidden=64, eta=0.1), "sgd", ()),
        "mlp, decay": (network, "sgd", ((120, 0.1),)),
    } | ({"mlp, Adam": (replace(network, eta=0.01), "adam", ())} if m == 4 else {})


@dataclass(frozen=True)
class Blind(Schedule):
    """``GradientRetention`` that is not told how the loss bends."""

    measures: ClassVar[bool] = True

    def init(self) -> GradientRetentionState:
        return GradientRetention().init()

    def __call__(self, state: GradientRetentionState, observation: Observation) -> tuple[GradientRetentionState, int]:
        measured = observation.measured
        told = None if measured is None else replace(measured, bend2=None)
        return GradientRetention()(state, replace(observation, measured=told))

    def restore(self, data: Mapping[str, Any]) -> GradientRetentionState:
        return GradientRetention().restore(data)


def links(ratio: float, m: int, d: int) -> Links:
    return Links(LATENCY * ratio / (2 * (m - 1)), 2 * (m - 1) / m * 4 * d / ((1 - LATENCY) * ratio))


def raced(runs: Sequence[TrainingRun], runtime: RuntimeModel, level: float, points: int = 150) -> list[Record]:
    """Simulate until a little below the level."""
    budget = max(run.budget_s or float(LONGEST) for run in runs)
    looks = [budget * (k + 1) / points for k in range(points)]

    def enough(_: Sequence[float], losses: Sequence[float]) -> bool:
        return losses[-1] < 0.98 * level

    if all(run.optimizer in ("sgd",) for run in runs):
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


def measured(name: str, half: str, m: int, seed: int) -> Iterator[dict[str, Any]]:
    workload, optimizer, decay = problems(half, m)[name]
    d = sum(p.numel() for p in workload.model().parameters())
    base = TrainingRun(workload, 1, STEP, seed, steps=LONGEST, exchange="auto", optimizer=optimizer, decay=decay)
    still = RuntimeModel(STEP, m=m)
    floor = half == "held-out" and isinstance(workload, Kink)
    steps = LONGEST if floor else TARGET + 10
    (first,) = raced([replace(base, steps=steps)], still, 0.0, points=steps)
    losses = [loss for k, loss in zip(first["step"], first["losses"], strict=True) if k >= TARGET - 10]
    level = 1.1 * fmean(losses) if floor else fmean(losses)
    pairs = [(0, 1), *((i, tau) for i in range(len(LADDER)) for tau in TAUS)]
    fixed = raced([replace(base, operator=LADDER[i], schedule=tau) for i, tau in pairs], still, level)
    ladder = Ladder(codings=CODINGS)
    for ratio in RATIOS:
        runtime = RuntimeModel(STEP, communication=links(ratio, m, d), m=m)
        times = {}
        for (i, tau), record in zip(pairs, fixed, strict=True):
            two_shot = LADDER[i] is not None and m > 2
            each = exchange_s(record, runtime, CODINGS[i], two_shot, LADDER[i] is None)
            seconds = [s + k / tau * each for s, k in zip(record["seconds"], record["step"], strict=True)]
            times[f"{NAMES[i]}, tau = {tau}"] = time_to(seconds, record["losses"], level)
        budget_s = float(BUDGETS[ratio])
        timed = replace(base, steps=None, budget_s=budget_s)
        rule = AdaComm(TAU_0, INTERVAL * budget_s, gamma=0.5, eta_exponent=0.5, cap=512)
        for i in range(len(LADDER)):
            coded = replace(runtime, coding=None if LADDER[i] is None else CODINGS[i])
            methods = {"AdaComm": rule} if i else {"AdaComm": rule, "auto": "auto", "auto, blind": Blind()}
            runs = [replace(timed, operator=LADDER[i], schedule=schedule) for schedule in methods.values()]
            for method, record in zip(methods, raced(runs, coded, level), strict=True):
                times[f"{NAMES[i]}, {method}"] = time_to(record["seconds"], record["losses"], level)
        (both,) = raced([replace(timed, operator=ladder, schedule="auto", exchange="gather")], runtime, level)
        times["auto"] = time_to(both["seconds"], both["losses"], level)
        yield {
            "problem": name, "half": half, "m": m, "ratio": ratio, "seed": seed, "d": d, "level": level,
            "rounds": both["rounds"][:20],
            "times": {method: None if math.isinf(t) else round(t, 2) for method, t in times.items()},
        }  # fmt: skip


def quotients(lines: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Times over others', each a median, 90th percentile and largest over cells."""
    found: dict[str, list[float]] = {}
    for line in lines:
        times = {name: math.inf if t is None else t for name, t in line["times"].items()}
        fixed = {name: t for name, t in times.items() if "tau = " in name}
        adacomm = {name: t for name, t in times.items() if name.endswith("AdaComm")}
        whole = min(t for name, t in fixed.items() if name.startswith("whole"))
        for name, quotient in {
            "auto over the best of the grid": times["auto"] / min(fixed.values()),
            "auto over AdaComm with the best operator of the cell": times["auto"] / min(adacomm.values()),
            **{f"auto over AdaComm with {NAMES[i]}": times["auto"] / times[f"{NAMES[i]}, AdaComm"] for i in range(5)},
            "tau alone over the best fixed tau": times["whole, auto"] / whole,
            "tau alone over the best fixed tau, blind": times["whole, auto, blind"] / whole,
            "tau alone over blind": times["whole, auto"] / times["whole, auto, blind"],
        }.items():
            found.setdefault(name, []).append(quotient)
    return {name: spread([v for v in values if not math.isnan(v)]) for name, values in found.items()}


def spread(values: Sequence[float]) -> list[float | None]:
    ordered = sorted(values)
    chosen = (median(ordered), ordered[math.ceil(0.9 * len(ordered)) - 1], ordered[-1])
    return [None if math.isinf(value) else round(value, 3) for value in chosen]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("half", choices=("design", "seen", "held-out"))
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--problems", nargs="+")
    parser.add_argument("--seed", type=int, help="0, and 1 of the second held-out half")
    given = parser.parse_args()
    seed = int(given.half == "held-out") if given.seed is None else given.seed
    lines = []
    for m in given.workers:
        for name in given.problems or problems(given.half, m):
            for line in measured(name, given.half, m, seed):
                lines.append(line)
                sys.stdout.write(json.dumps(line) + "\n")
                sys.stdout.flush()
    sys.stdout.write(json.dumps({"quotients": quotients(lines), "cells": len(lines)}) + "\n")


if __name__ == "__main__":
    main()
