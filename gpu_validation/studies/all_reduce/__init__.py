"""Gathering, two shots and the plain all-reduce: bytes, errors, seconds, and the digits trained with each."""

from .study import PRESET as PRESET
