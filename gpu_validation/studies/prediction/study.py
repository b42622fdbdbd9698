"""What pilots predict of trainings, against those trainings: errors, coverage and regret, held out.

Fixed beforehand, in this folder: problems, learning rates and halves, choices and networks, the target and how it is
read.  The design half was there to find where the model fails, and to make it better; the held-out half was run once.

A training is made of simulated workers; its losses do not depend on the network, so that one run has as many times as
there are networks.  The simulated clock leaves coding out, and a step lasts so long that coding does not matter.
The target is the loss at which the synchronous run had made nine tenths of its fall.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...records.storage import Record
from ...verdicts.verdict import Comparison
from ..study import Figure, Study
from ..unit import read_unit
from . import analysis, figures
from .problems import (
    DESIGN,
    HELD_OUT,
    HELD_OUT_LATER,
    KINDS,
    LONGER,
    NETWORKS,
    PROBLEMS,
    Design,
    Pilots,
    Seconds,
    Trainings,
)
from .real import measured_seconds
from .trainings import RingOf, carried_out, piloted

PILOT_SEED = 1000


@dataclass(frozen=True)
class PredictionStudy(Design, Study):
    """Pilots, then the trainings of every choice."""

    name = "prediction"
    description = "a pilot's predictions of times to a loss, of intervals and of the best choice against trainings"
    minutes = 40
    processes = 4
    measures_seconds = True

    def units(self) -> Sequence[str]:
        """Return pilot:PROBLEM and training:PROBLEM:SEED, the design half first, and seconds:NETWORK."""
        halves = [
            [name for name in self.problems if PROBLEMS[name].half == half]
            for half in (DESIGN, HELD_OUT, HELD_OUT_LATER)
        ]
        return [
            *(
                unit
                for names in halves
                for name in names
                for unit in (str(Pilots(name)), *(str(Trainings(name, seed)) for seed in _seeds(name)))
            ),
            *(str(Seconds(name)) for name in self.networks),
        ]

    def measure(self, unit: str) -> Record:
        """Return pilots, or what all choices have come to, or seconds of real processes."""
        match read_unit(unit, KINDS):
            case Pilots(name):
                seed = PILOT_SEED + PROBLEMS[name].first_seed
                return piloted(PROBLEMS[name], seed=seed, moments=self.moments, rounds=self.rounds)
            case Trainings(name, seed):
                problem = PROBLEMS[name]
                rings = [RingOf.ratio(ratio, d=problem.d, m=problem.m) for ratio in self.ratios]
                steps = round(problem.steps * LONGER)
                runs = [carried_out(problem, choice, rings, seed=seed, steps=steps) for choice in problem.choices()]
                return {"runs": runs}
            case Seconds(name):
                network = NETWORKS[name]
                return measured_seconds(network.m, network.shape, list(network.choices), steps=self.real_steps)

    def judge(self, records: Sequence[Record]) -> list[Comparison]:
        """Return errors, coverage and regrets beside their goals; no theorem covers them, so that none decides."""
        return analysis.rows(self, records)

    def figures(self, records: Sequence[Record]) -> list[Figure]:
        """Return predicted against measured times, and regrets."""
        return figures.figures(self, records)


def _seeds(name: str) -> range:
    problem = PROBLEMS[name]
    return range(problem.first_seed, problem.first_seed + problem.seeds)


PRESET = PredictionStudy()
