"""What studies of races share: numbers of records, and real processes that must repeat their simulation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bounds.runtime import RuntimeModel

from ..judging.comparisons import exact_row
from ..judging.intervals import Median, median_of
from ..judging.iteration_time import arrival
from ..judging.verdict import Comparison
from ..records.storage import Record
from .runs.batched_simulation import simulate_together
from .runs.spec import TrainingRun
from .runs.training import run_training

CURVE = ("seconds", "step", "taus", "bits", "losses", "accuracies", "rounds", "steps_done", "took_s")
DIGITS_KEPT = 5  # of a recorded number


def short(value: float) -> float:
    """Return a number with the digits that a record has."""
    return float(f"{value:.{DIGITS_KEPT}g}")


def times_of(record: Record, targets: Sequence[float]) -> list[float | None]:
    """Return the seconds of a run to each target, as records have them; None without arrival."""
    times = [arrival(record["seconds"], record["losses"], target) for target in targets]
    return [short(t) if np.isfinite(t) else None for t in times]


def of_trial(races: Sequence[Record], method: str, trial: int) -> list[Record]:
    """Return the runs of one trial of a method."""
    return [race for race in races if (race["method"], race["trial"]) == (method, trial)]


def seconds(times: Sequence[Sequence[float | None]]) -> np.ndarray:
    """Return recorded times as an array; infinite without arrival."""
    return np.array([[np.inf if t is None else t for t in of_run] for of_run in times])


def arrivals(races: Sequence[Record], method: str, trial: int, target: int) -> np.ndarray:
    """Return seconds to a target, one for each run of a trial; infinite where it did not arrive."""
    return seconds([race["times"] for race in of_trial(races, method, trial)])[:, target]


def faster(slow: np.ndarray, fast: np.ndarray, budget_s: float) -> Median:
    """Return paired ratios over the seeds: 0 where the method did not arrive; the budget where the other did not."""
    return median_of((np.minimum(slow, budget_s) / fast).tolist())


def equal_numbers(runs: Sequence[TrainingRun], clock: RuntimeModel, m: int) -> Record:
    """Return how many numbers the records of real runs have, and how many equal those of their simulations."""
    simulated = simulate_together(runs, clock)
    real = run_training([replace(run, runtime=clock) for run in runs], m=m, shape=None, scheduling="normal")
    numbers = equal = 0
    for run, rehearsal in zip(real, simulated, strict=True):
        for a, b in ((run[key], rehearsal[key]) for key in CURVE):
            alike = isinstance(a, list) and len(a) == len(b)
            pairs = list(zip(a, b, strict=True)) if alike else [(a, b)]
            numbers += len(pairs)
            equal += sum(x == y for x, y in pairs)
    return {"numbers": numbers, "equal": equal}


def same_row(record: Record, workload: str, quantity: str, theorem: str) -> Comparison:
    """Judge by equality what ``equal_numbers`` has counted."""
    equal, numbers = record["equal"], record["numbers"]
    about: dict[str, Any] = {"workload": workload, "quantity": quantity, "theorem": theorem}
    return exact_row(equal, numbers, equal == numbers, operator="real processes", **about)
