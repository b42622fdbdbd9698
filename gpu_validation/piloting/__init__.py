"""Pilot: a few measured steps of a training run, undone afterwards."""
