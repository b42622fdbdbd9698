"""The period that a run chooses by itself against every fixed period."""

from .study import PRESET as PRESET
