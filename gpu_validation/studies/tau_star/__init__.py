"""The best fixed period against what theory predicts for it."""

from .study import PRESET as PRESET
