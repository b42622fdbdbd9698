"""Aggregation methods: merge the messages of n workers into one, one method per file."""
