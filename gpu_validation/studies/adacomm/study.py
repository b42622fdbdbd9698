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

from bounds.schedules import AdaComm, Fixed, Schedule

from ...measurement.spec import TrainingRun
from ...measurement.training import run_training
from ...records.storage import Record
from ...verdicts.intervals import median_of
from ...verdicts.verdict import Comparison
from ..study import Figure, Study
from ..unit import Unit, of_kind, read_unit
from .analysis import groups, rows, times_to_target
from .figures import Setting, figures
from .problems import CONSTANT, DECAYED, GAMMA, KINDS, SYNCHRONOUS, Compare, Course, Crowd, Design, Prove, Tune


def _fixed(taus: Sequence[int]) -> dict[str, Schedule]:
    return {f"tau = {tau}": Fixed(tau) for tau in taus}


@dataclass(frozen=True)
class AdaCommStudy(Design, Study):
    """m ranks on a shaped network, steps padded to drawn durations; one set of processes a unit.

    Parameters
    ----------
    chosen : dict of str to (int, float), optional
        (tau_0, T_0's share) by course, once it is tuned.
    """

    chosen: dict[str, tuple[int, float]] = field(default_factory=dict, repr=False, compare=False)

    name = "adacomm"
    description = "loss against wall-clock: tau = 1, 5, 20, 100 and AdaComm's rules on the digits, m = 2, 4, 8"
    minutes = 21
    processes = 8
    measures_seconds = True

    def units(self) -> Sequence[str]:
        """Return tune:COURSE:SEED; then for every seed race:COURSE:RATE:SEED, crowd:M:SEED and proof:SEED."""
        names = [name for name, _ in self.courses]
        units: list[Unit] = [Tune(name, seed) for name in names for seed in self.tuning]
        for seed in self.seeds:
            units += [Compare(name, rate, seed) for name in names for rate in (CONSTANT, DECAYED)]
            units += [*(Crowd(m, seed) for m in self.crowds), Prove(seed)]
        return list(map(str, units))

    # -- tuning ------------------------------------------------------------------------------------------
    def with_records(self, records: Sequence[Record], folder: Path) -> AdaCommStudy:
        """Return the study with the tau_0 and T_0 that the tuning records choose."""
        return replace(self, chosen={name: self._choice(name, course, records) for name, course in self.courses})

    @property
    def candidates(self) -> list[tuple[int, float]]:
        """(tau_0, T_0's share of the budget)."""
        return [(tau_0, share) for tau_0 in self.tau_0s for share in self.intervals]

    def _choice(self, name: str, course: Course, records: Sequence[Record]) -> tuple[int, float]:
        """Return the candidate of the smallest median time to the target; the first one before anything is tuned."""
        tuned = [r for unit, r in of_kind(records, Tune) if unit.course == name]
        times = [[hit.seconds for hit in times_to_target(r, course.budget_s, self.window)[1:]] for r in tuned]
        medians = [median_of(column).value for column in zip(*times, strict=True)] if tuned else [0.0]
        return self.candidates[medians.index(min(medians))]

    # -- one unit ----------------------------------------------------------------------------------------
    def measure(self, unit: str) -> Record:
        """Return all schedules of a unit, one after the other on one network."""
        m = self.m
        match read_unit(unit, KINDS):
            case Tune(name, seed):
                course = self.course(name)
                races = self._tune(course, seed)
            case Compare(name, rate, seed):
                course, races = self.course(name), self._race(name, rate, seed)
            case Crowd(m, seed):
                course, races = self.crowded, self._crowd(seed)
            case Prove(seed):
                course, races = self.courses[0][1], self._proof(seed)
        measured = run_training(list(races.values()), m=m, shape=course.shape)
        return {"m": m, "races": [{"name": name, **record} for name, record in zip(races, measured, strict=True)]}

    def _tune(self, course: Course, seed: int) -> dict[str, TrainingRun]:
        """Return the synchronous run, and half as long each candidate: whatever is slower than that is not chosen."""
        races = {"tau = 1": self._on(course, Fixed(SYNCHRONOUS), seed)}
        for tau_0, share in self.candidates:
            race = self._on(course, AdaComm(tau_0, share * course.budget_s, gamma=GAMMA), seed)
            races[f"tau_0 = {tau_0}, T_0 = {share:g} T"] = replace(race, budget_s=course.budget_s / 2)
        return races

    def _race(self, name: str, rate: str, seed: int) -> dict[str, TrainingRun]:
        course, rules = self.course(name), self.rules(name, self.course(name).budget_s)
        kept = ("basic", "gamma") if rate == CONSTANT else ("published", "derived")
        schedules = {**_fixed(self.taus), **{rule: rules[rule] for rule in kept}}
        return {
            schedule: replace(self._on(course, rule, seed), decay=course.decay if rate == DECAYED else ())
            for schedule, rule in schedules.items()
        }

    def _crowd(self, seed: int) -> dict[str, TrainingRun]:
        rules = self.rules(self.courses[0][0], self.crowded.budget_s)
        schedules = {**_fixed(self.crowd_taus), "gamma": rules["gamma"]}
        return {name: self._on(self.crowded, schedule, seed) for name, schedule in schedules.items()}

    def rules(self, name: str, budget_s: float) -> dict[str, Schedule]:
        """Return AdaComm as tuned on a course.

        Notes
        -----
        derived
            Also times (eta_0/eta)^p with p = 1/2 as in the paper, and 3/2 as Theorem 2 has it; capped at the largest
            fixed tau.

        published
            Also times (eta_0/eta)^p with p = 1/2 as in the paper, and 3/2 as Theorem 2 has it; capped at the largest
            fixed tau.

        gamma
            Halved where that does not fall.

        basic
            tau_0 sqrt(F/F_0).
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

    def _on(self, course: Course, schedule: Schedule, seed: int) -> TrainingRun:
        return TrainingRun(course.workload, schedule, course.step, seed, budget_s=course.budget_s, points=self.points)

    def _proof(self, seed: int) -> dict[str, TrainingRun]:
        proof, course = self.proof, self.courses[0][1]
        rule = AdaComm(proof.tau_0, proof.interval_s)
        capped = replace(rule, L=proof.workload.constants().L)
        return {
            name: TrainingRun(proof.workload, schedule, course.step, seed, steps=proof.steps, trace=True, points=1)
            for name, schedule in {**_fixed(self.taus), "capped": capped, "basic": rule}.items()
        }

    # -- what follows ------------------------------------------------------------------------------------
    def judge(self, records: Sequence[Record]) -> list[Comparison]:
        """Judge theorems on the convex runs; seconds against the model, deciding nothing; ratios beside the goal."""
        return rows(self, records, false_alarm=self.false_alarm)

    def figures(self, records: Sequence[Record]) -> list[Figure]:
        """Return loss and accuracy against the clock, tau, speed-ups, and speed-up against m."""
        all_groups = groups(records, self.budget_s, self.window)
        if not all_groups:
            return []
        how = next(iter(all_groups[0].races.values()))[0]
        shapes = dict.fromkeys(f"{group.course}: {self.course(group.course).shape}" for group in all_groups)
        kind = how["method"].rsplit("; ", 1)[0]
        tuned = [
            f"{name}: tau_0 = {tau_0}, T_0 = {share * self.budget_s(name):.3g} s"
            for name, (tau_0, share) in self.with_records(records, Path()).chosen.items()
        ]
        where = (
            f"The bundled digits, real processes; {how['scheduling']}; {kind}; {'; '.join(shapes)}. "
            f"Chosen on seeds {', '.join(map(str, self.tuning))}: {'; '.join(tuned)}. All schedules run at one "
            "learning rate, tuned for none of them."
        )
        return figures(all_groups, Setting(self.budget_s, self.window, self.seeds, where))


PRESET = AdaCommStudy()
