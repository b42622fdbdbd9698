"""What a measured number says about a bound: intervals that hold their level, verdicts, and what would be noticed."""
