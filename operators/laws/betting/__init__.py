"""Bet against a claim on independent draws, within one false-alarm budget, and say what would have been found."""
