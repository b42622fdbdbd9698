"""AdaComm against fixed tau, all at one learning rate: the loss against the wall clock, on real processes.

Nobody's rate is tuned here, so that ratios flatter local steps; the study ``speed-up`` tunes every schedule alike.

After Wang & Joshi (arXiv:1810.08313), on the bundled digits.  Fixed beforehand, in this file: the workloads and their
learning rates, the law of a local step, the network, the budget of seconds, and the target: the smoothed loss of the
synchronous run of the same seed at the end of its budget.  The first tau and the interval T_0 of AdaComm are chosen on
tuning seeds, by the median time to the target under the saturation rule; all other numbers come from other seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from bounds.runtime import ShiftedExponential
from bounds.runtime.law import Law
from bounds.schedules import AdaComm, Fixed, Schedule

from ..network import Shape
from ..race import Race, run_races
from ..records import Comparison
from ..study import Figure, Record, Study
from ..time_to_loss import median_of
from ..workloads import LeNet, LogisticRegression, SmallNetwork, Workload
from .adacomm_figures import Setting, figures
from .adacomm_rows import CONSTANT, CROWD, DECAYED, SYNCHRONOUS, groups, hits, rows

GAMMA = 0.5  # of the saturation rule, as published


@dataclass(frozen=True)
class Course:
    """What is raced on.

    step : law of a local step, of mean Y.  shape : of a network on which an averaging takes about 4 Y at m = 4; None
    takes the loopback.
    decay : (local step, factor of the learning rate) pairs of the decayed runs.
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
class Proof:
    """Convex runs with known constants, short steps and so few local ones that Theorem 3 covers the capped rule."""

    workload: LogisticRegression = LogisticRegression(eta=0.02)  # noqa: RUF009  frozen
    steps: int = 100
    tau_0: int = 8
    interval_s: float = 0.12


def _fixed(taus: Sequence[int]) -> dict[str, Schedule]:
    return {f"tau = {tau}": Fixed(tau) for tau in taus}


@dataclass(frozen=True)
class AdaCommStudy(Study):
    """m ranks on a shaped network, steps padded to drawn durations; one set of processes a unit.

    courses : by name.  taus : fixed ones.  crowded : what is run with the numbers of workers in ``crowds``, at the
    fixed ``crowd_taus`` and as tuned on the first course.  tau_0s, intervals : what is tried on the tuning seeds; T_0
    in shares of the budget, so that tau is chosen anew a few times before the target.  points : losses of a run.
    window : of the smoothing, in shares of the budget.  chosen : (tau_0, T_0's share) by course, once it is tuned.
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
    chosen: dict[str, tuple[int, float]] = field(default_factory=dict, repr=False, compare=False)

    name = "adacomm"
    description = "loss against wall-clock: tau = 1, 5, 20, 100 and AdaComm's rules on the digits, m = 2, 4, 8"
    minutes = 21
    processes = 8

    def course(self, name: str) -> Course:
        """By the name that units and groups give it."""
        return self.crowded if name == CROWD else dict(self.courses)[name]

    def budget_s(self, name: str) -> float:
        """Of a course."""
        return self.course(name).budget_s

    def units(self) -> Sequence[str]:
        """tune:COURSE:SEED; then for every seed race:COURSE:RATE:SEED, crowd:M:SEED and proof:SEED."""
        names = [name for name, _ in self.courses]
        found = [f"tune:{name}:{seed}" for name in names for seed in self.tuning]
        for seed in self.seeds:
            found += [f"race:{name}:{rate}:{seed}" for name in names for rate in (CONSTANT, DECAYED)]
            found += [f"crowd:{m}:{seed}" for m in self.crowds] + [f"proof:{seed}"]
        return found

    # -- tuning ------------------------------------------------------------------------------------------
    def informed(self, records: Sequence[Record], folder: Path) -> AdaCommStudy:
        """With the tau_0 and T_0 that the tuning records choose."""
        return replace(self, chosen={name: self._choice(name, course, records) for name, course in self.courses})

    @property
    def candidates(self) -> list[tuple[int, float]]:
        """(tau_0, T_0's share of the budget)."""
        return [(tau_0, share) for tau_0 in self.tau_0s for share in self.intervals]

    def _choice(self, name: str, course: Course, records: Sequence[Record]) -> tuple[int, float]:
        """The candidate of the smallest median time to the target; the first one before anything is tuned."""
        tuned = [r for r in records if r["unit"].startswith(f"tune:{name}:")]
        times = [[hit.seconds for hit in hits(r, course.budget_s, self.window)[1:]] for r in tuned]
        medians = [median_of(column).value for column in zip(*times, strict=True)] if tuned else [0.0]
        return self.candidates[medians.index(min(medians))]

    # -- one unit ----------------------------------------------------------------------------------------
    def measure(self, unit: str) -> Record:
        """All schedules of a unit, one after the other on one network."""
        kind, *what, last = unit.split(":")
        m, seed = int(what[0]) if kind == "crowd" else self.m, int(last)
        course = self.course(CROWD if kind == "crowd" else self.courses[0][0] if kind == "proof" else what[0])
        races = {
            "tune": lambda: self._tune(course, seed),
            "race": lambda: self._race(what[0], what[1], seed),
            "crowd": lambda: self._crowd(seed),
            "proof": lambda: self._proof(seed),
        }[kind]()
        found = run_races(list(races.values()), m=m, shape=course.shape)
        return {"m": m, "races": [{"name": name, **record} for name, record in zip(races, found, strict=True)]}

    def _tune(self, course: Course, seed: int) -> dict[str, Race]:
        """The synchronous run, and half as long each candidate: whatever is slower than that is not chosen."""
        races = {"tau = 1": self._on(course, Fixed(SYNCHRONOUS), seed)}
        for tau_0, share in self.candidates:
            race = self._on(course, AdaComm(tau_0, share * course.budget_s, gamma=GAMMA), seed)
            races[f"tau_0 = {tau_0}, T_0 = {share:g} T"] = replace(race, budget_s=course.budget_s / 2)
        return races

    def _race(self, name: str, rate: str, seed: int) -> dict[str, Race]:
        course, rules = self.course(name), self.rules(name, self.course(name).budget_s)
        kept = ("basic", "gamma") if rate == CONSTANT else ("published", "derived")
        schedules = {**_fixed(self.taus), **{rule: rules[rule] for rule in kept}}
        return {
            schedule: replace(self._on(course, rule, seed), decay=course.decay if rate == DECAYED else ())
            for schedule, rule in schedules.items()
        }

    def _crowd(self, seed: int) -> dict[str, Race]:
        rules = self.rules(self.courses[0][0], self.crowded.budget_s)
        schedules = {**_fixed(self.crowd_taus), "gamma": rules["gamma"]}
        return {name: self._on(self.crowded, schedule, seed) for name, schedule in schedules.items()}

    def rules(self, name: str, budget_s: float) -> dict[str, Schedule]:
        """AdaComm as tuned on a course.

        basic : tau_0 sqrt(F/F_0).  gamma : halved where that does not fall.  published, derived : also times
        (eta_0/eta)^p with p = 1/2 as in the paper, and 3/2 as Theorem 2 has it; capped at the largest fixed tau.
        """
        tau_0, share = self.chosen[name]
        basic = AdaComm(tau_0, share * budget_s)
        gamma = replace(basic, gamma=GAMMA)
        return {
            "basic": basic,
            "gamma": gamma,
            "published": replace(gamma, eta_exponent=0.5, cap=max(self.taus)),
            "derived": replace(gamma, eta_exponent=1.5, cap=max(self.taus)),
        }

    def _on(self, course: Course, schedule: Schedule, seed: int) -> Race:
        return Race(course.workload, schedule, course.step, seed, budget_s=course.budget_s, points=self.points)

    def _proof(self, seed: int) -> dict[str, Race]:
        proof, course = self.proof, self.courses[0][1]
        rule = AdaComm(proof.tau_0, proof.interval_s)
        capped = replace(rule, L=proof.workload.constants().L)
        return {
            name: Race(proof.workload, schedule, course.step, seed, steps=proof.steps, trace=True, points=1)
            for name, schedule in {**_fixed(self.taus), "capped": capped, "basic": rule}.items()
        }

    # -- what follows ------------------------------------------------------------------------------------
    def judge(self, records: Sequence[Record]) -> list[Comparison]:
        """Theorems on the convex runs; seconds against the model, deciding nothing; ratios beside the goal."""
        return rows(self, records)

    def figures(self, records: Sequence[Record]) -> list[Figure]:
        """Loss and accuracy against the clock, tau, speed-ups, and speed-up against m."""
        found = groups(records, self.budget_s, self.window)
        if not found:
            return []
        how = next(iter(found[0].races.values()))[0]
        shapes = dict.fromkeys(f"{group.course}: {self.course(group.course).shape}" for group in found)
        kind = how["method"].rsplit("; ", 1)[0]
        tuned = [
            f"{name}: tau_0 = {tau_0}, T_0 = {share * self.budget_s(name):.3g} s"
            for name, (tau_0, share) in self.informed(records, Path()).chosen.items()
        ]
        where = (
            f"The bundled digits, real processes; {how['scheduling']}; {kind}; {'; '.join(shapes)}. "
            f"Chosen on seeds {', '.join(map(str, self.tuning))}: {'; '.join(tuned)}. All schedules run at one "
            "learning rate, tuned for none of them."
        )
        return figures(found, Setting(self.budget_s, self.window, self.seeds, where))


PRESET = AdaCommStudy()
