"""Verdicts and measurements for readers: pages, figures and console tables."""
