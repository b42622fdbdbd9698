"""Replay a subject on chosen random words, so that its mean and error are computed instead of estimated."""
