"""Local steps of a set duration, or of durations drawn from a law to emulate stragglers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from bounds.runtime import AutoregressiveLogNormal, PersistentStragglers, StepTime
from bounds.runtime.law import Law
from operators import Key
from operators.random import bits32


@dataclass
class PaddedSteps:
    """Extends every local step to a set duration by sleeping, so that ranks on the same cores do not compete.

    Parameters
    ----------
    step_s : float, seconds
        Duration of every step; 0 disables padding.
    drawn_s : sequence of float or None, seconds, optional
        Durations of successive steps, which replace step_s (stragglers; see ``step_seconds``).
    durations : list of float, optional
        Durations of the steps so far, including padding.
    overruns : int, optional
        Number of steps that took longer than their set duration.

    Notes
    -----
    A step that computes longer than its set duration is not interrupted; it counts as an overrun.
    """

    step_s: float
    drawn_s: Sequence[float] | None = None
    durations: list[float] = field(default_factory=list)
    overruns: int = 0
    _began: float = 0.0

    def begin(self) -> None:
        """Mark the start of a local step."""
        self._began = time.perf_counter()

    def end(self) -> None:
        """Sleep for the rest of the step.

        Raises
        ------
        IndexError
            After the last drawn step.
        """
        wanted_s = self.step_s if self.drawn_s is None else self.drawn_s[len(self.durations)]
        left = wanted_s - (time.perf_counter() - self._began)
        if left > 0:
            time.sleep(left)
        elif wanted_s > 0:
            self.overruns += 1
        self.durations.append(time.perf_counter() - self._began)

    def __enter__(self) -> PaddedSteps:
        self.begin()
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if error is None:
            self.end()


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
