"""Pilot runs: their record, the progress and predictions computed from it, and plans."""
