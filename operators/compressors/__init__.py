"""Compress one vector without memory, one operator a file."""
