"""Merging the messages of n workers into one, one method per file."""
