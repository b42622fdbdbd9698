"""Processes of a run: start, process groups, transports, checkpoints."""
