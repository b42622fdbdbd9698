"""What a pilot predicts against trainings."""

from .study import PRESET as PRESET
