"""A few steps of a training run, measured for a plan and then undone."""
