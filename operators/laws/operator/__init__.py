"""Judge a compressor, one law a file."""
