"""Merge the messages of n workers into one, one method a file."""
