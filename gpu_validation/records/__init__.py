"""What is kept of a measurement: samples, rounds, seeds, files and their environment."""
