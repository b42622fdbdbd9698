"""Step times drawn from a law of the runtime model, to emulate stragglers."""

from __future__ import annotations

import numpy as np

from bounds.runtime import AutoregressiveLogNormal, PersistentStragglers, StepTime
from bounds.runtime.law import Law
from operators import Key
from operators.random import bits32

SEED_WORDS = 8


def step_seconds(step: StepTime, *, key: Key, worker: int, steps: int) -> np.ndarray:
    """Return the durations of one worker's steps in seconds, shape (steps,), determined by key and worker.

    Parameters
    ----------
    step : StepTime
        Any law of ``bounds.runtime``, a law with persistent slowdowns, or serially correlated steps.
    key : Key
        Seeds the random stream.
    worker : int
        Index of the worker.
    steps : int
        Number of local steps.

    Raises
    ------
    TypeError
        For another kind of step time.
    ValueError
        If there are fewer slowdowns than workers.
    """
    rng = np.random.default_rng(bits32(key.fold_in(worker), SEED_WORDS))
    if isinstance(step, Law):
        return step.sample(rng, (steps,))
    if isinstance(step, PersistentStragglers):
        if worker >= len(step.slowdowns):
            raise ValueError(f"needs a slowdown for worker {worker}; got {len(step.slowdowns)} of them")
        return step.slowdowns[worker] * step.law.sample(rng, (steps,))
    if isinstance(step, AutoregressiveLogNormal):
        return _autoregressive(step, rng.standard_normal(steps))
    raise TypeError(f"cannot draw step times of {type(step).__name__}; known: laws, persistent, autoregressive")


def _autoregressive(step: AutoregressiveLogNormal, normal: np.ndarray) -> np.ndarray:
    """Return mean exp(log_sd z - log_sd^2/2) with a stationary z_k = rho z_{k-1} + sqrt(1 - rho^2) normal_k."""
    z = normal.copy()
    for k in range(1, z.size):
        z[k] = step.correlation * z[k - 1] + np.sqrt(1 - step.correlation**2) * normal[k]
    return step.mean * np.exp(step.log_sd * z - step.log_sd**2 / 2)
