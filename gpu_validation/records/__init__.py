"""Records of measurements: samples, rounds, seeds, files and their environment."""
