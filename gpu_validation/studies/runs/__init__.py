"""Training runs that are measured, by real processes or on simulated workers and a simulated clock."""
