"""Compressors with and without error feedback where theory separates them."""

from .study import PRESET as PRESET
