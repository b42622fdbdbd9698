"""Operators made of other operators: composed, induced, or applied to every layer."""
