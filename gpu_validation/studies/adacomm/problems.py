"""What is trained in the study of AdaComm, on which networks, and with what settings."""

from __future__ import annotations

from dataclasses import dataclass

from bounds.runtime import ShiftedExponential
from bounds.runtime.law import Law

from ...network import Shape
from ...workloads import LeNet, LogisticRegression, SmallNetwork, Workload
from ..unit import Unit

SYNCHRONOUS = 1
CONSTANT, DECAYED = "constant", "decayed"
CROWD = "crowd"  # the course for several numbers of workers
GOAL = 3.0
GAMMA = 0.5  # of the saturation rule, as published


@dataclass(frozen=True)
class Course:
    """What is trained on, and for how long.

    Parameters
    ----------
    step : Law
        Law of a local step, of mean Y.
    shape : Shape or None
        Of a network on which an averaging takes about 4 Y at m = 4; None takes the loopback.
    decay : tuple of (int, float)
        (local step, factor of the learning rate) pairs of the decayed runs.
    """

    workload: Workload
    step: Law
    shape: Shape | None
    budget_s: float
    decay: tuple[tuple[int, float], ...]


NETWORK = Course(
    SmallNetwork(),
    ShiftedExponential(2e-3, 5e-4),
    Shape(rate_bit_per_s=1e8, delay_s=2.4e-3, jitter_s=2e-3, mtu=9000),
    budget_s=4.0,
    decay=((190, 0.1),),
)
CONVOLUTIONS = Course(
    LeNet(),
    ShiftedExponential(5e-3, 1e-3),
    Shape(rate_bit_per_s=1e8, delay_s=4.4e-3, jitter_s=3e-3, mtu=9000),
    budget_s=6.0,
    decay=((125, 0.1),),
)
CROWDED = Course(  # slow enough for eight ranks on two cores
    SmallNetwork(),
    ShiftedExponential(7e-3, 1e-3),
    Shape(rate_bit_per_s=1e8, delay_s=9e-3, jitter_s=5e-3, mtu=9000),
    budget_s=5.0,
    decay=(),
)


@dataclass(frozen=True)
class Tune(Unit, kind="tune"):
    """Every candidate of AdaComm against the synchronous run."""

    course: str
    seed: int


@dataclass(frozen=True)
class Compare(Unit, kind="race"):
    """Every schedule at one course of the learning rate."""

    course: str
    rate: str
    seed: int


@dataclass(frozen=True)
class Crowd(Unit, kind=CROWD):
    """A few schedules with m workers."""

    m: int
    seed: int


@dataclass(frozen=True)
class Prove(Unit, kind="proof"):
    """The convex runs."""

    seed: int


KINDS: tuple[type[Tune | Compare | Crowd | Prove], ...] = (Tune, Compare, Crowd, Prove)


@dataclass(frozen=True)
class Proof:
    """Convex runs with known constants, short steps and so few local ones that Theorem 3 covers the capped rule."""

    workload: LogisticRegression = LogisticRegression(eta=0.02)  # noqa: RUF009  frozen
    steps: int = 100
    tau_0: int = 8
    interval_s: float = 0.12


@dataclass(frozen=True)
class Design:
    """What is run, with how many workers, and which seeds tune.

    Parameters
    ----------
    courses : tuple of (str, Course), optional
        By name.
    crowded : Course, optional
        What is run with the numbers of workers in ``crowds``, at the fixed ``crowd_taus`` and as tuned on the first
        course.
    taus : tuple of int, optional
        Fixed ones.
    tau_0s : tuple of int, optional
        What is tried on the tuning seeds; T_0 in shares of the budget, so that tau is chosen a few times before
        the target.
    intervals : tuple of float, optional
        What is tried on the tuning seeds; T_0 in shares of the budget, so that tau is chosen a few times before
        the target.
    points : int, optional
        Losses of a run.
    window : float, optional
        Of the smoothing, in shares of the budget.
    """

    courses: tuple[tuple[str, Course], ...] = (("network", NETWORK), ("lenet", CONVOLUTIONS))
    m: int = 4
    crowded: Course = CROWDED
    crowds: tuple[int, ...] = (2, 4, 8)
    crowd_taus: tuple[int, ...] = (SYNCHRONOUS, 20)
    taus: tuple[int, ...] = (SYNCHRONOUS, 5, 20, 100)
    tau_0s: tuple[int, ...] = (20, 50, 100)
    intervals: tuple[float, ...] = (1 / 16, 1 / 8)
    tuning: tuple[int, ...] = (0, 1, 2)
    seeds: tuple[int, ...] = (10, 11, 12, 13, 14)
    points: int = 80
    window: float = 1 / 40
    proof: Proof = Proof()

    def course(self, name: str) -> Course:
        """Return the course that units and groups call so."""
        return self.crowded if name == CROWD else dict(self.courses)[name]

    def budget_s(self, name: str) -> float:
        """Return the seconds of a run on a course."""
        return self.course(name).budget_s
