"""How often does an end of an interval miss the mean?  Simulated coverage of the intervals behind the verdicts.

    nice python docs/measure.py studies/interval_coverage.py > docs/data/coverage.jsonl

For every law and number of draws, both ends are asked to miss with probability .05 at most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gpu_validation.judging.intervals import mean_interval, student_interval
from gpu_validation.records.compression import Sample

LEVEL = 0.05
DRAWS = (6, 16, 50, 200)
Draw = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]
LAWS: dict[str, tuple[float, float, Draw]] = {  # (mean, largest value, draws)
    "1/p with probability p = .95, else 0": (1.0, 1 / 0.95, lambda rng, shape: (rng.random(shape) < 0.95) / 0.95),
    "1/p with probability p = .5, else 0": (1.0, 2.0, lambda rng, shape: (rng.random(shape) < 0.5) / 0.5),
    "1/p with probability p = .01, else 0": (1.0, 100.0, lambda rng, shape: (rng.random(shape) < 0.01) / 0.01),
    "skewed, beta(.2, 2)": (1 / 11, 1.0, lambda rng, shape: rng.beta(0.2, 2.0, shape)),
    "skewed, beta(2, .2)": (10 / 11, 1.0, lambda rng, shape: rng.beta(2.0, 0.2, shape)),
    "constant": (0.5, 1.0, lambda rng, shape: np.full(shape, 0.5)),
}


def coverage(law: str, n: int, runs: int, seed: int) -> dict[str, object]:
    """Shares of runs in which the lower and the upper end, and Student's interval of level .1, hold the mean."""
    mean, top, draw = LAWS[law]
    rng = np.random.default_rng([seed, n, list(LAWS).index(law)])
    held = np.zeros(3, int)
    for row in draw(rng, (runs, n)):
        sample = Sample.of(row)
        low, high = mean_interval(sample, below=LEVEL, above=LEVEL, floor=0.0, ceiling=top)
        near = student_interval(sample, 2 * LEVEL) if sample.low < sample.high else (sample.mean, sample.mean)
        held += low <= mean, mean <= high, near[0] <= mean + 1e-12 and mean - 1e-12 <= near[1]
    lower, upper, student = (held / runs).tolist()
    return {"law": law, "n": n, "runs": runs, "lower": lower, "upper": upper, "student": student}


def main(runs: int = 250, seed: int = 1) -> Iterator[dict[str, Any]]:
    """One record for each law and number of draws."""
    yield from (coverage(law, n, runs, seed) for law in LAWS for n in DRAWS)
