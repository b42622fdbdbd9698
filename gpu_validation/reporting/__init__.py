"""Reports of verdicts and measurements: pages, figures and console tables."""
