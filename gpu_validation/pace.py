"""Seconds per iteration of real training against the runtime model, with local steps padded to a chosen law.

Padding keeps ranks that share cores from contending; the delay of an averaging is measured by itself, each time right
after a barrier, so that the wait for stragglers is not in it.  The prediction then uses nothing from the timed run.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from bounds.estimate import Estimate, mean_estimate
from bounds.runtime.law import StepTime
from operators import Key, Operator, specification

from .averaging import PeriodicAveraging
from .exchange import fence, gather_arrays
from .launch import Place
from .records import Comparison, Verdict
from .seeds import derived
from .timing import (
    PaddedSteps,
    delay_from_rounds,
    fit_law,
    fit_rounds,
    predicted_seconds_per_iteration,
    step_seconds,
)
from .workloads import Workload

GRADIENT, STEPS, DELAYS, FIT = 0, 3, 4, 5  # folds of the key
TOLERANCE = 0.10  # of the prediction
LEVEL = 0.95

Record = dict[str, Any]


@dataclass(frozen=True)
class PacePlan:
    """One workload at one tau.

    law : of a local step's duration, whatever it computes.  steps : a multiple of tau.
    repeats : timed runs.  delays : averagings timed by themselves before each of them.
    seed : of the run.
    """

    workload: Workload
    operator: Operator
    law: StepTime
    tau: int
    steps: int = 64
    repeats: int = 5
    delays: int = 6
    seed: int = 0


def measure_pace(place: Place, plan: PacePlan) -> Record:
    """Time the runs; all ranks return the same record."""
    delays: list[float] = []
    seconds, rounds, steps, overruns = [], [], [], 0
    for repeat in range(plan.repeats):
        key = Key(derived(plan.seed, repeat))
        delays += _delays(place, plan, key)
        drawn = step_seconds(plan.law, key=key.fold(STEPS), worker=place.rank, steps=plan.steps)
        padding = PaddedSteps(0.0, drawn.tolist())
        ends = _timed_run(place, plan, padding, key)
        seconds.append(ends[-1] / plan.steps)
        rounds.append(np.diff([0.0, *ends]).tolist())
        steps.append(padding.durations)
        overruns += padding.overruns
    everyone = gather_arrays(torch.tensor(steps, dtype=torch.float64))
    every_delay = torch.stack(gather_arrays(torch.tensor(delays, dtype=torch.float64))).mean(dim=0)
    return {
        "kind": "pace",
        "workload": plan.workload.name,
        "operator": specification(plan.operator),
        "m": place.size,
        "tau": plan.tau,
        "steps": plan.steps,
        "law": repr(plan.law),
        "mean_step_s": plan.law.mean_s,
        "predicted_compute_s": predicted_seconds_per_iteration(plan.law, 0.0, tau=plan.tau, m=place.size),
        "seconds_per_iteration": [_agreed(value) for value in seconds],
        "round_s": rounds,
        "step_s": [part.tolist() for part in everyone],
        "delay_s": every_delay.tolist(),
        "overruns": int(sum(int(part) for part in gather_arrays(torch.tensor([overruns])))),
        "scheduling": place.scheduling,
        "method": place.port.method,
    }


def _agreed(own: float) -> float:
    """The mean over ranks, which differ by how they left the last collective."""
    return float(torch.stack(gather_arrays(torch.tensor([own], dtype=torch.float64))).mean())


def _step(plan: PacePlan, model: torch.nn.Module, optimizer: torch.optim.Optimizer, key: Key) -> torch.Tensor:
    optimizer.zero_grad()
    loss = plan.workload.loss(model, key=key)
    loss.backward()
    optimizer.step()
    return loss


def _averaged(plan: PacePlan, tau: int, key: Key) -> tuple[PeriodicAveraging, torch.nn.Module, torch.optim.Optimizer]:
    model = plan.workload.model()
    optimizer = torch.optim.SGD(model.parameters(), lr=plan.workload.eta)
    return PeriodicAveraging(model, optimizer, schedule=tau, operator=plan.operator, key=key), model, optimizer


def _timed_run(place: Place, plan: PacePlan, padding: PaddedSteps, key: Key) -> list[float]:
    """When every round ended, in seconds since the start."""
    averaging, model, optimizer = _averaged(plan, plan.tau, key)
    ends = []
    fence()
    began = time.perf_counter()
    for k in range(plan.steps):
        padding.begin()
        _step(plan, model, optimizer, Key(key.seed, step=k, rank=place.rank).fold(GRADIENT))
        padding.end()
        if averaging.step() is not None:
            ends.append(time.perf_counter() - began)
    return ends


def _delays(place: Place, plan: PacePlan, key: Key) -> list[float]:
    """Seconds of single averagings, each after a padded step and a barrier; a first one warms up."""
    averaging, model, optimizer = _averaged(plan, 1, key.fold(DELAYS))
    padding, found = PaddedSteps(plan.law.mean_s), []
    for k in range(plan.delays + 1):
        padding.begin()
        _step(plan, model, optimizer, Key(key.seed, step=k, rank=place.rank).fold(DELAYS))
        padding.end()
        fence()
        began = time.perf_counter()
        averaging.step()
        found.append(time.perf_counter() - began)
    return found[1:]


# -- what follows from the records ---------------------------------------------------------------------------
def pace_rows(records: Sequence[Record]) -> Iterable[Comparison]:
    """Seconds per iteration against the model; Y, D and the law of Y fitted to the rounds and steps.

    A law is fitted to the first record that has it; correlated steps and workers of different speed fit none.
    None of these rows decides: the noise of a shared machine has no bound.
    """
    fitted = {"Constant", "AutoregressiveLogNormal", "PersistentStragglers"}
    for record in records:
        yield _iteration_row(record)
        yield _delay_row(record)
        family = record["law"].split("(")[0]
        if family not in fitted and record["law"] not in fitted:
            fitted.add(record["law"])
            yield _law_row(record)
    groups: dict[tuple[str, int], list[Record]] = {}
    for record in records:
        if record["law"].startswith("Constant"):
            groups.setdefault((record["workload"], record["m"]), []).append(record)
    for group in groups.values():
        if len(group) > 1:
            yield from _fitted_rows(group)


def fenced_delay(record: Record) -> Estimate:
    """The mean of D as timed by itself, with its interval."""
    return mean_estimate(record["delay_s"], LEVEL)


def iteration(record: Record) -> Estimate:
    """Mean seconds per iteration over all rounds, with its interval."""
    rounds = np.concatenate([np.asarray(part) for part in record["round_s"]])
    return mean_estimate(rounds / record["tau"], LEVEL)


def _common(record: Record) -> dict[str, Any]:
    law = "" if record["law"].startswith("Constant") else f", steps {record['law']}"
    return {
        "operator": record["operator"],
        "workload": f"{record['workload']}, m = {record['m']}{law}",
        "unit": "s",
        "side": "tight",
        "decides": False,
    }


def near(measured: float, bound: float) -> tuple[Verdict, str]:
    """HOLDS within TOLERANCE, else INCONCLUSIVE and why."""
    away = measured / bound - 1
    if abs(away) <= TOLERANCE:
        return Verdict.HOLDS, ""
    return Verdict.INCONCLUSIVE, f"{away:+.1%} from the model; the noise of a shared machine has no bound"


def _iteration_row(record: Record) -> Comparison:
    """The mean lies near the prediction, or the prediction in the interval that drawn steps leave."""
    found = iteration(record)
    low, high = float(found.interval.lo), float(found.interval.hi)
    predicted = record["predicted_compute_s"] + fenced_delay(record).value / record["tau"]
    verdict, reason = (Verdict.HOLDS, "") if low <= predicted <= high else near(found.value, predicted)
    return Comparison(
        quantity="seconds per iteration, mean of the rounds",
        measured=found.value,
        interval=(low, high),
        bound=predicted,
        verdict=verdict,
        reason=reason,
        theorem=f"E max of mean Y + D / tau; {record['scheduling']}; {record['method']}",
        tau=record["tau"],
        n=sum(len(part) for part in record["round_s"]),
        **_common(record),
    )


def _delay_row(record: Record) -> Comparison:
    """D as the unexplained part of the rounds against D timed behind a barrier."""
    rounds = np.concatenate([np.asarray(part) for part in record["round_s"]])
    steps = np.concatenate([np.asarray(part) for part in np.swapaxes(np.asarray(record["step_s"]), 0, 1)], axis=1)
    found, fenced = delay_from_rounds(rounds, steps, tau=record["tau"]), fenced_delay(record)
    verdict, reason = near(found.value, fenced.value)
    return Comparison(
        quantity="D, from rounds without the slowest worker's steps",
        measured=found.value,
        interval=(float(found.interval.lo), float(found.interval.hi)),
        bound=fenced.value,
        verdict=verdict,
        reason=reason,
        theorem="D timed behind a barrier",
        tau=record["tau"],
        n=rounds.size,
        **_common(record),
    )


def _law_row(record: Record) -> Comparison:
    fit = fit_law(np.asarray(record["step_s"][0]).reshape(-1), key=Key(0).fold(FIT))
    right = fit.accepted and record["law"].startswith(fit.best.family)
    p_value = float(fit.best.p_value or 0.0)
    return Comparison(
        quantity="law of Y: p-value of the best fit, rank 0",
        measured=p_value,
        interval=(p_value, p_value),
        bound=None,
        verdict=Verdict.HOLDS if right else Verdict.INCONCLUSIVE,
        reason=fit.statement,
        theorem=f"drawn from {record['law']}",
        tau=record["tau"],
        n=fit.n,
        **(_common(record) | {"side": "lower", "unit": ""}),
    )


def _fitted_rows(group: Sequence[Record]) -> Iterable[Comparison]:
    """Y and D as slope and intercept over all tau of a workload."""
    taus, rounds = [], []
    for record in group:
        for seconds in (s for part in record["round_s"] for s in part):
            taus.append(record["tau"])
            rounds.append(seconds)
    fit = fit_rounds(taus, rounds)
    delay_s = float(np.mean([fenced_delay(record).value for record in group]))
    for name, found, bound, source in (
        ("Y", fit.step_s, group[0]["mean_step_s"], "the padded step"),
        ("D", fit.delay_s, delay_s, "D timed behind a barrier"),
    ):
        verdict, reason = near(found.value, bound)
        yield Comparison(
            quantity=f"{name}, fitted to the rounds of all tau",
            measured=found.value,
            interval=(float(found.interval.lo), float(found.interval.hi)),
            bound=bound,
            verdict=verdict,
            reason=reason,
            theorem=source,
            n=len(rounds),
            **_common(group[0]),
        )
