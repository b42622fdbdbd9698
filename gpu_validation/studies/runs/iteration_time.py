"""Seconds per iteration of real training against the runtime model, with local steps padded to a chosen law.

Padding keeps ranks that share cores from contending; the delay of an averaging is measured by itself, each time right
after a barrier, so that the wait for stragglers is not in it.  The prediction then uses nothing from the timed run.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import torch

from bounds.runtime.law import StepTime
from operators import Key, Operator, specification

from ...processes.collectives import barrier, gather_arrays
from ...processes.launch import RankContext
from ...records.seeds import derived
from ...records.storage import Record
from ...timing import PaddedSteps, predicted_seconds_per_iteration, step_seconds
from ...workloads import Workload
from .local_steps import training_rounds
from .spec import STEP_TIMES, TrainingRun
from .training import joined, timed_alone


@dataclass(frozen=True)
class IterationTimePlan:
    """One workload at one tau.

    Parameters
    ----------
    law : StepTime
        Of a local step's duration, whatever it computes.
    steps : int, optional
        A multiple of tau.
    repeats : int, optional
        Timed runs.
    delays : int, optional
        Averagings timed by themselves before each of them.
    seed : int, optional
        Of the run.
    """

    workload: Workload
    operator: Operator
    law: StepTime
    tau: int
    steps: int = 64
    repeats: int = 5
    delays: int = 6
    seed: int = 0

    def run(self, seed: int) -> TrainingRun:
        """Return one of the timed runs."""
        return TrainingRun(self.workload, self.tau, self.law, seed, steps=self.steps, operator=self.operator)


def measure_iteration_time(place: RankContext, plan: IterationTimePlan) -> Record:
    """Time the runs; all ranks return the same record."""
    delays: list[float] = []
    seconds, rounds, steps, overruns = [], [], [], 0
    for repeat in range(plan.repeats):
        run = plan.run(derived(plan.seed, repeat))
        delays += timed_alone(place, run, plan.delays)
        drawn = step_seconds(plan.law, key=Key(run.seed).fold_in(STEP_TIMES), worker=place.rank, steps=plan.steps)
        pacing = PaddedSteps(0.0, drawn.tolist())
        ends = _timed_run(place, run, pacing)
        seconds.append(ends[-1] / plan.steps)
        rounds.append(np.diff([0.0, *ends]).tolist())
        steps.append(pacing.durations)
        overruns += pacing.overruns
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
    """Return the mean over ranks, which differ by how they left the last collective."""
    return float(torch.stack(gather_arrays(torch.tensor([own], dtype=torch.float64))).mean())


def _timed_run(place: RankContext, run: TrainingRun, pacing: PaddedSteps) -> list[float]:
    """Return when every round ended, in seconds since the start."""
    averaging, replica = joined(place, run)
    ends = []
    barrier()
    began = time.perf_counter()
    for _ in training_rounds(averaging.engine, [replica], pacing=pacing):
        ends.append(time.perf_counter() - began)
        if run.is_over(ends[-1], averaging.total_steps):
            break
    return ends
