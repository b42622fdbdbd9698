"""Compressors of one vector without memory, one operator per file."""
