"""Verdicts: intervals of measured numbers against bounds."""
