"""Judge an aggregation, one law a file."""
