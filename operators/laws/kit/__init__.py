"""Say what a law is: its subject, examples, verdict and shrinking, and what statistical laws share."""
