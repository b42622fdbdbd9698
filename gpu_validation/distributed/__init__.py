"""Processes and their collectives: launching, exchanging, reducing, checkpointing and restarting."""
