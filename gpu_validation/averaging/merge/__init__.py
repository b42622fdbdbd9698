"""What an averaging does to a worker."""
