"""Stateless compressors, one per file."""
