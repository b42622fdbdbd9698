"""The prediction study on problems that were never used while the model was changed; run once."""

from __future__ import annotations

from dataclasses import dataclass

from .prediction import PredictionStudy
from .prediction_problems import HELD_OUT_LATER, PROBLEMS


@dataclass(frozen=True)
class PredictionAnew(PredictionStudy):
    """Pilots, then training runs of every choice."""

    name = "prediction-anew"
    description = "the same on problems that were held out when predictions became finite"
    minutes = 15
    processes = 1
    measures_seconds = False

    problems: tuple[str, ...] = tuple(name for name, problem in PROBLEMS.items() if problem.half == HELD_OUT_LATER)
    networks: tuple[str, ...] = ()


PRESET = PredictionAnew()
