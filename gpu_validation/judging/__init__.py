"""Verdicts on measurements, and their reports."""
