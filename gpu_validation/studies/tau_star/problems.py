"""The problems of the ``tau-star`` study, and what each theory advises for them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from bounds.claims import Unbiased
from bounds.dynamics import additive, multiplicative, third_order
from bounds.plan import Candidate, Smooth, plan
from bounds.runtime import Constant, RuntimeModel, count_rounds
from bounds.tau import tau_convex, tau_smooth, tau_star

from ...workloads import HeterogeneousQuadratics, Kink, LogisticRegression, MultiplicativeQuadratic, Quadratic, Workload
from ...workloads.data import Bundled
from ..unit import Unit

STEP_S = 8e-3  # Y
DELAY_S = 32e-3  # D of the simulated clock


@dataclass(frozen=True)
class Problem:
    """A workload, its number of workers and its budget in seconds."""

    workload: Workload
    m: int = 4
    time_s: float = 4.0

    @property
    def runtime(self) -> RuntimeModel:
        """Constant times."""
        return RuntimeModel(step=Constant(STEP_S), delay_s=DELAY_S, m=self.m)

    def steps(self, tau: int) -> int:
        """Return local steps of all whole rounds within the budget, at least one round."""
        return tau * max(1, count_rounds(self.time_s, tau * STEP_S + DELAY_S))


PROBLEMS: dict[str, Problem] = {
    "quadratic": Problem(Quadratic(copies=5, noise=0.08, eta=0.08)),
    "multiplicative": Problem(MultiplicativeQuadratic(copies=5, noise=0.08, eta=0.08)),
    "heterogeneous": Problem(HeterogeneousQuadratics(), m=2, time_s=8.0),
    "logistic": Problem(LogisticRegression(source=Bundled("breast_cancer"), batch=8, eta=0.03)),
    "kink": Problem(Kink.hard(tau=16, d=100, noise=2.0, eta=0.08), m=16),
    "kink-4": Problem(Kink.hard(tau=16, d=100, noise=2.0, eta=0.08)),
}


@dataclass(frozen=True)
class Best(Unit, kind="best"):
    """A block of seeds on the problem where Theorem 2's tau is the best one."""

    problem: str
    block: int


@dataclass(frozen=True)
class Sweep(Unit, kind="grid"):
    """Every tau on simulated workers, one seed."""

    problem: str
    seed: int


@dataclass(frozen=True)
class Real(Unit, kind="real"):
    """One tau on real processes."""

    problem: str
    tau: int


@dataclass(frozen=True)
class Third(Unit, kind="third"):
    """A block of seeds on the problem of known Q."""

    problem: str
    block: int


KINDS: tuple[type[Best | Sweep | Real | Third], ...] = (Best, Sweep, Real, Third)


@lru_cache(maxsize=16)
def advice(name: str) -> dict[str, int | None]:
    """Return what each theory chooses for a problem at its own learning rate; None stands for infinity."""
    problem = PROBLEMS[name]
    w, c = problem.workload, problem.workload.constants()
    arguments: dict[str, Any] = {"gap": c.gap, "eta": w.eta, "sigma2": c.sigma2, "time_s": problem.time_s}
    classic = tau_star(L=c.L, delay_s=DELAY_S, **arguments)
    periods = {
        "theorem 2": classic.integer,
        "theorem 2, capped": classic.capped,
        "theorem 1'": tau_convex(L=c.L, delay_s=DELAY_S, m=problem.m, **arguments).integer,
        "plan": _plan(problem, eta=w.eta).tau,
    }
    if isinstance(w, LogisticRegression):
        third, sigma2 = third_derivative(w, problem.m)
        periods["third order"] = tau_smooth(
            delay_s=DELAY_S, third_derivative=third, **(arguments | {"sigma2": sigma2})
        ).integer
    elif not isinstance(w, Kink):
        periods["third order"] = None  # a quadratic has no third derivative
    return periods


def planned(name: str) -> tuple[float, int]:
    """Return (eta, tau) of the plan that chooses both."""
    best = _plan(PROBLEMS[name], eta=None)
    assert best.eta is not None  # every theorem for smooth problems takes one
    return best.eta, best.tau


def _plan(problem: Problem, *, eta: float | None) -> Any:
    c = problem.workload.constants()
    smooth = Smooth(gap=c.gap, L=c.L, sigma2=c.sigma2)
    whole = [Candidate("whole models", Unbiased(0.0), 0.0)]
    return plan(whole, runtime=problem.runtime, problem=smooth, time_s=problem.time_s, eta=eta).best


def third_derivative(workload: LogisticRegression, m: int) -> tuple[float, float]:
    """Return (Q, variance of a gradient at the minimiser) of the third-order law, two classes.

    Q is the size of the third derivative along the noise: the law's bias at tau = 2, where nothing saturates, is
    Q eta^2 sigma2/4, the factor 1 - 1/m of a few workers included.
    """
    A, x = workload.features(), workload.optimum().x
    p = 1 / (1 + np.exp(-A @ x))
    wrong = A * (p - workload.data().train.targets.numpy())[:, None]
    noise = np.cov(wrong.T, bias=True) / (workload.batch or 1)
    hessian = (A * (p * (1 - p))[:, None]).T @ A / len(A) + workload.decay * np.eye(A.shape[1])
    spread = third_order.round_covariance(hessian, noise, eta=workload.eta, m=m, tau=2)
    sigma2 = float(np.trace(noise))
    size = float(np.linalg.norm(third_order.logistic_bias(A, p, spread)))
    return 4 * size / (workload.eta**2 * sigma2), sigma2


def exact_value(problem: Problem, tau: int) -> float | None:
    """Return the mean of ``E|grad F|^2`` over the steps, where its law is known."""
    w, K = problem.workload, problem.steps(tau)
    if isinstance(w, Quadratic):
        return float(additive.mean_squared_gradient(w.problem, eta=w.eta, m=problem.m, K=K))
    if isinstance(w, MultiplicativeQuadratic):
        arguments = {"eta": w.eta, "m": problem.m, "tau": tau, "rounds": K // tau, "noise_growth": w.noise_growth}
        return float(multiplicative.mean_squared_gradient(w.problem, **arguments))
    return None
