"""Majority votes of signs under attacks of faulty workers."""

from .study import PRESET as PRESET
