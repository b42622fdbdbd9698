"""The prediction study on other models, data and optimizers, half of them frozen before the model was changed."""

from __future__ import annotations

from dataclasses import dataclass

from .prediction import PredictionStudy
from .prediction_problems import DESIGN_OTHERS, FRESH, FROZEN, PROBLEMS


@dataclass(frozen=True)
class PredictionOthers(PredictionStudy):
    """Pilots, then training runs of every choice."""

    name = "prediction-others"
    description = "the same on recurrent, convolutional and factor models, tables, and four optimizers"
    minutes = 25
    processes = 1
    measures_seconds = False

    problems: tuple[str, ...] = tuple(
        name for name, each in PROBLEMS.items() if each.half in (DESIGN_OTHERS, FROZEN, FRESH)
    )
    networks: tuple[str, ...] = ()


PRESET = PredictionOthers()
