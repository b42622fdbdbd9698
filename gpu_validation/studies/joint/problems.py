"""The problems, compressors and schedules of the ``joint`` study, and the bounds for them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bounds import AssumptionViolated
from bounds.claims import Unbiased
from bounds.schedules import AdaComm, Schedule
from bounds.theorems import pasgd_compressed_variable, pasgd_variable
from bounds.theorems.compressed_local_sgd import compressed_schedule_sums
from operators import QSGD, TCDQ, ErrorFeedback, Feedback, Identity, Operator, TopK

from ...workloads import LogisticRegression, Quadratic, Workload
from ...workloads.data import Bundled
from ..error_feedback.study import largest_gradient
from ..unit import Unit

STEP_S = 8e-3  # Y
LATENCY_S = 1e-3  # of a hop of the ring in the simulated clock
DENSE_S = 8e-3  # of a hop, for a message that is not compressed
FLOAT_BITS = 32

METHODS: dict[str, Operator | Feedback] = {
    "whole": Identity(),
    "qsgd": QSGD(levels=16),
    "tcdq": TCDQ(omega=1.0),
    "ef(topk)": ErrorFeedback(TopK(fraction=0.1)),
}
WORKLOADS: dict[str, Workload] = {
    "quadratic": Quadratic(copies=20, noise=0.02),
    "logistic": LogisticRegression(source=Bundled("breast_cancer"), batch=8, eta=0.02),
}
TAU_0 = {"quadratic": 12, "logistic": 10}  # within the learning-rate condition with every compressor


@dataclass(frozen=True)
class Combination(Unit):
    """A problem, a schedule (a fixed tau or "adacomm") and a method."""

    problem: str
    schedule: str
    method: str

    @property
    def tau(self) -> int | None:
        """The fixed one."""
        return None if self.schedule == "adacomm" else int(self.schedule)

    @property
    def title(self) -> str:
        """Of the schedule, in words."""
        return "AdaComm" if self.tau is None else f"tau = {self.tau}"


@dataclass(frozen=True)
class Virtual(Combination, kind="virtual"):
    """On simulated workers, every seed."""


@dataclass(frozen=True)
class Real(Combination, kind="real"):
    """On real processes."""


KINDS: tuple[type[Virtual | Real], ...] = (Virtual, Real)


def schedule(kind: str, workload: str, interval_s: float) -> int | Schedule:
    """Return a fixed tau, or AdaComm from the largest one; it knows inf F."""
    if kind != "adacomm":
        return int(kind)
    w, tau = WORKLOADS[workload], TAU_0[workload]
    infimum = w.evaluate(w.model())[0] - w.constants().gap
    return AdaComm(tau_0=tau, interval_s=interval_s, loss_inf=infimum, gamma=0.5, cap=tau)


def dimension(workload: Workload) -> int:
    """Return the number of parameters."""
    return sum(p.numel() for p in workload.model().parameters())


def joint_bound(name: str, method: str, rounds: Sequence[Sequence[int]], m: int) -> float:
    """Return the joint bound for the rounds of a run, [tau, how often] in order; infinite outside its condition."""
    w, operator = WORKLOADS[name], METHODS[method]
    assert isinstance(operator, Operator)  # the others have a memory
    claim, c = operator.claim(dimension(w)), w.constants()
    omega = claim.omega if isinstance(claim, Unbiased) else 0.0
    taus = [tau for tau, count in rounds for _ in range(count)]
    sums = compressed_schedule_sums([w.eta] * len(taus), taus, L=c.L, omega=omega, m=m)
    arguments: dict[str, Any] = {"gap": c.gap, "L": c.L, "sigma2": c.sigma2, "m": m, **sums}
    try:
        return float(pasgd_compressed_variable(**arguments, omega=omega) if omega else pasgd_variable(**arguments))
    except AssumptionViolated:
        return math.inf


def gradient_limit(workload: LogisticRegression, alpha: float, tau: int, steps: int) -> float:
    """Return G: no gradient of a run from zero is longer, decay included.

    A sample's gradient is at most G_0, and decay adds ``decay |x|``.  The point without compression moves by at most
    eta G a step, the memory adds eta tau G sqrt(alpha)/(1 - sqrt(alpha)), a round's local steps eta tau G: with their
    sum in the place of ``|x|``, G = G_0 + decay ``|x|`` is a fixed point.
    """
    reach = workload.eta * (steps + tau / (1 - math.sqrt(alpha)))
    if workload.decay * reach >= 1:
        return math.inf
    return largest_gradient(workload) / (1 - workload.decay * reach)
