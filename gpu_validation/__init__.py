"""Does the machine agree?  Real processes, real bytes, verdicts."""
