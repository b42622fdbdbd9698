"""What a pilot foretells against trainings."""

from .study import PRESET as PRESET
