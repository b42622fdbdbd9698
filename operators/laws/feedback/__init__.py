"""Judge a feedback method, one law a file."""
