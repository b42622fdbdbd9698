"""The problems and networks on which the rule without settings is tried."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from bounds.tau import tau_star

from ...workloads import Kink, LeNet, LogisticRegression, Quadratic, SmallNetwork, Workload
from ...workloads.data import Dirichlet
from ..unit import Unit

WORKERS = 4
LONGEST = 512  # local steps of a round, for tau* as for the rule
AUTO, TAU_STAR = "auto", "tau*"
DESIGN, HELD_OUT = "design", "held-out"


@dataclass(frozen=True)
class Problem:
    """Parameters
    ----------
    step_s : seconds
        A local step lasts that much longer than on other problems, as a factor.
    half : str
        DESIGN or HELD_OUT.
    """

    half: str
    workload: Workload
    optimizer: str = "sgd"
    decay: tuple[tuple[int, float], ...] = ()
    step_factor: float = 1.0


PROBLEMS: dict[str, Problem] = {
    "quadratic": Problem(DESIGN, Quadratic(copies=5, noise=0.08, eta=0.08)),
    "logistic": Problem(DESIGN, LogisticRegression()),
    "mlp": Problem(DESIGN, SmallNetwork()),
    "mlp, Dirichlet(.5)": Problem(DESIGN, SmallNetwork(split=Dirichlet(WORKERS, alpha=0.5))),
    "mlp, momentum": Problem(DESIGN, SmallNetwork(eta=0.03), optimizer="momentum"),
    "kink": Problem(HELD_OUT, Kink.hard(tau=16, d=100, noise=2.0, eta=0.08)),
    "logistic, Dirichlet(.2)": Problem(HELD_OUT, LogisticRegression(split=Dirichlet(WORKERS, alpha=0.2))),
    "lenet": Problem(HELD_OUT, LeNet(), step_factor=5 / 3),
    "mlp, decay": Problem(HELD_OUT, SmallNetwork(), decay=((120, 0.1),)),
    "mlp, Adam": Problem(HELD_OUT, SmallNetwork(eta=0.01), optimizer="adam"),
}


@dataclass(frozen=True)
class Course:
    """One D/Y.

    Parameters
    ----------
    ratio : float
        Roughly, as the shape of the network makes it on two cores; what is reported is measured.
    step_s : float, seconds
        Y.
    delay_s : float, seconds
        Of the network, one way.
    budget : int
        Of a run, in Y.
    taus : tuple of int
        Fixed ones, 1 first.
    """

    ratio: float
    step_s: float
    delay_s: float
    budget: int
    taus: tuple[int, ...]


COURSES = (
    Course(0.5, 6e-3, 3e-4, 450, (1, 2, 5, 15)),
    Course(4.0, 4e-3, 6.5e-3, 1300, (1, 4, 12, 36, 108)),
    Course(20.0, 3e-3, 28e-3, 2200, (1, 5, 20, 60, 180)),
)


@dataclass(frozen=True)
class Races(Unit):
    """What is trained on one problem, course (by its number) and seed."""

    problem: str
    course: int
    seed: int


@dataclass(frozen=True)
class FixedTaus(Races, kind="fixed"):
    """The fixed taus."""


@dataclass(frozen=True)
class Rules(Races, kind="rules"):
    """The rules."""


KINDS: tuple[type[FixedTaus | Rules], ...] = (FixedTaus, Rules)


@lru_cache(maxsize=64)
def theorem_2(workload: Workload, step_s: float, course: Course) -> int:
    """Return tau* for the budget, from 1 to 512."""
    constants = workload.constants()
    optimum = tau_star(
        gap=constants.gap,
        delay_s=course.ratio * step_s,
        eta=workload.eta,
        L=constants.L,
        sigma2=constants.sigma2,
        time_s=course.budget * step_s,
    )
    return LONGEST if optimum.integer is None else max(1, min(LONGEST, optimum.integer))


@dataclass(frozen=True)
class Design:
    """What is run on which problems and networks, and how times to the targets are read.

    Parameters
    ----------
    problems : tuple of str, optional
        By name.
    targets : tuple of int, optional
        Local steps of the synchronous run.
    tau_0s : tuple of int, optional
        Of AdaComm; the default one is ``default_tau_0``.
    interval : float, optional
        Its T_0, in shares of the budget.
    window : float, optional
        Of the smoothing, in the same unit.
    points : int, optional
        Losses of a run.
    jitter : float, optional
        Random part of a local step.
    """

    problems: tuple[str, ...] = tuple(PROBLEMS)
    courses: tuple[Course, ...] = COURSES
    targets: tuple[int, ...] = (100, 200)
    seeds: tuple[int, ...] = (20, 21, 22)
    tau_0s: tuple[int, ...] = (4, 16, 64)
    default_tau_0: int = 16
    interval: float = 1 / 16
    window: float = 1 / 50
    points: int = 100
    jitter: float = 0.1

    @staticmethod
    def step_s(problem: Problem, course: Course) -> float:
        """Return mean duration of a local step."""
        return problem.step_factor * course.step_s

    def budget_s(self, problem: Problem, course: Course) -> float:
        """Return length of a run."""
        return course.budget * self.step_s(problem, course)
