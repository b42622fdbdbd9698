"""The grid of operators, workloads and periods behind the experiments quick and smoke."""
