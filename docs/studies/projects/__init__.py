"""Published implementations, a file for each project."""
