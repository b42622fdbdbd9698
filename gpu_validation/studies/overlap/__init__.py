"""Averages in flight and outer steps against waiting, every method tuned alike."""

from .study import PRESET as PRESET
