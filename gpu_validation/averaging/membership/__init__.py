"""Who takes part in an averaging."""
