"""What studies of races share: numbers of records, and real processes that must repeat their simulation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bounds.runtime import RuntimeModel

from ..measurement.batched_simulation import simulate_together
from ..measurement.spec import TrainingRun
from ..measurement.training import run_training
from ..records.storage import Record
from ..verdicts.comparisons import exact_row
from ..verdicts.verdict import Comparison

CURVE = ("seconds", "step", "taus", "bits", "losses", "accuracies", "rounds", "steps_done", "took_s")
DIGITS_KEPT = 5  # of a recorded number


def short(value: float) -> float:
    """Return a number with the digits that a record has."""
    return float(f"{value:.{DIGITS_KEPT}g}")


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
    about = {"operator": "real processes", "workload": workload, "quantity": quantity, "theorem": theorem}
    return exact_row(equal, numbers, equal == numbers, **about)
