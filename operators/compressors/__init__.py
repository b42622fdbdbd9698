"""Compressors of one vector without memory, one family per file."""
