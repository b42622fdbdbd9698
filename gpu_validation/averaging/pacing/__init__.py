"""Schedules of an averaging: clock, inputs and probes."""
